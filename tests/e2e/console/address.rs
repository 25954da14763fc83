//! The console's name: who gets its cookie, and who does not.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};

use cofferdam_tests::files;

use super::*;

/// A server of somebody else on this machine: it answers with a page, and tells what came with each request.
fn neighbour() -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (heard, told) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // Browsers also connect and say nothing for a while.
            let heard = heard.clone();
            std::thread::spawn(move || answer(stream.unwrap(), &heard));
        }
    });
    (port, told)
}

fn answer(stream: TcpStream, heard: &Sender<String>) {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let body = "<!doctype html><title>x</title>hello";
    let length = body.len();
    let answered = write!(
        stream.get_mut(),
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    // Neither the browser nor the test has to wait for it.
    let _ = answered.map(|()| heard.send(head));
}

#[test]
fn a_server_at_another_port_of_this_machine_gets_no_cookie_and_can_do_nothing_with_the_page_s() {
    let Some(visit) = Visit::new() else { return };
    let (daemon, browser) = (visit.site.start(), &visit.browser);
    let own = visit.enter(&daemon);
    assert!(own.contains(".localhost:"), "{own}");
    let port = own.trim_end_matches('/').rsplit(':').next().unwrap().to_owned();
    let (theirs, told) = neighbour();
    for name in ["127.0.0.1", "localhost", "other.localhost"] {
        browser.open(&format!("http://{name}:{theirs}/"));
        let head = told.recv().unwrap();
        assert!(!head.to_lowercase().contains("cofferdam"), "{name}: {head}");
        // Nor does a page of theirs reach anything of ours.
        for ours in [own.clone(), format!("http://127.0.0.1:{port}/"), format!("http://localhost:{port}/")] {
            let reached = browser.script_async(&format!(
                "const tried = [];
                 for (const [path, method] of [['api/v1/ckpt/workspaces', 'GET'], ['api/v1/pod/getState', 'POST'],
                     ['isolation-pod/bootstrap', 'GET'], ['api/v1/events', 'GET']]) {{
                     try {{
                         const answer = await fetch({ours} + path, {{method, credentials: 'include', body: method === 'POST' ? '{{}}' : undefined}});
                         tried.push(path + ' ' + answer.status + ' ' + await answer.text());
                     }} catch {{ }}
                 }}
                 // Nobody reads what comes of these; they would do something all the same.
                 const body = JSON.stringify({{method: 'setConfig', args: {{patch: {{maxConcurrent: 7}}}}, patch: {{maxConcurrent: 7}}}});
                 for (const path of ['isolation-pod/api', 'api/v1/pod/setConfig']) {{
                     await fetch({ours} + path, {{method: 'POST', mode: 'no-cors', credentials: 'include', body}}).catch(() => null);
                 }}
                 return tried;",
                ours = json!(ours)
            ));
            assert_eq!(reached, json!([]), "{name} → {ours}");
        }
        while told.try_recv().is_ok() {}
    }
    assert_eq!(visit.site.json(&["config", "get"])["maxConcurrent"], 3);
    browser.open(&own);
    browser.wait("[data-link=live]");
}

#[test]
fn a_link_of_another_site_s_page_asks_first_and_then_leads_in() {
    let Some(visit) = Visit::new() else { return };
    let (daemon, browser) = (visit.site.start(), &visit.browser);
    let own = visit.enter(&daemon);
    let (theirs, _told) = neighbour();
    for theirs in [format!("http://127.0.0.1:{theirs}/"), format!("http://localhost:{theirs}/")] {
        browser.open(&theirs);
        browser.script(&format!("location.href = {}", json!(own)));
        browser.click("[data-why=elsewhere] [data-action=go-on]");
        browser.wait("[data-link=live]");
    }
}

#[test]
fn whoever_is_signed_out_is_told_how_to_get_in_and_the_plain_link_works() {
    let Some(visit) = Visit::new() else { return };
    let (daemon, browser) = (visit.site.start(), &visit.browser);
    let own = visit.enter(&daemon);
    // A link that was used already does no harm.
    browser.open(&format!("{own}login?code=spent"));
    browser.wait("[data-link=live]");
    visit.site.ok(&["console", "--sign-out"]);
    // Whoever is looking sees it, too.
    browser.wait("[role=alert][data-code=TOKEN_MISSING]");
    browser.open(&own);
    browser.says("body", "cofferdam console");
    assert_eq!(browser.script("return globalThis.__DSH_IPP__ ?? null"), Value::Null);
    browser.open(&format!("{own}login?code=spent"));
    browser.says("body", "cofferdam console");
    assert_eq!(browser.count("[data-why=link-spent]"), 1);
    let plain = visit.site.ok(&["console", "--plain"]);
    assert!(plain.starts_with("http://127.0.0.1:"), "{plain}");
    browser.open(plain.trim());
    browser.wait("[data-link=live]");
    // What does not last is no success.
    let file = visit.site.path("state/console.json");
    files::remove(&file);
    files::mkdir(&file);
    let ran = visit.site.run(&["console", "--sign-out"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("console.json") && ran.stderr.contains("sign out once more"), "{ran:?}");
}

#[test]
fn the_first_sight_of_the_board_is_less_than_100_kib() {
    let Some(visit) = Visit::new() else { return };
    let (daemon, browser) = (visit.site.start_with(&[]), &visit.browser);
    for n in 0..30 {
        visit.site.ok(&["task", "run", &format!("say this is answer {n}"), "--wait"]);
    }
    visit.enter(&daemon);
    browser.wait("[data-task]");
    let taken = browser.script(
        "const entries = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
         return entries.reduce((sum, entry) => sum + entry.transferSize, 0)",
    );
    let taken = taken.as_u64().unwrap();
    assert!((10_000..100 << 10).contains(&taken), "{taken} bytes");
    visit.assert_quiet();
}
