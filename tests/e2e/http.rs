//! The console's address: where it is, who gets in, and that it holds nobody up.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Command;

use cofferdam_tests::process;
use cofferdam_tests::site::{Daemon, Site, run};
use cofferdam_tests::web;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use rustix::process::{Resource, getrlimit, setrlimit};

use super::site;

/// A daemon with a console at a free port, and its link.
fn start(site: &Site) -> (Daemon, String) {
    let daemon = Daemon::start(site.serve().args(["--http", "127.0.0.1:0"]), &site.socket());
    let line = daemon.line();
    (daemon, line.strip_prefix("console: http://").unwrap_or_else(|| panic!("{line}")).to_owned())
}

/// Everything the server says to one request, until it closes.
fn ask(address: &str, line: &str, headers: &str) -> String {
    let mut stream = connect(address);
    write!(stream, "{line} HTTP/1.1\r\nHost: {address}\r\n{headers}Connection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn connect(address: &str) -> TcpStream {
    web::connect(address)
}

/// Signs in with a link; returns the cookie as a header.
fn sign_in(link: &str) -> (String, String) {
    let (address, path) = link.split_once('/').unwrap();
    let answer = ask(address, &format!("GET /{path}"), "");
    let cookie = answer.split_once("set-cookie: ").unwrap_or_else(|| panic!("{answer}")).1;
    (address.to_owned(), format!("Cookie: {}\r\n", cookie.split(';').next().unwrap()))
}

fn curl(site: &Site) -> Command {
    let mut command = site.command("curl");
    command.args(["--silent", "--show-error", "--unix-socket"]).arg(site.state().join("run/control.sock"));
    command
}

#[test]
fn the_printed_link_signs_one_browser_in_and_the_next_one_is_had_over_the_control_socket() {
    let site = site();
    let (daemon, link) = start(&site);
    let (address, cookie) = sign_in(&link);
    let page = ask(&address, "GET /", &cookie);
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("__DSH_IPP__"), "{page}");
    assert!(ask(&address, "GET /api/v1/ckpt/store", &cookie).contains("pack_bytes"));
    assert!(ask(&address, "GET /", "").starts_with("HTTP/1.1 401"));
    let (_, path) = link.split_once('/').unwrap();
    assert!(ask(&address, &format!("GET /{path}"), "").starts_with("HTTP/1.1 401"), "it is spent");
    let ran = run(curl(&site).args(["-X", "POST", "http://localhost/api/v1/console/code"]));
    let next = ran.stdout.split("http://").nth(1).unwrap_or_else(|| panic!("{ran:?}"));
    sign_in(next.split('"').next().unwrap());
    let (code, stderr) = daemon.stop();
    assert_eq!(code, 0, "{stderr}");
    assert!(!stderr.contains(path.split_once('=').unwrap().1), "a code is in the log");
}

#[test]
fn a_restart_keeps_the_console_s_name_and_whoever_is_signed_in() {
    let site = site();
    let (daemon, link) = start(&site);
    let (address, cookie) = sign_in(&link);
    let (name, port) = address.split_once(':').unwrap();
    assert!(name.starts_with('c') && name.ends_with(".localhost"), "{name}");
    daemon.kill();
    let mut command = site.serve();
    let daemon = Daemon::start(command.args(["--http", &format!("127.0.0.1:{port}")]), &site.socket());
    assert!(daemon.line().starts_with(&format!("console: http://{address}/login?code=")));
    let page = ask(&address, "GET /", &cookie);
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("__DSH_IPP__"), "{page}");
    let ran = run(&mut site.cofferdam(&["console", "--plain"]));
    assert!(ran.stdout.starts_with(&format!("http://127.0.0.1:{port}/login?code=")), "{ran:?}");
    assert!(ran.stderr.contains("every server"), "{ran:?}");
    sign_in(ran.stdout.trim().strip_prefix("http://").unwrap());
    let ran = run(&mut site.cofferdam(&["console", "--sign-out"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Signed out: 2 browsers.\n"), "{ran:?}");
    assert!(ask(&address, "GET /", &cookie).starts_with("HTTP/1.1 401"));
    assert_eq!(run(&mut site.cofferdam(&["console", "--sign-out", "--plain"])).code, 2);
}

#[test]
fn listeners_and_idle_connections_do_not_hold_up_the_end() {
    let site = site();
    let (daemon, link) = start(&site);
    let (address, cookie) = sign_in(&link);
    let mut listener = connect(&address);
    write!(listener, "GET /api/v1/events HTTP/1.1\r\nHost: {address}\r\n{cookie}\r\n").unwrap();
    let mut bytes = [0; 4096];
    let count = listener.read(&mut bytes).unwrap();
    assert!(bytes[..count].starts_with(b"HTTP/1.1 200"));
    let _idle = connect(&address);
    let (code, stderr) = daemon.stop();
    assert_eq!(code, 0, "{stderr}");
    // The stream ended as it should.
    let mut rest = String::new();
    listener.read_to_string(&mut rest).unwrap();
}

#[test]
fn only_loopback_addresses_that_are_free_are_served() {
    let site = site();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
        let ran = run(site.serve().args(["--http", address]));
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains("loopback"), "{ran:?}");
        assert!(!site.state().exists(), "it began");
    }
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ran = run(site.serve().args(["--http", &address]));
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.trim_end().lines().last().unwrap().contains(&address), "{ran:?}");
    assert!(!site.socket().exists());
    let ran = run(site.ws_ckpt_daemon().args(["--http", "off"]));
    assert_eq!(ran.code, 2, "the other daemon has no such thing: {ran:?}");
}

