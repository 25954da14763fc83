//! Reaching a daemon's console as a browser does: whatever name below `localhost` it has, it is at a port of this machine.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use crate::wire::PATIENCE;

/// Where a host and port of a link lead.
pub fn address(host: &str) -> SocketAddr {
    let (name, port) = host.rsplit_once(':').unwrap();
    let port: u16 = port.parse().unwrap();
    match name.ends_with(".localhost") {
        true => (Ipv4Addr::LOCALHOST, port).into(),
        false => host.parse().unwrap(),
    }
}

/// Connects to the host and port of a link.
pub fn connect(host: &str) -> TcpStream {
    let stream = TcpStream::connect(address(host)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}
