//! What of a conversation is shown: the first prompt on a line, bounded texts, and whether a summary may stand for its
//! beginning.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use cofferdam_protocol::session::*;
use proptest::prelude::*;

fn message(role: &str, content: Content) -> Message {
    Message { role: role.to_owned(), content, tool_call_id: None, name: None, tool_calls: None }
}

fn said(role: &str, text: &str) -> Message {
    message(role, Content::Text(text.to_owned()))
}

/// How a prompt is shown.
fn shown(prompt: &str) -> Option<String> {
    preview([said("user", prompt)])
}

#[test]
fn a_prompt_is_shown_on_one_line() {
    for (prompt, line) in [
        ("list the files", "list the files"),
        ("a\n\t  b", "a b"),
        ("  a \u{3000}\u{2028}b\r\n", "a b"),
        ("bell\u{7} esc\u{1b}[31m c1\u{9b}31m del\u{7f}", "bell esc[31m c131m del"),
        ("a \u{7} b", "a b"),
        ("a\u{7}b", "ab"),
        ("nai\u{308}ve", "nai\u{308}ve"),
    ] {
        assert_eq!(shown(prompt).as_deref(), Some(line), "{prompt:?}");
    }
    for prompt in ["", " \n", "\u{7}", "\u{200b}\u{202e} \u{feff}", "\u{200d}"] {
        assert_eq!(shown(prompt), None, "{prompt:?}");
    }
}

#[test]
fn characters_that_reorder_text_or_have_no_width_are_left_out() {
    for invisible in [
        '\u{ad}',
        '\u{34f}',
        '\u{61c}',
        '\u{115f}',
        '\u{180e}',
        '\u{200b}',
        '\u{200c}',
        '\u{200d}',
        '\u{200e}',
        '\u{200f}',
        '\u{202a}',
        '\u{202b}',
        '\u{202c}',
        '\u{202d}',
        '\u{202e}',
        '\u{2060}',
        '\u{2063}',
        '\u{2066}',
        '\u{2067}',
        '\u{2068}',
        '\u{2069}',
        '\u{206f}',
        '\u{3164}',
        '\u{feff}',
        '\u{ffa0}',
        '\u{fff9}',
        '\u{e0001}',
        '\u{e0041}',
        '\u{e01ef}',
    ] {
        assert_eq!(
            shown(&format!("{invisible}a{invisible}b {invisible} c")).unwrap(),
            "ab c",
            "{invisible:?}"
        );
    }
}

#[test]
fn what_joins_emoji_is_kept_between_emoji_only() {
    for whole in ["👩‍👩‍👧", "👨🏽‍💻", "❤️‍🔥", "🏳️‍🌈", "🐦‍⬛", "👁️‍🗨️", "🧑🏻‍❤️‍🧑🏿"]
    {
        assert_eq!(shown(whole).unwrap(), whole);
    }
    for (prompt, line) in [
        ("👩\u{200d}", "👩"),
        ("\u{200d}👩", "👩"),
        ("👩\u{200d} 👩", "👩 👩"),
        ("👩\u{200d}a", "👩a"),
        ("a\u{200d}👩", "a👩"),
        ("👩\u{200d}\u{200d}👩", "👩\u{200d}👩"),
        ("👩\u{200d}\u{202e}👩", "👩\u{200d}👩"),
    ] {
        assert_eq!(shown(prompt).unwrap(), line);
    }
}

#[test]
fn a_prompt_of_more_than_160_characters_is_cut_to_159_and_an_ellipsis() {
    let x = |count: usize| "x".repeat(count);
    for (prompt, line) in [
        (x(160), x(160)),
        (x(161), x(159) + "…"),
        (x(159) + " y", x(159) + "…"),
        (x(100_000), x(159) + "…"),
        ("🦀".repeat(160), "🦀".repeat(160)),
        ("🦀".repeat(161), "🦀".repeat(159) + "…"),
        ("e\u{301}".repeat(80), "e\u{301}".repeat(80)),
        (x(159) + "\u{202e}y\u{200b}", x(159) + "y"),
        (x(160) + " \n\u{7}", x(160)),
        // What would join the last picture with one that was cut.
        (x(157) + "👩\u{200d}👩\u{200d}👧", x(157) + "👩…"),
    ] {
        assert_eq!(shown(&prompt).unwrap(), line);
    }
}

