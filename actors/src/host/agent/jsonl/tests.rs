//! Outputs of programs, and what was heard of them.

use serde_json::json;

use super::*;
use crate::host::agent::AgentEvent;

fn heard(output: &str) -> Vec<Item> {
    let mut stream = Stream::default();
    let mut items = stream.push(output.as_bytes());
    items.extend(stream.finish());
    // However it is cut, it is the same.
    let mut cut = Stream::default();
    let mut again: Vec<_> = output.as_bytes().chunks(7).flat_map(|bytes| cut.push(bytes)).collect();
    again.extend(cut.finish());
    assert_eq!(items, again);
    items
}

fn text(text: &str) -> Item {
    Item::Text(text.to_owned())
}

fn call(id: &str, name: &str, input: Value) -> Item {
    Item::ToolCall { id: id.to_owned(), name: name.to_owned(), input }
}

fn answer(id: &str, text: &str, is_error: bool) -> Item {
    Item::ToolResult { id: id.to_owned(), text: text.to_owned(), is_error }
}

fn session(id: &str) -> Item {
    Item::Session(id.to_owned())
}

fn success(subtype: &str, text: &str) -> Item {
    Item::Result(Outcome { subtype: subtype.to_owned(), text: text.to_owned(), ..Outcome::default() })
}

#[test]
fn the_contracts_stream_is_understood_and_its_text_comes_once() {
    let output = r#"{"type":"control_response","response":{"subtype":"success","request_id":"1","response":{}}}
{"type":"system","subtype":"init","session_id":"s","session_resumable":true,"model":"m","tools":["edit","shell"]}
{"type":"system","subtype":"status","status":"config_reloaded"}
{"type":"stream_event","event":{"type":"message_start"}}
{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"thinking"}}}
{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}}
{"type":"stream_event","event":{"type":"content_block_stop","index":0}}
{"type":"stream_event","event":{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c1","name":"shell"}}}
{"type":"stream_event","event":{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"comma"}}}
{"type":"stream_event","event":{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"nd\":\"ls\"}"}}}
{"type":"stream_event","event":{"type":"content_block_stop","index":1}}
{"type":"stream_event","event":{"type":"message_stop"}}
{"type":"control_request","request_id":"req-0","request":{"subtype":"can_use_tool","tool_name":"shell","input":{"command":"ls"},"tool_use_id":"c1","audit_ref":"a"}}
{"type":"user","session_id":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","is_error":false,"content":"a b"}]}}
{"type":"stream_event","event":{"type":"message_start"}}
{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"text"}}}
{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"two "}}}
{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"files"}}}
{"type":"stream_event","event":{"type":"content_block_stop","index":0}}
{"type":"stream_event","event":{"type":"message_stop"}}
{"type":"assistant","session_id":"s","message":{"content":[{"type":"text","text":"two files"}]}}
{"type":"result","subtype":"success","is_error":false,"result":"completed","session_id":"s","duration_ms":1}
{"type":"result","subtype":"error","is_error":true,"result":"no","errors":["no"],"error_code":"X","session_error_code":"conflict","session_error_phase":"persist","session_id":"t"}
"#;
    let init = Init {
        resumable: Some(true),
        model: Some("m".to_owned()),
        tools: Some(vec!["edit".to_owned(), "shell".to_owned()]),
    };
    let asked = Request::CanUseTool {
        name: "shell".to_owned(),
        input: json!({ "command": "ls" }),
        call: "c1".to_owned(),
    };
    let expected = [
        session("s"),
        Item::Init(init),
        Item::Status("config_reloaded".to_owned()),
        Item::Thinking("hm".to_owned()),
        call("c1", "shell", json!({ "command": "ls" })),
        Item::Request { id: "req-0".to_owned(), request: asked },
        answer("c1", "a b", false),
        text("two files"),
        success("success", "completed"),
        session("t"),
        Item::Result(Outcome {
            is_error: true,
            subtype: "error".to_owned(),
            text: "no".to_owned(),
            error_code: Some("X".to_owned()),
            session_error_code: Some("conflict".to_owned()),
            session_error_phase: Some("persist".to_owned()),
        }),
    ];
    assert_eq!(heard(output), expected);
}

