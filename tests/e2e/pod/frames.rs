//! Lines and frames: what is a request, what is none, and how each is answered.

use cofferdam_protocol::pod::MAX_REQUEST_LINE;
use cofferdam_tests::pod::Sidecar;
use cofferdam_tests::process::resident_kib;
use serde_json::{Value, json};

use super::site;

/// A request for `health` that is so many bytes long, without its newline.
fn health_of(bytes: usize) -> String {
    let (start, end) = (r#"{"id":"long","method":"health","params":{"pad":""#, r#""}}"#);
    format!("{start}{}{end}", "x".repeat(bytes - start.len() - end.len()))
}

/// The next line, which must be a `BAD_REQUEST` under that id.
#[track_caller]
fn bad_request(pod: &mut Sidecar, id: &Value, line: &str) -> Value {
    let answer = pod.line().unwrap();
    assert_eq!(answer["error"]["code"], "BAD_REQUEST", "{line}: {answer}");
    assert_eq!(&answer["id"], id, "{line}: {answer}");
    answer["error"]["data"].clone()
}

#[test]
fn health_tells_versions_and_process_with_and_without_params_before_and_after_initialize() {
    let site = site();
    let mut pod = site.spawn();
    for initialized in [false, true] {
        for line in [
            r#"{"id":"1","method":"health","params":{}}"#,
            r#"{"id":"1","method":"health","params":null}"#,
            r#"{"id":"1","method":"health","params":{"unknown":[{}]},"unknown":1}"#,
            r#"{"id":"1","method":"health"}"#,
            r#" { "method" : "health" , "id" : "1" } "#,
        ] {
            pod.send_line(line);
            let health = pod.answer("1")["result"].clone();
            assert_eq!(health["protocol"], 1, "{line}");
            assert_eq!(health["schemaVersion"], 1, "{line}");
            assert_eq!(health["coreVersion"], "0.2.0", "{line}");
            assert_eq!(health["pid"], pod.pid(), "{line}");
            assert_eq!(health["initialized"], initialized, "{line}");
        }
        if !initialized {
            pod.ok("initialize", site.initialize());
        }
    }
}

#[test]
fn an_unknown_method_is_named_so_before_and_after_initialize() {
    let site = site();
    let mut pod = site.spawn();
    pod.refused("UNKNOWN_METHOD", "no.such", json!({}));
    pod.ok("initialize", site.initialize());
    for method in ["no.such", "", "Health", "health ", "event", "task"] {
        pod.refused("UNKNOWN_METHOD", method, json!({}));
    }
}

#[test]
fn a_line_that_is_no_request_is_a_bad_request_and_the_next_one_is_answered() {
    let site = site();
    let mut pod = site.start();
    let cases = [
        ("not json", json!(null)),
        ("{", json!(null)),
        ("[1,2]", json!(null)),
        ("\"x\"", json!(null)),
        ("null", json!(null)),
        ("{}", json!(null)),
        (r#"{"id":"a"}"#, json!("a")),
        (r#"{"id":"b","method":7}"#, json!("b")),
        (r#"{"id":"c","method":null}"#, json!("c")),
        (r#"{"id":7,"method":"health"}"#, json!(null)),
        (r#"{"id":null,"method":"health"}"#, json!(null)),
        (r#"{"method":"health"}"#, json!(null)),
        (r#"{"id":"d","method":"health"} x"#, json!(null)),
        (r#"{"id":"e","method":"health"}{"id":"f","method":"health"}"#, json!(null)),
        (r#"{"id":"g","method":"health","params":[]}"#, json!("g")),
        (r#"{"id":"h","method":"health","params":5}"#, json!("h")),
        (r#"{"id":"i","method":"task.get","params":"x"}"#, json!("i")),
        (r#"{"id":"j","method":"task.get","params":{}}"#, json!("j")),
        (r#"{"id":"k","method":"task.get","params":{"taskId":5}}"#, json!("k")),
        (r#"{"id":"l","method":"task.turnStarted","params":{"taskId":"a","leaseId":"L"}}"#, json!("l")),
    ];
    for (line, id) in cases {
        pod.send_line(line);
        bad_request(&mut pod, &id, line);
        pod.ok("health", json!({}));
    }
}

#[test]
fn a_line_that_is_not_utf_8_is_a_bad_request() {
    let site = site();
    let mut pod = site.start();
    for line in [&b"{\"id\":\"\xff\",\"method\":\"health\"}"[..], b"\xc3\x28", b"\xff\xfe{\x00}\x00"] {
        pod.send_line(line);
        bad_request(&mut pod, &json!(null), &format!("{line:?}"));
        pod.ok("health", json!({}));
    }
}

#[test]
fn json_may_be_64_levels_deep_and_no_deeper() {
    let site = site();
    let mut pod = site.start();
    let nested = |levels: usize| {
        // The request and its params are the first two.
        let inner = levels - 2;
        let (open, close) = ("[".repeat(inner), "]".repeat(inner));
        format!(r#"{{"id":"deep","method":"health","params":{{"x":{open}{close}}}}}"#)
    };
    pod.send_line(nested(64));
    assert!(pod.answer("deep").get("result").is_some());
    for levels in [65, 129, 100_000] {
        pod.send_line(nested(levels));
        let answer = pod.line().unwrap();
        assert_eq!(answer["error"]["code"], "BAD_REQUEST", "{levels}: {answer}");
        pod.ok("health", json!({}));
    }
}

#[test]
fn blank_lines_carriage_returns_and_a_byte_order_mark_are_passed_over() {
    let site = site();
    let mut pod = site.spawn();
    pod.send_bytes(
        "\u{feff}{\"id\":\"1\",\"method\":\"health\"}\r\n\n\r\n   \n\t\n{\"id\":\"2\",\"method\":\"health\"}\n",
    );
    for id in ["1", "2"] {
        let line = pod.line().unwrap();
        assert_eq!(line["id"], id);
        assert!(line.get("result").is_some(), "{line}");
    }
}

#[test]
fn a_line_that_arrives_byte_by_byte_is_one_request() {
    let site = site();
    let mut pod = site.spawn();
    for byte in "{\"id\":\"字\",\"method\":\"health\"}\n".as_bytes() {
        pod.send_bytes([*byte]);
    }
    assert_eq!(pod.line().unwrap()["id"], "字");
}

#[test]
fn a_line_may_be_one_mebibyte_long_and_no_longer() {
    let site = site();
    let mut pod = site.start();
    for end in ["\n", "\r\n"] {
        pod.send_bytes(health_of(MAX_REQUEST_LINE) + end);
        assert_eq!(pod.line().unwrap()["id"], "long");
        pod.send_bytes(health_of(MAX_REQUEST_LINE + 2) + end);
        let data = bad_request(&mut pod, &json!(null), "a line too long");
        assert_eq!(data, json!({"limit": 1_048_576}));
        pod.ok("health", json!({}));
    }
    pod.send_line(health_of(MAX_REQUEST_LINE + 1));
    bad_request(&mut pod, &json!(null), "a line one byte too long");
}

#[test]
fn a_line_without_end_takes_no_memory() {
    let site = site();
    let mut pod = site.start();
    pod.ok("health", json!({}));
    let before = resident_kib(pod.pid());
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..128 {
        pod.send_bytes(&piece);
    }
    // All but what a pipe holds has been read by now.
    let meanwhile = resident_kib(pod.pid());
    assert!(meanwhile < before + (24 << 10), "{before} KiB became {meanwhile} KiB");
    pod.send_bytes(b"\n");
    bad_request(&mut pod, &json!(null), "128 MiB");
    pod.ok("health", json!({}));
}

#[test]
fn an_id_comes_back_as_it_was_and_one_that_is_used_twice_is_answered_twice() {
    let site = site();
    let mut pod = site.start();
    for id in ["", "0", " ", "a\"b\\c\n\t\u{0}", "日本語😀\u{2028}", &"i".repeat(100_000)] {
        pod.send_line(json!({"id": id, "method": "health"}).to_string());
        assert_eq!(pod.line().unwrap()["id"], id);
    }
    let line = r#"{"id":"twin","method":"config.get"}"#;
    pod.send_bytes(format!("{line}\n{line}\n"));
    assert_eq!(pod.answer("twin"), pod.answer("twin"));
}