#[test]
fn the_first_message_of_the_user_that_shows_anything_is_the_prompt() {
    let messages = [said("assistant", "no"), said("USER", "no"), said("user", "\u{7} "), said("user", "yes")];
    assert_eq!(preview(&messages).unwrap(), "yes");
    assert_eq!(preview(&messages[..3]), None);
}

#[test]
fn blocks_are_shown_one_behind_the_other() {
    let text = |text: &str| Block::Text { text: text.to_owned() };
    let result =
        Block::ToolResult { tool_use_id: "c".to_owned(), content: "Mon\n".to_owned(), is_error: false };
    let blocks = Content::Blocks(vec![text("\u{7}"), text(" show\nthe "), result, text("date")]);
    assert_eq!(preview([message("user", blocks)]).unwrap(), "show the Mon date");
    assert_eq!(preview([message("user", Content::Blocks(Vec::new()))]), None);
}

#[test]
fn no_message_behind_the_one_that_is_shown_is_looked_at() {
    let messages = (0..).map(|at| {
        assert!(at < 3, "the prompt was found before");
        said(["system", "user", "user"][at], ["x", "", "y"][at])
    });
    assert_eq!(preview(messages).unwrap(), "y");
}

/// What a shell makes of the user's words.
fn wrapped(words: &str) -> String {
    format!(
        "Handle this natural-language shell prompt request for a Shell-first assistant.\n\
         cwd: /w\nuser_input: {words}\n\nruntime_frame:\n{{}}\n\ncosh-shell Agent contract:\n- be brief\n"
    )
}

#[test]
fn of_a_prompt_that_a_shell_has_wrapped_up_the_users_words_are_shown() {
    for words in [
        "check nginx",
        "a\nuser_input: b",
        "x\n\nruntime_frame:\ny",
        "x\n\ncosh-shell Agent contract:\ny\n\nruntime_frame:\nz",
    ] {
        let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(shown(&wrapped(words)), Some(line));
    }
    let blocks = vec![Block::Text { text: wrapped("one") }, Block::Text { text: wrapped(" two ") }];
    assert_eq!(preview([message("user", Content::Blocks(blocks))]).unwrap(), "one two");
}

#[test]
fn a_wrapping_that_is_not_whole_is_shown_as_it_is() {
    let whole = wrapped("check nginx");
    let start = "Handle this natural-language";
    for torn in [
        whole.replace("user_input: ", "input: "),
        whole.replace("runtime_frame:", "frame:"),
        whole.split("\n\ncosh-shell").next().unwrap().to_owned(),
        wrapped(" "),
        whole.replace("\nuser_input: check nginx", "").replace("- be", "\nuser_input: be"),
    ] {
        let line = shown(&torn).unwrap();
        assert!(line.starts_with(start), "{line}");
    }
    assert!(shown(&format!(" {whole}")).unwrap().starts_with(start));
}

#[test]
fn a_bounded_text_is_cut_at_a_character_and_says_so() {
    for (text, max, kept) in [
        ("", 5, ""),
        ("abcde", 5, "abcde"),
        ("abcdef", 5, "ab…"),
        ("a\u{7}b\nc\u{9b}de\u{7f}", 5, "abcde"),
        ("ééé", 6, "ééé"),
        ("éééé", 6, "é…"),
        ("🦀🦀", 7, "🦀…"),
        ("🦀🦀", 6, "…"),
        ("🦀🦀", 8, "🦀🦀"),
    ] {
        assert_eq!(bounded(text, max), kept, "{text:?} {max}");
    }
}

fn call(id: &str) -> Message {
    let function = ToolFunction { name: "shell".to_owned(), arguments: "{}".to_owned() };
    let call = ToolCall { id: id.to_owned(), kind: "function".to_owned(), function };
    Message { tool_calls: Some(vec![call]), ..said("assistant", "") }
}

