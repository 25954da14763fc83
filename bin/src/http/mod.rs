//! The console's address: what the command line says about it, and listening there.

mod address;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use actix_web::dev::Server;
use cofferdam_storage::clock::Clock;
use cofferdam_storage::console::ConsoleFile;
use cofferdam_storage::fault;
use cofferdam_web::access::{Access, OwnAddress};
use cofferdam_web::tcp::{self, Limits};
use cofferdam_web::{Console, Services};

pub(crate) use address::HttpAddress;

use crate::socket;

/// Nothing can listen there.
#[derive(Debug, thiserror::Error)]
#[error("cannot serve HTTP at {address}: {source}; name another address with --http, or --http off")]
pub(crate) struct HttpError {
    address: SocketAddr,
    source: io::Error,
}

/// What listens, and who may look.
pub(crate) struct Http {
    listener: TcpListener,
    address: SocketAddr,
    console: Arc<Console>,
}

impl Http {
    /// Listens; nothing where that is off. Browsers may connect from here on; they wait until somebody accepts.
    /// What is kept of the console is in the state directory.
    pub(crate) fn bind(
        wanted: HttpAddress,
        clock: Arc<dyn Clock>,
        state_dir: &Path,
    ) -> Result<Option<Self>, HttpError> {
        let listener = match wanted {
            HttpAddress::Off => return Ok(None),
            HttpAddress::At(address) => listen(address)?,
            HttpAddress::Default => listen(HttpAddress::DEFAULT).or_else(|error| {
                let free = SocketAddr::new(HttpAddress::DEFAULT.ip(), 0);
                tracing::warn!("{error}; taking another port");
                listen(free)
            })?,
        };
        let failed = |source| HttpError { address: HttpAddress::DEFAULT, source };
        let address = listener.local_addr().map_err(failed)?;
        let file = ConsoleFile::in_dir(fault::disk_from_env(), state_dir);
        let file = file.inspect_err(|error| tracing::warn!(%error, "nothing is kept of the console")).ok();
        let console = Arc::new(Console::new(address, clock, file));
        Ok(Some(Self { listener, address, console }))
    }

    /// Who may look at the console.
    pub(crate) fn console(&self) -> Arc<Console> {
        Arc::clone(&self.console)
    }

    /// Serves until its handle is told to stop.
    pub(crate) fn serve(self, services: Services) -> io::Result<Server> {
        let browser = Arc::clone(&self.console);
        let own = OwnAddress::new(self.address).named(&self.console.host());
        let access = Access::new(own, browser);
        let defaults = Limits::default();
        let limits = Limits { connections: socket::connections(defaults.connections, 4), ..defaults };
        tcp::serve(self.listener, services, access, self.console, limits)
    }
}

fn listen(address: SocketAddr) -> Result<TcpListener, HttpError> {
    TcpListener::bind(address).map_err(|source| HttpError { address, source })
}

#[cfg(test)]
mod tests {
    use cofferdam_storage::clock::SystemClock;

    use super::*;

    fn bind(wanted: HttpAddress) -> Result<Option<Http>, HttpError> {
        let state_dir = tempfile::tempdir().unwrap();
        Http::bind(wanted, Arc::new(SystemClock::new()), state_dir.path())
    }

    #[test]
    fn an_address_that_was_asked_for_and_is_taken_is_an_error_that_names_it() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let error = bind(HttpAddress::At(address)).err().unwrap().to_string();
        assert!(error.contains(&address.to_string()) && error.contains("--http"), "{error}");
    }

    #[test]
    fn without_an_address_there_is_always_one_and_off_is_none() {
        // Whoever has the default port, one of the two does not get it.
        let (one, other) = (bind(HttpAddress::Default).unwrap(), bind(HttpAddress::Default).unwrap());
        let (one, other) = (one.unwrap().address, other.unwrap().address);
        assert!(one.ip().is_loopback() && other.ip().is_loopback());
        assert_ne!(one.port(), other.port());
        assert!(bind(HttpAddress::Off).unwrap().is_none());
    }
}
