//! The names under which this server is reached. A name that anybody can point at this machine (DNS rebinding), or a page of
//! another origin, is told apart by what the browser says and no page can forge: `Host`, `Origin` and `Sec-Fetch-Site`.

use std::net::SocketAddr;

use actix_web::dev::RequestHead;
use actix_web::http::Method;
use actix_web::http::header::{HOST, HeaderMap, ORIGIN};
use cofferdam_storage::sandbox::NOT_SERVED;

use crate::console;

/// What plain HTTP leaves out of `Host`.
const DEFAULT_PORT: u16 = 80;

/// Where this server is reached.
#[derive(Clone, Debug)]
pub struct OwnAddress {
    address: SocketAddr,
    hosts: Vec<String>,
}

/// Why a request does not come from where it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Foreign {
    #[error("the Host header does not name this server; use 127.0.0.1 or localhost, and its port")]
    Host,
    #[error("a page of another origin may not send this")]
    Origin,
    #[error("only programs of the daemon's own user and of root may ask for this; run a daemon of your own")]
    User,
    #[error("{}", NOT_SERVED)]
    Sandboxed,
}

impl OwnAddress {
    /// That of a server which listens at a loopback address: its own name, and those of this machine, at its port.
    pub fn new(address: SocketAddr) -> Self {
        let mut hosts = vec![address.to_string()];
        for name in ["127.0.0.1", "localhost", "[::1]"] {
            hosts.push(format!("{name}:{}", address.port()));
            if address.port() == DEFAULT_PORT {
                hosts.push(name.to_owned());
            }
        }
        Self { address, hosts }
    }

    /// Reached by another name, too: that of a host and its port.
    #[must_use]
    pub fn named(mut self, host: &str) -> Self {
        if let Some(bare) = host.strip_suffix(&format!(":{DEFAULT_PORT}")) {
            self.hosts.push(bare.to_owned());
        }
        self.hosts.push(host.to_owned());
        self
    }

    /// The address that is listened at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Says of a request whether it was meant for this server, and sent by none of another's pages.
    pub(crate) fn check(&self, request: &RequestHead) -> Result<(), Foreign> {
        let host =
            only(request.headers(), HOST.as_str()).filter(|host| self.is_own(host)).ok_or(Foreign::Host)?;
        if let Some(authority) = request.uri.authority()
            && (authority.as_str() != host || request.uri.scheme_str() != Some("http"))
        {
            return Err(Foreign::Host);
        }
        let origin = format!("http://{host}");
        if request.headers().get_all(ORIGIN).any(|other| other.as_bytes() != origin.as_bytes()) {
            return Err(Foreign::Origin);
        }
        let mut sites = request.headers().get_all("sec-fetch-site");
        match sites.all(|site| is_own_site(site.as_bytes(), request)) {
            true => Ok(()),
            false => Err(Foreign::Origin),
        }
    }

    fn is_own(&self, host: &str) -> bool {
        self.hosts.iter().any(|own| own == host)
    }
}

/// Whether a page of ours says that it sends this. Such requests change things in the name of the browser's user.
pub(crate) fn says_its_origin(request: &RequestHead) -> bool {
    // What it says was checked: it is one of ours.
    request.headers().contains_key(ORIGIN)
}

/// Whether the browser says that one of our pages asks, or the user. To a browser every port of this machine is the same site,
/// so that others' pages there may link to ours, and no more: the cookie comes along, and to listen to events changes things.
fn is_own_site(site: &[u8], request: &RequestHead) -> bool {
    match site {
        b"same-origin" | b"none" => true,
        b"same-site" => {
            request.method == Method::GET
                && only(request.headers(), "sec-fetch-mode") == Some("navigate")
                && console::PAGES.contains(&request.uri.path())
        }
        _ => false,
    }
}

/// Whether somebody follows a link of a page, of whatever site, to one of our pages.
pub(crate) fn is_link_to_a_page(request: &RequestHead) -> bool {
    let says = |name, value| only(request.headers(), name) == Some(value);
    request.method == Method::GET
        && says("sec-fetch-mode", "navigate")
        && says("sec-fetch-dest", "document")
        && console::PAGES.contains(&request.uri.path())
}