fn result(id: &str) -> Message {
    Message { tool_call_id: Some(id.to_owned()), ..said("tool", "done") }
}

fn compaction(messages: &[Message], through: usize) -> Compaction {
    Compaction {
        revision: 1,
        compacted_through: through as u64,
        summary: "short".to_owned(),
        model: String::new(),
        prompt_version: 1,
        source_digest: Compaction::digest(messages.get(..through).unwrap_or_default()),
        tokens_before: None,
        tokens_after: None,
        created_at_ms: 0,
    }
}

#[test]
fn a_summary_stands_for_the_beginning_that_it_was_made_from() {
    let messages = [said("user", "a"), call("c"), result("c"), said("assistant", "b")];
    for through in [1, 3, 4] {
        assert!(compaction(&messages, through).is_usable(&messages), "{through}");
    }
    let whole = compaction(&messages, 3);
    for (spoilt, why) in [
        (compaction(&messages, 0), "of nothing"),
        (compaction(&messages, 5), "of more than there is"),
        (compaction(&messages, 2), "between a call and its result"),
        (Compaction { compacted_through: u64::MAX, ..whole.clone() }, "of more than can be"),
        (Compaction { summary: " \n".to_owned(), ..whole.clone() }, "blank"),
        (Compaction { summary: "x".repeat(limits::COMPACTION_SUMMARY + 1), ..whole.clone() }, "too long"),
        (Compaction { prompt_version: 2, ..whole.clone() }, "of another kind"),
        (Compaction { source_digest: compaction(&messages, 4).source_digest, ..whole.clone() }, "of others"),
        (Compaction { source_digest: whole.source_digest.to_uppercase(), ..whole.clone() }, "of others"),
    ] {
        assert!(!spoilt.is_usable(&messages), "{why}");
    }
    let longest = Compaction { summary: "x".repeat(limits::COMPACTION_SUMMARY), ..whole };
    assert!(longest.is_usable(&messages));
}

#[test]
fn a_call_and_its_result_are_not_parted_also_where_an_id_comes_again() {
    let in_blocks = |id: &str| {
        let result =
            Block::ToolResult { tool_use_id: id.to_owned(), content: String::new(), is_error: false };
        message("user", Content::Blocks(vec![result]))
    };
    for (messages, through, usable) in [
        (vec![call("c"), in_blocks("c")], 1, false),
        (vec![call("c"), result("c"), call("c"), result("c")], 2, true),
        (vec![call("c"), result("c"), call("c"), result("c")], 3, false),
        // A call that was never answered; the second one is.
        (vec![call("c"), said("user", "stop"), call("c"), result("c")], 2, true),
        (vec![call("c"), said("user", "stop"), result("c")], 2, false),
        (vec![call("c"), said("user", "stop")], 1, true),
    ] {
        assert_eq!(compaction(&messages, through).is_usable(&messages), usable, "{messages:?} {through}");
    }
}

#[test]
fn an_unusable_compaction_is_left_out_and_its_revision_counts() {
    let messages = vec![said("user", "a"), said("assistant", "b")];
    let id = SessionId::new("00000000-0000-4000-8000-000000000001").unwrap();
    let envelope = |compaction: Compaction, compaction_revision| Envelope {
        schema_version: SCHEMA_VERSION,
        session_id: id.to_string(),
        workspace_scope: "/w".to_owned(),
        created_at_ms: 0,
        updated_at_ms: 0,
        model: String::new(),
        generation: 1,
        messages: messages.clone(),
        compaction: Some(compaction),
        compaction_revision,
    };
    let usable = Compaction { revision: 7, ..compaction(&messages, 1) };
    let spoilt = Compaction { source_digest: String::new(), ..usable.clone() };
    for (written, kept, revision) in [
        (envelope(usable.clone(), 3), Some(&usable), 7),
        (envelope(usable.clone(), 9), Some(&usable), 9),
        (envelope(spoilt, 3), None, 7),
    ] {
        let read = Envelope::read(&written.write().unwrap(), &id, "/w", 0).unwrap();
        assert_eq!((read.compaction.as_ref(), read.compaction_revision), (kept, revision));
    }
}

