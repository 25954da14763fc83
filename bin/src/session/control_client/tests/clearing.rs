//! Removals in batches, and what is known after one of them fails.

use super::*;

/// Answers a removal: everything that was asked for is gone.
const DELETE_ALL: &str = r#"
    take
    ids=$(sed 's/.*"session_ids":\[\([^]]*\)\],"protected.*/\1/' "request.$taken")
    done='{"ok":true,"data":{"action":"clear","deleted":['$ids'],"skipped":[]}}'
"#;

#[test]
fn ids_are_sent_128_at_a_time_in_their_order_with_all_that_is_protected() {
    let core = Core::new(&format!("{DELETE_ALL} answer \"$done\""));
    let mut asked = ids(256);
    // The same id twice is the program's to judge.
    asked.push(asked[0].clone());
    let protected = protected(2);
    let outcome = core.client().clear("/w", &asked, &protected).unwrap();
    assert_eq!(outcome.deleted, asked);
    assert!(outcome.skipped.is_empty() && outcome.interruption.is_none());
    let requests = core.requests();
    assert_eq!(requests.len(), 3);
    for (request, batch) in requests.iter().zip(asked.chunks(128)) {
        assert!(request.len() < 16 << 10, "{}", request.len());
        let expected = serde_json::json!({
            "action": "clear", "workspace_scope": "/w", "session_ids": batch, "protected_session_ids": protected,
        });
        assert_eq!(serde_json::from_str::<Value>(request).unwrap(), expected);
    }
}

#[test]
fn without_ids_nothing_is_run() {
    let outcome = SessionControlClient::new("/nonexistent/core").clear("/w", &[], &protected(128)).unwrap();
    assert!(outcome.deleted.is_empty() && outcome.interruption.is_none());
}

#[test]
fn more_than_128_protected_ids_are_refused_before_anything_is_run() {
    let client = SessionControlClient::new("/nonexistent/core");
    for asked in [ids(0), ids(1)] {
        let error = client.clear("/w", &asked, &protected(129)).unwrap_err();
        assert_eq!(error.code, "invalid_request");
    }
    assert_eq!(client.prepare_clear_all("/w", &protected(129)).unwrap_err().code, "invalid_request");
}

#[test]
fn a_batch_that_fails_leaves_what_was_removed_what_is_unknown_and_what_was_not_tried() {
    let error = r#"{"ok":false,"error":{"code":"io","message":"disk","recoverable":true}}"#;
    for (second, code) in [
        (format!("answer '{error}'"), "io"),
        ("answer '{'".to_owned(), "transport"),
        (r#"answer '{"ok":true,"data":{"action":"list","sessions":[]}}'"#.to_owned(), "transport"),
        (
            r#"answer '{"ok":true,"data":{"action":"remove","deleted":[],"skipped":[]}}'"#.to_owned(),
            "transport",
        ),
    ] {
        let core = Core::new(&format!("{DELETE_ALL} [ $taken = 1 ] && {second} || answer \"$done\""));
        let asked = ids(257);
        let outcome = core.client().clear("/w", &asked, &[]).unwrap();
        assert_eq!(outcome.deleted, asked[..128]);
        let interruption = outcome.interruption.unwrap();
        assert_eq!(interruption.error.code, code);
        assert_eq!(interruption.unknown_session_ids, asked[128..256]);
        assert_eq!(interruption.unattempted_session_ids, asked[256..]);
        assert_eq!(core.requests().len(), 2);
    }
}

#[test]
fn what_the_program_skips_is_told_with_its_reason() {
    let core = Core::answering(
        r#"{"ok":true,"data":{"action":"clear","deleted":[],"skipped":[{"session_id":"x","error":{"code":"conflict","message":"m","recoverable":true}}]}}"#,
    );
    let outcome = core.client().clear("/w", &ids(1), &[]).unwrap();
    assert_eq!(outcome.skipped.len(), 1);
    assert_eq!(outcome.skipped[0].error.code.as_str(), "conflict");
}

#[test]
fn a_first_batch_that_fails_is_an_interruption_too() {
    let client = SessionControlClient::new("/nonexistent/core");
    let interruption = client.clear("/w", &ids(129), &[]).unwrap().interruption.unwrap();
    assert!(interruption.error.message.starts_with("failed to run /nonexistent/core"));
    let counts = (interruption.unknown_session_ids.len(), interruption.unattempted_session_ids.len());
    assert_eq!(counts, (128, 1));
}
