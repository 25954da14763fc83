//! `--http`: a loopback address and nothing else.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// Where HTTP is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HttpAddress {
    /// At [`DEFAULT`](Self::DEFAULT) if nobody else listens there, else at a free port.
    #[default]
    Default,
    /// There.
    At(SocketAddr),
    /// Nowhere.
    Off,
}

impl HttpAddress {
    /// Where one looks first.
    pub(crate) const DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4180);
}

impl FromStr for HttpAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::Off);
        }
        let numeric = text.strip_prefix("localhost:").map(|port| format!("{}:{port}", Ipv4Addr::LOCALHOST));
        let address: SocketAddr = numeric
            .as_deref()
            .unwrap_or(text)
            .parse()
            .map_err(|_| "give an address with a port, such as 127.0.0.1:4180, or off".to_owned())?;
        match address.ip().is_loopback() {
            true => Ok(Self::At(address)),
            false => Err(format!(
                "{} can be reached from other machines; only loopback addresses are served, such as 127.0.0.1:{}",
                address.ip(),
                address.port(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_addresses_are_taken_and_all_others_refused() {
        for (text, address) in [
            ("127.0.0.1:4180", "127.0.0.1:4180"),
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("127.1.2.3:80", "127.1.2.3:80"),
            ("[::1]:4180", "[::1]:4180"),
            ("localhost:4180", "127.0.0.1:4180"),
        ] {
            assert_eq!(text.parse(), Ok(HttpAddress::At(address.parse().unwrap())), "{text}");
        }
        assert_eq!("off".parse(), Ok(HttpAddress::Off));
        for text in ["0.0.0.0:4180", "[::]:4180", "192.168.0.1:4180", "128.0.0.1:80", "[::ffff:127.0.0.1]:80"]
        {
            let error = text.parse::<HttpAddress>().unwrap_err();
            assert!(error.contains("other machines"), "{text}: {error}");
        }
        for text in
            ["", "4180", ":4180", "127.0.0.1", "127.evil.example:80", "localhost:", "localhost:x", "on"]
        {
            assert!(text.parse::<HttpAddress>().unwrap_err().contains("such as"), "{text}");
        }
    }
}