#[test]
fn a_crowd_of_connections_leaves_the_daemon_its_descriptors() {
    let site = site();
    let mut command = site.command("sh");
    command.args(["-c", "ulimit -n 256; exec \"$@\"", "sh"]);
    let serve = site.serve();
    command.arg(serve.get_program()).args(serve.get_args()).args(["--http", "127.0.0.1:0"]);
    let daemon = Daemon::start(&mut command, &site.socket());
    let link = daemon.line();
    let address = link.strip_prefix("console: http://").unwrap().split_once('/').unwrap().0;
    let crowd: Vec<_> = (0..150).filter_map(|_| TcpStream::connect(web::address(address)).ok()).collect();
    assert!(crowd.len() > 100);
    let ws = site.workspace("ws");
    daemon.init(&ws);
    daemon.checkpoint(&ws, "one");
    daemon.rollback(&ws, "one");
    drop(crowd);
    assert!(ask(address, "GET /", "").starts_with("HTTP/1.1 401"));
}

/// As many connections as this process may have, at most 10 000, that say nothing; and how many were refused.
fn flood(
    connect: impl Fn(BorrowedFd<'_>) -> rustix::io::Result<()>,
    family: AddressFamily,
) -> (Vec<OwnedFd>, usize) {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let most = limit
        .maximum
        .map_or(10_000, |most| usize::try_from(most).unwrap_or(10_000).saturating_sub(500).min(10_000));
    let (mut open, mut refused) = (Vec::new(), 0);
    for _ in 0..most {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(family, SocketType::STREAM, flags, None).unwrap();
        match connect(socket.as_fd()) {
            Ok(()) | Err(Errno::INPROGRESS) => open.push(socket),
            Err(Errno::AGAIN | Errno::CONNREFUSED) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(most > 3000, "too few to mean anything: {most}");
    (open, refused)
}

#[test]
fn ten_thousand_idle_connections_are_refused_beyond_the_limit_and_the_daemon_goes_on() {
    let site = site();
    let (daemon, link) = start(&site);
    let (address, cookie) = sign_in(&link);
    let to = web::address(&address);
    let ws = site.workspace("ws");
    daemon.init(&ws);

    let (crowd, _) = flood(|socket| rustix::net::connect(socket, &to), AddressFamily::INET);
    assert!(process::open_files(daemon.pid()) < 600, "{}", process::open_files(daemon.pid()));
    daemon.checkpoint(&ws, "one");
    let asked = run(curl(&site).arg("http://localhost/api/v1/ckpt/store"));
    assert!(asked.stdout.contains("pack_bytes"), "{asked:?}");
    drop(crowd);
    assert!(ask(&address, "GET /api/v1/ckpt/store", &cookie).contains("pack_bytes"));

    let control = SocketAddrUnix::new(site.state().join("run/control.sock")).unwrap();
    let (crowd, refused) = flood(|socket| rustix::net::connect(socket, &control), AddressFamily::UNIX);
    assert!(refused > 0 && crowd.len() < 5000, "{} of them waited", crowd.len());
    assert!(process::open_files(daemon.pid()) < 600, "{}", process::open_files(daemon.pid()));
    daemon.checkpoint(&ws, "two");
    assert!(ask(&address, "GET /api/v1/ckpt/store", &cookie).contains("pack_bytes"));
    drop(crowd);
    let asked = run(curl(&site).arg("http://localhost/api/v1/ckpt/store"));
    assert!(asked.stdout.contains("pack_bytes"), "{asked:?}");
    assert_eq!(daemon.stop().0, 0);
}
