//! Tests: no secret survives, what is none stays, and hostile text takes no time.

use std::time::Duration;

use cofferdam_protocol::session::{ToolCall, ToolFunction};
use proptest::prelude::*;

use super::*;
use crate::clock::{Clock, SystemClock};

/// Each text and what is left of it.
#[track_caller]
fn check(cases: &[(&str, &str)]) {
    for (before, after) in cases {
        assert_eq!(text(before), *after, "{before}");
        assert_eq!(text(after), *after, "redacted again");
    }
}

#[test]
fn assigned_values_of_secret_names_go_and_the_rest_stays() {
    check(&[
        ("use api_key=sk-A1b2C3d4A1b2C3d4 please", "use api_key=<redacted> please"),
        ("password: hunter2, user: bob", "password: <redacted>, user: bob"),
        ("export AWS_SECRET_ACCESS_KEY=wJalr/XUtn", "export AWS_SECRET_ACCESS_KEY=<redacted>"),
        (r#"{"client_secret": "a b", "port": 1}"#, r#"{"client_secret": "<redacted>", "port": 1}"#),
        (r#"echo {\"token\":\"a\\\"b\"}"#, r#"echo {\"token\":\"<redacted>\"}"#),
        (r#"say "x \"password\": \"pa ss\" y" z"#, r#"say "x \"password\": \"<redacted>\" y" z"#),
        ("'passphrase' => 'a b'", "'passphrase' => '<redacted>'"),
        (r#"config["dbPassword"] = "x y";"#, r#"config["dbPassword"] = "<redacted>";"#),
        ("/login?access_token=abc&next=1", "/login?access_token=<redacted>&next=1"),
        ("**Password:** hunter2", "**Password:** <redacted>"),
        ("API key: abc123", "API key: <redacted>"),
        ("token2 := 'x'", "token2 := '<redacted>'"),
        ("password=\"not closed\nnext", "password=\"<redacted>\nnext"),
    ]);
}

#[test]
fn headers_lose_their_value_to_the_end_of_the_line_or_of_the_quotes() {
    check(&[
        ("Cookie: a=b; c=d\r\nHost: x", "Cookie: <redacted>\r\nHost: x"),
        ("set-cookie: id=1; Path=/\n", "set-cookie: <redacted>\n"),
        ("curl -H 'Cookie: a=b c' http://x", "curl -H 'Cookie: <redacted>' http://x"),
        ("Authorization: Basic dXNlcjpwdw==", "Authorization: Basic <redacted>"),
        ("curl -H \"Authorization: Bearer abc\" x", "curl -H \"Authorization: Bearer <redacted>\" x"),
        ("authorization: whatever it is", "authorization: <redacted>"),
        ("Authorization: Bearer <redacted>", "Authorization: Bearer <redacted>"),
        ("bearer A1b2C3d4, then", "bearer <redacted>, then"),
    ]);
}

#[test]
fn an_escaped_character_is_no_part_of_the_word_behind_it() {
    let token = "ghp_A1b2C3d4A1b2C3d4";
    for before in [
        r"x\n",
        r"x\t",
        r"\r",
        r"a\u003d",
        r"\x3D",
        "a%3D",
        "\u{1b}[32m",
        r"\u001b[1;31m",
        r"\033[m",
        r"\x1b[0m",
    ] {
        check(&[(&format!("{before}{token}"), &format!("{before}<redacted>"))]);
    }
    check(&[(r"a\nBearer A1b2C3d4 b", r"a\nBearer <redacted> b")]);
    for word in ["alpha", "_", "m", "3d", "n"] {
        let whole = format!("{word}{token}");
        check(&[(&whole, &whole)]);
    }
}

#[test]
fn a_flag_in_a_list_announces_the_next_item() {
    check(&[
        (r#"run(["x", "--password", "hunter2", "y"])"#, r#"run(["x", "--password", "<redacted>", "y"])"#),
        (r"['--token','a b']", r"['--token','<redacted>']"),
        (r#"{\"a\":[\"--token\",\"a b\"]}"#, r#"{\"a\":[\"--token\",\"<redacted>\"]}"#),
        ("[\n  \"--token\",\n  \"abc\"\n]", "[\n  \"--token\",\n  \"<redacted>\"\n]"),
        (r#"["--password", "--verbose"]"#, r#"["--password", "--verbose"]"#),
        (r#"["--password"]"#, r#"["--password"]"#),
        (r#"use "--token" or "--user" here"#, r#"use "--token" or "--user" here"#),
        (r#""--token", or else"#, r#""--token", or else"#),
        (r#""--token","#, r#""--token","#),
    ]);
}

#[test]
fn flags_urls_and_private_keys_lose_their_secret() {
    check(&[
        ("login --token abc --verbose", "login --token <redacted> --verbose"),
        ("login --password 'a b' x", "login --password '<redacted>' x"),
        ("login --api-key=abc x", "login --api-key=<redacted> x"),
        ("https://bob:hunter2@example.org/x", "https://bob:<redacted>@example.org/x"),
        ("redis://:p@ss@h:6379/@x", "redis://:<redacted>@h:6379/@x"),
        ("https://AKIAIOSFODNN7EXAMPLE:pw@h", "https://<redacted>@h"),
        ("a -----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY----- b", "a <redacted> b"),
        (
            "-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBgkqhkiG9w0BAQ\\nEFAASCBKcwggSjAgEA\\nand",
            "<redacted>\\nand",
        ),
    ]);
}

#[test]
fn tokens_are_known_by_how_they_begin() {
    for secret in secrets_without_a_name() {
        check(&[
            (&format!("see {secret}, then"), "see <redacted>, then"),
            (&format!("(\"{secret}\")"), "(\"<redacted>\")"),
        ]);
    }
}

#[test]
fn ordinary_text_is_borrowed_as_it_is() {
    for said in [
        "",
        "list the files: a.txt, b.txt = 2",
        "max_tokens=4096, tokens: 12 and token_count: 5",
        "let token = &self; let t = Token::new(); fn f(token: &str)",
        "the bearer of bad news; a bearer authentication scheme",
        "http://localhost:8080/a@b and git@example.org:x/y and time 12:30:00",
        "task-force disk-usage-by-directory npm_config_user_agent hf_hub_download eyJ",
        "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\n-----END CERTIFICATE-----",
        "grep -- '-----BEGIN PRIVATE KEY-----' .",
        "password: \"\" secret=",
        "größe: ✓ 密码",
    ] {
        assert!(matches!(text(said), Cow::Borrowed(_)), "{said}: {}", text(said));
    }
}

fn call(arguments: &str) -> Message {
    Message {
        role: "assistant".to_owned(),
        content: Content::Text(String::new()),
        tool_call_id: None,
        name: None,
        tool_calls: Some(vec![ToolCall {
            id: "c".to_owned(),
            kind: "function".to_owned(),
            function: ToolFunction { name: "shell".to_owned(), arguments: arguments.to_owned() },
        }]),
    }
}

fn arguments_of(message: &Message) -> &str {
    &message.tool_calls.as_ref().unwrap()[0].function.arguments
}

#[test]
fn arguments_of_tools_are_printed_compactly_with_sorted_keys_and_without_secrets() {
    for (before, after) in [
        (r#"{ "path": "notes.txt", "limit": 10 }"#, r#"{"limit":10,"path":"notes.txt"}"#),
        (
            r#"{"password": "hunter2", "command": "deploy --verbose"}"#,
            r#"{"command":"deploy --verbose","password":"<redacted>"}"#,
        ),
        (
            r#"{"X-Api-Key":1,"a":{"cookie":["x"]}}"#,
            r#"{"X-Api-Key":"<redacted>","a":{"cookie":"<redacted>"}}"#,
        ),
        (r#"{"token":null,"secret":false}"#, r#"{"secret":false,"token":null}"#),
        (r#"{"argv":["x","--token","abc","y"]}"#, r#"{"argv":["x","--token","<redacted>","y"]}"#),
        (r#"["curl -H 'Cookie: a=b'"]"#, r#"["curl -H 'Cookie: <redacted>'"]"#),
        (r#"{"sk-A1b2C3d4A1b2C3d4":1}"#, r#"{"<redacted>":1}"#),
        ("no json, password=x", "no json, password=<redacted>"),
        ("", ""),
    ] {
        let mut said = call(before);
        for _ in 0..2 {
            message(&mut said);
            assert_eq!(arguments_of(&said), after);
        }
    }
}

#[test]
fn arguments_that_nest_too_deeply_are_scrubbed_as_text() {
    let mut said = call(&format!("{}{{\"password\":\"hunter2\"}}", "[".repeat(100_000)));
    message(&mut said);
    assert!(!arguments_of(&said).contains("hunter2"));
}

#[test]
fn every_kind_of_content_is_scrubbed() {
    let mut said = call("{}");
    said.content = Content::Blocks(vec![
        Block::Text { text: "token=a".to_owned() },
        Block::ToolResult { tool_use_id: "c".to_owned(), content: "token=b".to_owned(), is_error: false },
    ]);
    message(&mut said);
    let clean = "token=<redacted>".to_owned();
    let result = Block::ToolResult { tool_use_id: "c".to_owned(), content: clean.clone(), is_error: false };
    assert_eq!(said.content, Content::Blocks(vec![Block::Text { text: clean }, result]));
}

#[test]
fn hostile_texts_cost_no_more_than_others_of_their_length() {
    let clock = SystemClock::new();
    for piece in [
        "://a:b",
        "://a:b@",
        "eyJ-",
        "npm_a-",
        "-",
        "-----BEGIN PRIVATE KEY-----",
        "token=)",
        "\"",
        "cookie:",
        "= ",
        "password=\"",
        "bearer ",
        "bearer\t",
        "\\",
        "\\\"",
        "key ",
        "api key",
        "<redacted>",
        "<",
        "--token ",
        "a=",
        "-----BEGIN A ",
        "xoxb-a-",
        "token:\\",
        ":",
        "authorization: ",
    ] {
        let hostile = piece.repeat((1 << 18) / piece.len());
        let before = clock.monotonic();
        let clean = text(&hostile).into_owned();
        // Quadratic time would be minutes.
        assert!(clock.monotonic() - before < Duration::from_secs(10), "{piece}");
        assert_eq!(text(&clean), clean, "{piece}");
    }
}

fn secrets_without_a_name() -> Vec<String> {
    let body = "A1b2C3d4E5f6G7h8I9j0K1l2";
    let prefixes = [
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
        "sk-",
        "sk-proj-",
        "glpat-",
        "npm_",
        "hf_",
        "AIza",
        "xoxb-",
        "xoxp-",
        "AKIA",
        "ASIA",
        "LTAI",
    ];
    let mut secrets: Vec<String> = prefixes.iter().map(|prefix| format!("{prefix}{body}")).collect();
    secrets.push(format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{body}"));
    secrets
}

/// Text between secrets: words, and what a scanner could stumble over.
fn filler() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        Just(" "),
        Just("\n"),
        Just("\""),
        Just("'"),
        Just("\\"),
        Just(":"),
        Just("="),
        Just("-"),
        Just("--"),
        Just("://"),
        Just("@"),
        Just("<redacted>"),
        Just("token"),
        Just("password: "),
        Just("Cookie:"),
        Just("é"),
        Just("bearer"),
        Just("Authorization"),
        Just("-----BEGIN PRIVATE KEY-----"),
        Just("-----END PRIVATE KEY-----"),
        Just("eyJ"),
        Just("sk-"),
        Just("key"),
        Just("&"),
        Just("ABCDEFGH"),
        Just("a.b"),
        Just("AKIA"),
        Just(")"),
    ];
    proptest::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat())
}

/// A text around a secret by which it is known, and the secret.
fn announced() -> impl Strategy<Value = (String, String)> {
    let secret = "[A-Za-z]{3}[0-9][A-Za-z0-9]{12,30}";
    let forms = prop_oneof![
        Just("password={}"),
        Just("\"api_key\": \"{}\""),
        Just("--token {}"),
        Just("Cookie: id={}"),
        Just("Authorization: Basic {}"),
        Just("Bearer {}"),
        Just("x://u:{}@h"),
        Just("sk-{}"),
        Just("ghp_{}"),
        Just("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----"),
        Just("secret => '{}'"),
    ];
    (forms, secret).prop_map(|(form, secret)| (form.replace("{}", &secret), secret))
}

proptest! {
    #[test]
    fn no_secret_survives_whatever_stands_around_it(
        before in filler(), (announced, secret) in announced(), after in filler(),
    ) {
        let said = format!("{before}\n{announced}\n{after}");
        let clean = text(&said);
        prop_assert!(!clean.contains(&secret), "{said:?} -> {clean:?}");
    }

    #[test]
    fn redacting_twice_changes_nothing(parts in proptest::collection::vec((filler(), announced()), 0..4)) {
        let said: String = parts.iter().map(|(filler, (announced, _))| format!("{filler}{announced}")).collect();
        let clean = text(&said).into_owned();
        prop_assert_eq!(text(&clean), clean.clone());
        let mut once = call(&said);
        message(&mut once);
        let mut twice = once.clone();
        message(&mut twice);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn any_text_at_all_is_taken(said in any::<String>()) {
        let clean = text(&said).into_owned();
        prop_assert_eq!(text(&clean), clean.clone());
    }
}