/// A header's value, if it is there once and is text.
fn only<'a>(headers: &'a HeaderMap, name: &'static str) -> Option<&'a str> {
    let mut values = headers.get_all(name);
    match (values.next(), values.next()) {
        (Some(one), None) => one.to_str().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn check(headers: &[(&'static str, &str)]) -> Result<(), Foreign> {
        check_at("/isolation-pod/status", headers)
    }

    fn check_at(path: &str, headers: &[(&'static str, &str)]) -> Result<(), Foreign> {
        let own = OwnAddress::new("127.0.0.1:4180".parse().unwrap());
        let mut request = TestRequest::get().uri(path);
        for header in headers {
            request = request.append_header(*header);
        }
        own.check(request.to_srv_request().head())
    }

    #[test]
    fn only_our_own_names_at_our_own_port_are_ours() {
        for own in ["127.0.0.1:4180", "localhost:4180", "[::1]:4180"] {
            assert_eq!(check(&[("host", own)]), Ok(()), "{own}");
        }
        for other in [
            "",
            "evil.example",
            "evil.example:4180",
            "127.0.0.1",
            "127.0.0.1:4181",
            "127.0.0.1:41800",
            "127.0.0.1:04180",
            "127.0.0.1.evil:4180",
            "127.0.0.1:4180.evil",
            "127.0.0.1:4180@evil",
            "user@127.0.0.1:4180",
            "127.1:4180",
            "127.0.0.2:4180",
            "0.0.0.0:4180",
            "::1:4180",
            "[::ffff:127.0.0.1]:4180",
            "localhost.:4180",
            "LOCALHOST:4180",
            "localhost:4180,evil.example",
            "2130706433:4180",
        ] {
            assert_eq!(check(&[("host", other)]), Err(Foreign::Host), "{other}");
        }
        assert_eq!(check(&[]), Err(Foreign::Host));
        assert_eq!(check(&[("host", "localhost:4180"), ("host", "localhost:4180")]), Err(Foreign::Host));
    }

    #[test]
    fn another_name_is_ours_exactly_as_it_was_given() {
        let check = |port: u16, host: &'static str| {
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            let own = OwnAddress::new(address).named(&format!("c0.localhost:{port}"));
            let origin = ("origin", format!("http://{host}"));
            let request = TestRequest::get().insert_header(("host", host)).insert_header(origin);
            own.check(request.to_srv_request().head())
        };
        assert_eq!(check(4180, "c0.localhost:4180"), Ok(()));
        assert_eq!(check(4180, "127.0.0.1:4180"), Ok(()));
        assert_eq!(check(80, "c0.localhost"), Ok(()));
        for other in
            ["c0.localhost", "c0.localhost:80", "c1.localhost:4180", "x.c0.localhost:4180", "c0:4180"]
        {
            assert_eq!(check(4180, other), Err(Foreign::Host), "{other}");
        }
    }

    #[test]
    fn an_origin_is_that_of_the_host_or_none() {
        let host = ("host", "127.0.0.1:4180");
        assert_eq!(check(&[host, ("origin", "http://127.0.0.1:4180")]), Ok(()));
        for other in [
            "null",
            "",
            "http://evil.example",
            "http://localhost:4180",
            "http://[::1]:4180",
            "http://127.0.0.1:3000",
            "http://127.0.0.1",
            "https://127.0.0.1:4180",
            "http://127.0.0.1:4180/",
            "http://127.0.0.1:4180.evil",
        ] {
            assert_eq!(check(&[host, ("origin", other)]), Err(Foreign::Origin), "{other}");
        }
        let twice = [host, ("origin", "http://127.0.0.1:4180"), ("origin", "http://evil.example")];
        assert_eq!(check(&twice), Err(Foreign::Origin));
    }

    #[test]
    fn pages_of_other_sites_send_nothing_and_those_of_other_ports_only_link() {
        let host = ("host", "127.0.0.1:4180");
        for own in ["same-origin", "none"] {
            assert_eq!(check(&[host, ("sec-fetch-site", own)]), Ok(()), "{own}");
        }
        for other in ["cross-site", "same-site", "", "anything"] {
            assert_eq!(check(&[host, ("sec-fetch-site", other)]), Err(Foreign::Origin), "{other}");
        }
        let navigate = ("sec-fetch-mode", "navigate");
        let linked = |path: &str, site| check_at(path, &[host, ("sec-fetch-site", site), navigate]);
        for page in ["/", "/login", "/login?code=x"] {
            assert_eq!(linked(page, "same-site"), Ok(()), "{page}");
            assert_eq!(linked(page, "cross-site"), Err(Foreign::Origin), "{page}");
            assert_eq!(
                check_at(page, &[host, ("sec-fetch-site", "same-site")]),
                Err(Foreign::Origin),
                "{page}"
            );
        }
        for other in
            ["/api/v1/events?sessionId=main", "/%61pi/v1/events", "/isolation-pod/bootstrap", "//", "/login/"]
        {
            assert_eq!(linked(other, "same-site"), Err(Foreign::Origin), "{other}");
        }
    }

    #[test]
    fn a_target_with_a_name_of_its_own_is_checked_like_the_host() {
        let own = OwnAddress::new("127.0.0.1:4180".parse().unwrap());
        let check = |target: &str| {
            let request = TestRequest::get().uri(target).insert_header(("host", "127.0.0.1:4180"));
            own.check(request.to_srv_request().head())
        };
        assert_eq!(check("http://127.0.0.1:4180/isolation-pod/status"), Ok(()));
        for other in [
            "http://evil.example/isolation-pod/status",
            "http://127.0.0.1/isolation-pod/status",
            "http://localhost:4180/isolation-pod/status",
            "https://127.0.0.1:4180/isolation-pod/status",
            "http://me@127.0.0.1:4180/isolation-pod/status",
        ] {
            assert_eq!(check(other), Err(Foreign::Host), "{other}");
        }
    }

    #[test]
    fn at_the_port_of_plain_http_browsers_leave_it_out() {
        let check = |address: &str, host: &'static str| {
            let request = TestRequest::get().insert_header(("host", host));
            OwnAddress::new(address.parse().unwrap()).check(request.to_srv_request().head())
        };
        assert_eq!(check("127.0.0.1:80", "localhost"), Ok(()));
        assert_eq!(check("127.0.0.1:80", "localhost:80"), Ok(()));
        assert_eq!(check("127.0.0.1:81", "localhost"), Err(Foreign::Host));
        assert_eq!(check("127.0.0.9:81", "127.0.0.9:81"), Ok(()));
        assert_eq!(check("[::1]:81", "[::1]:81"), Ok(()));
    }
}