#[test]
fn whole_messages_and_what_is_streamed_before_them_are_told_once_in_whatever_order() {
    let start =
        r#"{"type":"stream_event","event":{"type":"message_start","message":{}},"parent_tool_use_id":null}"#;
    let delta = |text: &str| {
        json!({ "type": "stream_event", "event": { "type": "content_block_delta", "index": 0,
            "delta": { "type": "text_delta", "text": text } } })
        .to_string()
    };
    let stop = r#"{"type":"stream_event","event":{"type":"content_block_stop","index":0}}"#;
    let whole = |texts: &[&str]| {
        let blocks: Vec<_> = texts.iter().map(|text| json!({ "type": "text", "text": text })).collect();
        json!({ "type": "assistant", "message": { "role": "assistant", "content": blocks } }).to_string()
    };
    let all = |lines: &[&str]| heard(&lines.join("\n"));
    // Before the end of the block, after it, with what was not streamed, and after the next block.
    assert_eq!(all(&[start, &delta("one"), &whole(&["one"]), stop]), [text("one")]);
    assert_eq!(all(&[start, &delta("one"), stop, &whole(&["one"])]), [text("one")]);
    assert_eq!(all(&[start, &delta("on"), &whole(&["one"]), stop]), [text("one")]);
    let two = [start, &delta("one"), stop, &delta("two"), stop];
    for repeated in [whole(&["one", "two"]), whole(&["onetwo"])] {
        let lines: Vec<_> = two.into_iter().chain([repeated.as_str()]).collect();
        assert_eq!(all(&lines), [text("one"), text("two")], "{repeated}");
    }
    // What is said twice is told twice.
    assert_eq!(all(&[&whole(&["one"]), &whole(&["one"])]), [text("one"), text("one")]);
    let again = [start, &delta("one"), stop, &whole(&["one"]), start, &delta("one"), stop, &whole(&["one"])];
    assert_eq!(all(&again), [text("one"), text("one")]);
    // Another agent's pieces come later, as a whole.
    let others =
        delta("x").replace(r#""type":"stream_event""#, r#""type":"stream_event","parent_tool_use_id":"c""#);
    assert_eq!(all(&[&others, &whole(&["x"])]), [text("x")]);
    // An output that ends in the middle.
    assert_eq!(all(&[start, &delta("cut o")]), [text("cut o")]);
}

#[test]
fn calls_are_told_once_and_results_are_for_people() {
    let output = r#"{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"Read","input":{}}}}
{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"},{"type":"tool_use","id":"a","name":"Read","input":{"file_path":"f"}}]}}
{"type":"stream_event","event":{"type":"content_block_stop","index":0}}
{"type":"assistant","message":{"content":[{"type":"server_tool_use","id":"b","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"b","content":[{"type":"web_search_result"}]}]}}
{"type":"user","message":{"content":"a text"}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x"},{"type":"image","source":{}}],"is_error":true}]}}
{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"Bash"}}}
{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"comm"}}}"#;
    let expected = [
        Item::Thinking("hm".to_owned()),
        call("a", "Read", json!({ "file_path": "f" })),
        call("b", "web_search", json!({})),
        answer("b", "[web_search_result]", false),
        answer("a", "x\n[image]", true),
        // What was not even named to its end is a call all the same.
        call("c", "Bash", json!("{\"comm")),
    ];
    // The thought comes while the call is still being streamed, which therefore is told first, and whole.
    let items = heard(output);
    let calls = |items: &[Item]| {
        items.iter().filter(|item| !matches!(item, Item::Thinking(_))).cloned().collect::<Vec<_>>()
    };
    assert_eq!(calls(&items)[1..], calls(&expected)[1..]);
    assert_eq!(items.iter().filter(|item| matches!(item, Item::ToolCall { id, .. } if id == "a")).count(), 1);
}

#[test]
fn codex_is_understood() {
    let output = r#"{"type":"thread.started","thread_id":"t"}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"item_0","type":"reasoning","text":"hm"}}
{"type":"item.started","item":{"id":"item_1","type":"command_execution","command":"ls","aggregated_output":"","status":"in_progress"}}
{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"ls","aggregated_output":"a\n","exit_code":2,"status":"failed"}}
{"type":"item.completed","item":{"id":"item_2","type":"file_change","changes":[{"path":"f","kind":"add"}],"status":"completed"}}
{"type":"item.started","item":{"id":"item_3","type":"mcp_tool_call","server":"s","tool":"t","arguments":{"a":1},"status":"in_progress"}}
{"type":"item.updated","item":{"id":"item_4","type":"todo_list","items":[]}}
{"type":"item.completed","item":{"id":"item_5","type":"agent_message","text":"done"}}
{"type":"error","message":"Reconnecting"}
{"type":"turn.completed","usage":{"input_tokens":1}}
{"type":"turn.failed","error":{"message":"no credit"}}
"#;
    let failed = Outcome {
        is_error: true,
        subtype: "failed".to_owned(),
        text: "no credit".to_owned(),
        ..Outcome::default()
    };
    let expected = [
        session("t"),
        Item::Thinking("hm".to_owned()),
        call("item_1", "command_execution", json!({ "command": "ls" })),
        answer("item_1", "a\n", true),
        call("item_2", "file_change", json!({ "changes": [{ "path": "f", "kind": "add" }] })),
        answer("item_2", "", false),
        call("item_3", "mcp__s__t", json!({ "a": 1 })),
        text("done"),
        Item::Complaint("Reconnecting".to_owned()),
        success("completed", ""),
        Item::Result(failed),
    ];
    assert_eq!(heard(output), expected);
}

#[test]
fn gemini_cursor_and_opencode_are_understood() {
    let gemini = r#"{"type":"init","timestamp":"t","session_id":"s","model":"m"}
{"type":"message","role":"user","content":"do it"}
{"type":"message","role":"assistant","content":"I ","delta":true}
{"type":"message","role":"assistant","content":"will","delta":true}
{"type":"tool_use","tool_name":"read_file","tool_id":"r","parameters":{"path":"f"}}
{"type":"tool_result","tool_id":"r","status":"error","error":{"type":"E","message":"no file"}}
{"type":"error","severity":"warning","message":"loop"}
{"type":"result","status":"error","error":{"type":"E","message":"quota"}}"#;
    let init = Init { model: Some("m".to_owned()), ..Init::default() };
    let quota = Outcome {
        is_error: true,
        subtype: "error".to_owned(),
        text: "quota".to_owned(),
        ..Outcome::default()
    };
    let expected = [
        session("s"),
        Item::Init(init),
        text("I will"),
        call("r", "read_file", json!({ "path": "f" })),
        answer("r", "no file", true),
        Item::Complaint("loop".to_owned()),
        Item::Result(quota),
    ];
    assert_eq!(heard(gemini), expected);
    let cursor = r#"{"type":"thinking","subtype":"delta","text":"h"}
{"type":"thinking","subtype":"delta","text":"m"}
{"type":"thinking","subtype":"completed"}
{"type":"tool_call","subtype":"started","call_id":"c","tool_call":{"writeToolCall":{"args":{"path":"f"}}}}
{"type":"tool_call","subtype":"completed","call_id":"c","tool_call":{"writeToolCall":{"args":{"path":"f"},"result":{"success":{"linesCreated":1}}}}}
{"type":"tool_call","subtype":"started","call_id":"d","tool_call":{"function":{"name":"x","arguments":"{}"}}}"#;
    let expected = [
        Item::Thinking("hm".to_owned()),
        call("c", "writeToolCall", json!({ "path": "f" })),
        answer("c", r#"{"success":{"linesCreated":1}}"#, false),
        call("d", "x", json!("{}")),
    ];
    assert_eq!(heard(cursor), expected);
    let opencode = r#"{"type":"step_start","timestamp":1,"sessionID":"ses","part":{"type":"step-start"}}
{"type":"tool_use","sessionID":"ses","part":{"type":"tool","callID":"c","tool":"bash","state":{"status":"completed","input":{"command":"ls"},"output":"a"}}}
{"type":"text","sessionID":"ses","part":{"type":"text","text":"done"}}
{"type":"error","sessionID":"ses","error":{"name":"APIError","data":{"message":"no key"}}}"#;
    let expected = [
        session("ses"),
        call("c", "bash", json!({ "command": "ls" })),
        answer("c", "a", false),
        text("done"),
        Item::Complaint("no key".to_owned()),
    ];
    assert_eq!(heard(opencode), expected);
}

#[test]
fn what_is_no_object_or_not_known_harms_nothing() {
    for (line, complaint) in [
        ("hello", true),
        ("[1]", true),
        ("{\"type\":", true),
        ("\"text\"", true),
        ("{}", false),
        ("   ", false),
        (r#"{"type":7}"#, false),
        (r#"{"type":"news","text":"x"}"#, false),
        (r#"{"type":"assistant"}"#, false),
        (r#"{"type":"assistant","message":{"content":[1,{"type":2},{"type":"text"}]}}"#, false),
        (r#"{"type":"stream_event","event":[]}"#, false),
        (r#"{"type":"tool_call","tool_call":{}}"#, false),
        (r#"{"type":"item.completed"}"#, false),
    ] {
        let items = heard(line);
        let is_complaint = matches!(&items[..], [Item::Complaint(text)] if text == line);
        assert_eq!((is_complaint, items.is_empty()), (complaint, !complaint), "{line}: {items:?}");
    }
    let deep = format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000));
    assert!(matches!(&heard(&deep)[..], [Item::Complaint(_)]));
    let twice = r#"{"type":"assistant","type":"result","is_error":true,"is_error":false}"#;
    assert_eq!(heard(twice), [success("", "")]);
    let mut binary = Stream::default();
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    assert!(
        binary.push(&bytes).iter().chain(&binary.finish()).all(|item| matches!(item, Item::Complaint(_)))
    );
    assert!(!binary.is_understood());
}

#[test]
fn what_has_no_end_takes_no_more_memory_than_a_line() {
    let mut stream = Stream::default();
    let (mut too_long, mut told) = (0, 0);
    for _ in 0..3 * (MAX_LINE >> 16) {
        too_long += stream.push(&vec![b'x'; 1 << 16]).iter().filter(|item| **item == Item::TooLong).count();
    }
    stream.push(b"\n");
    assert_eq!(too_long, 1);
    // A text that is streamed for ever comes in pieces.
    let delta = |text: &str| {
        format!("{}\n", json!({ "type": "message", "role": "assistant", "delta": true, "content": text }))
    };
    let piece = "ä€\n".repeat(10_000);
    for _ in 0..200 {
        for item in stream.push(delta(&piece).as_bytes()) {
            let Item::Text(text) = item else { panic!("{item:?}") };
            assert!(text.len() <= 4000);
            told += text.len();
        }
        let kept = stream.heard.blocks.kept();
        assert!(kept <= 2 * MAX_LINE, "{kept}");
    }
    told += stream.finish().iter().map(shown_length).sum::<usize>();
    assert_eq!(told, 200 * piece.len());
    for number in 0..10_000 {
        let line = json!({ "type": "tool_use", "tool_id": number.to_string(), "tool_name": "x" });
        assert_eq!(stream.push(format!("{line}\n").as_bytes()).len(), 1);
    }
}

#[test]
fn ids_take_no_memory_to_speak_of_however_long_and_many_they_are() {
    let mut stream = Stream::default();
    let line = |id: &str| json!({ "type": "tool_use", "tool_id": id, "tool_name": "x" }).to_string() + "\n";
    let long = "x".repeat(1 << 20);
    for number in 0..16 {
        assert_eq!(stream.push(line(&format!("{number}{long}")).as_bytes()).len(), 1);
    }
    for number in 0..5000 {
        assert_eq!(stream.push(line(&format!("{number:0>256}")).as_bytes()).len(), 1);
    }
    let kept = stream.heard.blocks.kept();
    assert!(kept <= 1 << 20, "{kept}");
    // The newest are known, and the oldest are not any more.
    assert_eq!(stream.push(line(&format!("{:0>256}", 4999)).as_bytes()), []);
    assert_eq!(stream.push(line(&format!("{:0>256}", 0)).as_bytes()).len(), 1);
}

#[test]
fn a_line_of_many_blocks_takes_no_longer_than_its_length_however_much_was_streamed() {
    let mut stream = Stream::default();
    let delta = |text: &str| {
        json!({ "type": "stream_event", "event": { "type": "content_block_delta",
            "delta": { "type": "text_delta", "text": text } } })
    };
    let stop = json!({ "type": "stream_event", "event": { "type": "content_block_stop" } });
    let half = "x".repeat(MAX_LINE / 2 - 1000);
    for text in [half.as_str(), &half] {
        stream.push(format!("{}\n{stop}\n", delta(text)).as_bytes());
    }
    assert!(stream.heard.blocks.kept() <= MAX_LINE);
    let blocks = vec![json!({ "type": "text", "text": "y" }); 100_000];
    let line = format!("{}\n", json!({ "type": "assistant", "message": { "content": blocks } }));
    // Takes minutes, if what was streamed is put together for each of them.
    assert_eq!(stream.push(line.as_bytes()).len(), 100_000);
    // Nor are there so many texts that looking through them takes long: only the newest are left out when they come again.
    for number in 0..1000 {
        stream.push(format!("{}\n{stop}\n", delta(&number.to_string())).as_bytes());
    }
    for (number, told) in [(0, 1), (999, 0)] {
        let whole = json!({ "type": "assistant", "message": { "content": number.to_string() } });
        assert_eq!(stream.push(format!("{whole}\n").as_bytes()).len(), told, "{number}");
    }
}

fn shown_length(item: &Item) -> usize {
    match item {
        Item::Text(text) => text.len(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_task_is_told_with_our_names_and_without_what_moves_a_terminal() {
    let ours = |name: &str| if name == "Bash" { "bash".to_owned() } else { name.to_owned() };
    let told = |item: Item| event(&item, ours);
    let init = |tools| Item::Init(Init { tools, ..Init::default() });
    assert_eq!(
        told(init(Some(vec!["Bash".to_owned(), "x".to_owned()]))),
        Some(AgentEvent::Tools(vec!["bash".to_owned(), "x".to_owned()]))
    );
    assert_eq!(told(init(None)), None);
    assert_eq!(told(text("\u{1b}[2Jx")), Some(AgentEvent::Text("\u{fffd}[2Jx".to_owned())));
    assert_eq!(
        told(call("c", "Bash", json!({ "command": "ls" }))),
        Some(AgentEvent::ToolCall { name: "bash".to_owned(), input: r#"{"command":"ls"}"#.to_owned() })
    );
    let Some(AgentEvent::ToolCall { name, .. }) = told(call("c", &"€".repeat(1 << 20), json!({}))) else {
        panic!("a call is told whatever its name")
    };
    assert_eq!(name, "€".repeat(85) + "…");
    assert_eq!(told(answer("c", "no", true)), Some(AgentEvent::ToolResult { text: "error: no".to_owned() }));
    assert_eq!(told(Item::TooLong), None);
}
