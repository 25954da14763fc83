//! What a process below a supervisor is told by each of our surfaces. A script stands in for the supervisor and confines nothing, so
//! that such a process reaches them at all.

use cofferdam_storage::sandbox::NOT_SERVED;
use cofferdam_tests::files;
use cofferdam_tests::host::HostSite;
use cofferdam_tests::site::run;

use crate::programs;

/// Asks each surface something; prints what it hears.
const ASK: &str = r#"
import socket, struct, sys
control, ckpt, host = sys.argv[1:]
request = b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % host.encode()
def heard(at, family, request):
    s = socket.socket(family)
    s.settimeout(60)
    s.connect(at)
    try:
        s.sendall(request)
        if at == ckpt: s.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    all = b""
    try:
        while more := s.recv(65536): all += more
    except OSError:
        pass
    return all
for name, all in [
    ("control", heard(control, socket.AF_UNIX, request)),
    ("ckpt", heard(ckpt, socket.AF_UNIX, struct.pack("<I", 4) + b"\xff" * 4)),
    ("http", heard(("127.0.0.1", int(host.split(":")[1])), socket.AF_INET, request)),
]:
    print(name, all[:12], NOT_SERVED in all)
"#;

#[test]
fn every_surface_refuses_a_process_below_a_supervisor() {
    // Tasks of root's run as somebody else: of what root itself connects over TCP nobody asks whose it is.
    let site = HostSite::of_ordinary_user(programs()).with_http();
    let place = |name: &str| site.path(name).to_str().unwrap().to_owned();
    let (script, heard, told) = (place("ask.py"), place("heard"), place("told"));
    files::write(&script, ASK.replace("NOT_SERVED", &format!("b\"{NOT_SERVED}\"")));
    let supervisor = format!(
        r#"#!/bin/sh
say() {{ echo "$1" >&0; }}
read -r order
say '{{"report":"ready","layers":[]}}'
case $order in
    *'"probe":{{'*) say '{{"report":"probe","probe":"denied","fsDenied":true,"note":""}}' ;;
    *)
        say '{{"report":"started"}}'
        /usr/bin/python3 {script} $(cat {told}) > {heard} 2>&1 < /dev/null
        say '{{"report":"exited","code":0,"signal":null}}'
        ;;
esac
"#
    );
    let site = site.with_supervisor(&supervisor);
    let daemon = site.start_with_shell();
    let line = daemon.line();
    let address = line.strip_prefix("console: http://").unwrap().split('/').next().unwrap();
    let port = address.rsplit(':').next().unwrap();
    let (control, ckpt) = (site.path("state/run/control.sock"), site.path("ckpt.sock"));
    let surfaces = [control.to_str().unwrap(), ckpt.to_str().unwrap(), &format!("127.0.0.1:{port}")];
    files::write(&told, surfaces.join(" "));
    site.ok(&["task", "run", "anything", "--wait"]);
    let answers = String::from_utf8(files::read(&heard)).unwrap();
    let answers: Vec<_> = answers.lines().collect();
    assert_eq!(answers.len(), 3, "{answers:?}");
    assert!(answers.iter().all(|answer| answer.ends_with(" True")), "{answers:?}");
    assert!(answers[0].contains("HTTP/1.1 403") && answers[2].contains("HTTP/1.1 403"), "{answers:?}");
    // The same, asked by somebody who runs in no sandbox.
    let outside = run(site.program("/usr/bin/python3").arg(&script).args(surfaces));
    let answers: Vec<_> = outside.stdout.lines().collect();
    assert!(answers.len() == 3 && answers.iter().all(|answer| answer.ends_with(" False")), "{outside:?}");
    assert!(answers[0].contains("HTTP/1.1 200"), "{outside:?}");
}
