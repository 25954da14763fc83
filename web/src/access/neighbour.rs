//! Whose program is at the other end of a connection. Browsers send a cookie to every port of this machine, so that another
//! user's server gets ours when somebody visits it; only the kernel says who then shows it here.

use std::any::Any;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use actix_web::dev::Extensions;
use actix_web::rt::net::TcpStream;
use actix_web::web;
use cofferdam_storage::peer::Peer;
use cofferdam_storage::sandbox::Sandboxes;
use tokio::sync::{OnceCell, Semaphore};

/// What the kernel says of the TCP sockets of this machine, those of IPv4 and of IPv6. A program that speaks IPv4 may do so
/// with a socket of IPv6.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
/// How often they are read if a socket is in none: one that comes or goes meanwhile can hide another.
const READS: usize = 3;
/// A user, and whoever a namespace does not know.
const NOBODY: u32 = 65534;

/// Says of a connection that a program of this process's own user made it, or one of root.
#[derive(Clone, Copy)]
pub(crate) struct OwnNeighbour;

/// Says of a connection that a program in a sandbox of this process made it.
#[derive(Clone, Copy, Debug)]
pub struct Sandboxed;

/// Says of a connection that was made while there were sandboxes that a program in one of them may have made it.
#[derive(Clone)]
pub(crate) struct Suspect(Arc<Look>);

struct Look {
    /// Those there were.
    sandboxes: Sandboxes,
    /// The sockets that can be its other end; one of root's is not among them.
    inodes: Vec<u64>,
    found: OnceCell<bool>,
}

/// Whoever looks goes through all that every process has open: one after the other does.
static LOOKING: Semaphore = Semaphore::const_new(1);

impl Suspect {
    /// Whether that is so. It is looked for once for each connection, beside whatever else is served.
    pub(crate) async fn is_sandboxed(&self) -> bool {
        let look = async || {
            // It is never closed.
            let _turn = LOOKING.acquire().await;
            let of = Arc::clone(&self.0);
            let held = move || of.inodes.iter().any(|inode| of.sandboxes.hold_socket(*inode));
            // Who is not known is not served.
            web::block(held).await.unwrap_or(true)
        };
        *self.0.found.get_or_init(look).await
    }
}

/// Asks the kernel who connected, and tells [`guard`](super::guard()): belongs into `HttpServer::on_connect`. Of whoever is
/// not known to be this user or root nothing is said.
pub fn introduce(connection: &dyn Any, data: &mut Extensions) {
    let ends = connection.downcast_ref::<TcpStream>().map(|stream| (stream.peer_addr(), stream.local_addr()));
    let Some((Ok(theirs), Ok(ours))) = ends else { return };
    if let Some(suspect) = suspect(theirs, ours) {
        data.insert(suspect);
    }
    // This comes last: a program that closes its end between the two is then nobody's, and not one of this user's that is in no
    // sandbox.
    if is_own(theirs, ours) {
        data.insert(OwnNeighbour);
    }
}

/// What there is to look for, if there are sandboxes. No program in one is root's.
fn suspect(theirs: SocketAddr, ours: SocketAddr) -> Option<Suspect> {
    let sandboxes = Sandboxes::now()?;
    let (theirs, ours) = (canonical(theirs), canonical(ours));
    let tables = tables();
    let sockets = tables.lines().filter_map(Socket::parse);
    let reaching = sockets.filter(|socket| (socket.local, socket.remote) == (theirs, ours));
    let inodes: Vec<u64> = reaching.filter(|socket| socket.user != 0).map(|socket| socket.inode).collect();
    let look = Look { sandboxes, inodes, found: OnceCell::new() };
    (!look.inodes.is_empty()).then(|| Suspect(Arc::new(look)))
}

fn tables() -> String {
    // A table that is missing has no lines.
    TABLES.map(|table| fs::read_to_string(table).unwrap_or_default()).concat()
}

/// Whether the socket at the other end is this user's, or root's.
fn is_own(theirs: SocketAddr, ours: SocketAddr) -> bool {
    let (theirs, ours) = (canonical(theirs), canonical(ours));
    let own = Some(Peer::own().uid).filter(|own| *own != NOBODY || knows_everybody());
    (0..READS).find_map(|_| judge(&tables(), theirs, ours, own)).unwrap_or(false)
}

/// Whether this process's namespace has a number for every user there is.
fn knows_everybody() -> bool {
    let all = ["0", "0", "4294967295"];
    fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| map.split_ascii_whitespace().eq(all))
}

/// Whether all sockets that reach from there to here are of that user or of root; nothing if there is none.
fn judge(tables: &str, theirs: SocketAddr, ours: SocketAddr, own: Option<u32>) -> Option<bool> {
    let sockets = tables.lines().filter_map(Socket::parse);
    let reaching = sockets.filter(|socket| (socket.local, socket.remote) == (theirs, ours));
    reaching.map(|socket| socket.is_of(own)).reduce(|all, one| all && one)
}

/// A line of the tables.
struct Socket {
    local: SocketAddr,
    remote: SocketAddr,
    connected: bool,
    user: u32,
    /// 0 for one that its program has closed.
    inode: u64,
}

impl Socket {
    fn parse(line: &str) -> Option<Self> {
        // Number, local and remote end, state, queues, timer, retransmits, user, timeout, inode.
        let mut words = line.split_ascii_whitespace().skip(1);
        let (local, remote) = (end(words.next()?)?, end(words.next()?)?);
        let connected = words.next()? == "01";
        let user = words.nth(3)?.parse().ok()?;
        let inode = words.nth(1)?.parse().ok()?;
        Some(Self { local, remote, connected, user, inode })
    }