#[test]
fn a_compaction_of_another_shape_is_corrupt_and_null_is_none() {
    let id = SessionId::new("00000000-0000-4000-8000-000000000001").unwrap();
    let whole = serde_json::json!({
        "revision": 1, "compacted_through": 1, "summary": "s", "model": "m", "prompt_version": 1,
        "source_digest": "d", "tokens_before": null, "tokens_after": {"value": 5, "source": "estimated"},
        "created_at_ms": 0,
    });
    let read = |compaction: &serde_json::Value| {
        let file = serde_json::json!({
            "schema_version": 1, "session_id": id.as_str(), "workspace_scope": "/w", "created_at_ms": 0,
            "updated_at_ms": 0, "model": "", "generation": 1, "messages": [], "compaction": compaction,
        });
        Envelope::read(file.to_string().as_bytes(), &id, "/w", 0)
    };
    assert_eq!(read(&whole).unwrap().compaction_revision, 1);
    assert_eq!(read(&serde_json::Value::Null).unwrap().compaction, None);
    for (key, wrong) in [
        ("revision", serde_json::json!(-1)),
        ("compacted_through", serde_json::json!(1.5)),
        ("summary", serde_json::json!(null)),
        ("prompt_version", serde_json::json!(4_294_967_296_u64)),
        ("tokens_before", serde_json::json!(5)),
        ("tokens_before", serde_json::json!({"value": 5})),
        ("tokens_after", serde_json::json!({"value": "5", "source": "estimated"})),
        ("tokens_after", serde_json::json!({"value": 5, "source": "guessed"})),
        ("tokens_after", serde_json::json!([5, "estimated"])),
    ] {
        let mut spoilt = whole.clone();
        spoilt[key] = wrong;
        assert!(matches!(read(&spoilt), Err(Defect::Corrupt(_))), "{spoilt}");
    }
    for key in whole.as_object().unwrap().keys().filter(|key| !key.starts_with("tokens_")) {
        let mut spoilt = whole.clone();
        spoilt.as_object_mut().unwrap().remove(key);
        assert!(matches!(read(&spoilt), Err(Defect::Corrupt(_))), "{spoilt}");
    }
    assert!(matches!(read(&serde_json::json!({"x": 1})), Err(Defect::Corrupt(_))));
    assert!(matches!(read(&serde_json::json!([])), Err(Defect::Corrupt(_))));
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[ a\u{7}\u{200d}\u{202e}👩👧\u{fe0f}é\n]{0,400}",
        any::<String>().prop_map(|words| wrapped(&words)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_was_said_is_shown_within_bounds_on_one_line(text in text()) {
        if let Some(line) = shown(&text) {
            prop_assert!((1..=limits::PROMPT_CHARS).contains(&line.chars().count()));
            let invisible = |char: char| char.is_control() || "\u{202e}\u{200b}\u{feff}".contains(char);
            prop_assert!(!line.contains(invisible));
            prop_assert!(!line.starts_with(' ') && !line.contains("  "));
            let joins = |char: Option<char>| char == Some('\u{200d}');
            prop_assert!(!joins(line.chars().next_back()) && !joins(line.trim_end_matches('…').chars().next_back()));
            // What is shown of a line is that line.
            prop_assert_eq!(shown(&line), Some(line.trim_end().to_owned()));
        }
    }

    #[test]
    fn a_bounded_text_is_within_its_bound_and_begins_as_the_text_does(text in text(), max in 3_usize..300) {
        let kept = bounded(&text, max);
        let clean: String = text.chars().filter(|char| !char.is_control()).collect();
        prop_assert!(kept.len() <= max && !kept.contains(char::is_control));
        if clean.len() <= max {
            prop_assert_eq!(kept, clean);
        } else {
            let begins = kept.strip_suffix('…').unwrap();
            prop_assert!(clean.starts_with(begins));
            // No character more would have had room.
            let next = clean[begins.len()..].chars().next().unwrap();
            prop_assert!(begins.len() + next.len_utf8() + 3 > max);
        }
    }
}