    /// One that its program has closed is said to be root's, whosever it was.
    fn is_of(&self, own: Option<u32>) -> bool {
        self.connected && self.inode != 0 && (self.user == 0 || Some(self.user) == own)
    }
}

/// An end as the tables write it: the address in words of 32 bits, each a number of this machine's, and the port.
fn end(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let word = |at: usize| {
        let digits = address.get(8 * at..8 * (at + 1))?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
    };
    let ip = match address.len() {
        8 => IpAddr::from(word(0)?),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let mut bytes = [0; 16];
            bytes.copy_from_slice(words.as_flattened());
            IpAddr::from(bytes)
        }
        _ => return None,
    };
    Some(canonical(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?)))
}

/// The address without what the tables do not say, and as one of IPv4 if it stands for one.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};

    use super::*;

    const OWN: u32 = 1000;

    /// A line of a table, as the kernel writes it.
    fn line(local: SocketAddr, remote: SocketAddr, state: &str, user: u32, inode: u32) -> String {
        let end = |end: SocketAddr| {
            let bytes = match end.ip() {
                IpAddr::V4(ip) => ip.octets().to_vec(),
                IpAddr::V6(ip) => ip.octets().to_vec(),
            };
            let words = bytes.chunks(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap()));
            words.map(|word| format!("{word:08X}")).collect::<String>() + &format!(":{:04X}", end.port())
        };
        format!(
            "   3: {} {} {state} 00000000:00000000 00:00000000 00000000 {user:5}        0 {inode} 2 0000000000000000 20 0 0 10 -1\n",
            end(local),
            end(remote),
        )
    }

    fn at(ip: impl Into<IpAddr>, port: u16) -> SocketAddr {
        SocketAddr::new(ip.into(), port)
    }

    #[test]
    fn a_socket_in_use_is_known_by_its_user_and_any_other_is_not() {
        let (theirs, ours) = (at(Ipv4Addr::LOCALHOST, 40000), at(Ipv4Addr::LOCALHOST, 4180));
        let judge = |table: &str| judge(table, theirs, ours, Some(OWN));
        let line = |state, user, inode| line(theirs, ours, state, user, inode);
        for (state, user, inode, known) in [
            ("01", OWN, 7, true),
            ("01", 0, 7, true),
            ("01", OWN + 1, 7, false),
            ("01", NOBODY, 7, false),
            // Closed before it was looked at: its user is gone from the table.
            ("05", 0, 0, false),
            ("06", 0, 0, false),
            ("01", 0, 0, false),
            ("02", OWN, 7, false),
        ] {
            assert_eq!(judge(&line(state, user, inode)), Some(known), "{state} {user} {inode}");
        }
        let both = line("01", OWN, 7) + &line("01", OWN + 1, 8);
        assert_eq!(judge(&both), Some(false), "they cannot be told apart");
    }

    #[test]
    fn only_the_line_of_that_connection_counts() {
        let (theirs, ours) = (at(Ipv4Addr::LOCALHOST, 40000), at(Ipv4Addr::LOCALHOST, 4180));
        let other = at(Ipv4Addr::new(127, 0, 0, 2), 40000);
        let header = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
        for table in [
            String::new(),
            header.to_owned(),
            line(ours, theirs, "01", OWN, 7),
            line(theirs, at(ours.ip(), 4181), "01", OWN, 7),
            line(at(theirs.ip(), 40001), ours, "01", OWN, 7),
            line(other, ours, "01", OWN, 7),
            line(theirs, ours, "01", OWN, 7).replace(':', " "),
            "   0: 0100007F 0100007F 01\n   1: é00007F:9C40 0100007F:1054 01\n   2: :9C40 :1054 01\n"
                .to_owned(),
        ] {
            assert_eq!(judge(&table, theirs, ours, Some(OWN)), None, "{table}");
            let table = table + &line(theirs, ours, "01", OWN, 7);
            assert_eq!(judge(&table, theirs, ours, Some(OWN)), Some(true), "{table}");
        }
    }

    #[test]
    fn both_families_are_read_and_mapped_addresses_are_those_of_ipv4() {
        let ours = at(Ipv4Addr::LOCALHOST, 4180);
        let mapped = |address: SocketAddr| match address.ip() {
            IpAddr::V4(ip) => at(ip.to_ipv6_mapped(), address.port()),
            IpAddr::V6(_) => address,
        };
        let theirs = at(Ipv4Addr::LOCALHOST, 40000);
        let table = line(mapped(theirs), mapped(ours), "01", OWN, 7);
        assert_eq!(judge(&table, theirs, ours, Some(OWN)), Some(true));
        let (theirs, ours) = (at(Ipv6Addr::LOCALHOST, 40000), at(Ipv6Addr::LOCALHOST, 4180));
        assert_eq!(judge(&line(theirs, ours, "01", OWN, 7), theirs, ours, Some(OWN)), Some(true));
    }

    #[test]
    fn a_connection_of_this_process_is_its_own_until_it_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, theirs) = listener.accept().unwrap();
        assert!(is_own(theirs, accepted.local_addr().unwrap()));
        drop(client);
        assert!(!is_own(theirs, accepted.local_addr().unwrap()));
    }
}
