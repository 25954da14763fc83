//! Requests that are damaged, odd or too deep; answers and events that would be too long.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use cofferdam_protocol::pod::*;
use proptest::prelude::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

const LIMIT: usize = 4_194_304;

fn parse(line: &str) -> Request {
    Request::parse(line.as_bytes()).unwrap()
}

/// The id and the text of the refusal.
fn refused(line: &[u8]) -> (Option<String>, String) {
    let bad = Request::parse(line).unwrap_err();
    (bad.id, bad.message)
}

fn params<M: Method>(params: &str) -> Result<M, String> {
    parse(&format!(r#"{{"id":"1","method":"{}","params":{params}}}"#, M::NAME)).params()
}

/// What is wrong with these params.
fn bad<M: Method>(text: &str) -> String {
    params::<M>(text).unwrap_err()
}

fn value(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

fn result<T: DeserializeOwned>(line: &str) -> T {
    #[derive(Deserialize)]
    struct Success<T> {
        result: T,
    }
    serde_json::from_str::<Success<T>>(line).unwrap().result
}

/// A task with that description and little else.
fn task(id: usize, description: String) -> TaskSummary {
    TaskSummary {
        id: id.to_string(),
        session_id: String::new(),
        main_session_id: String::new(),
        label: String::new(),
        description,
        status: TaskStatus::Completed,
        subdir: String::new(),
        task_dir: String::new(),
        sandbox_root: String::new(),
        created_at: i64::MIN,
        queued_at: i64::MIN,
        started_at: i64::MIN,
        ended_at: i64::MIN,
        turns: i64::MIN,
        timeout_ms: i64::MIN,
        allow: Vec::new(),
        available_tools: Vec::new(),
        preset_id: String::new(),
        model: ModelChoice::default(),
        sandbox_mode: "workspace-write".to_owned(),
        sandbox_probe: "skipped-no-parent".to_owned(),
        fs_denied: false,
        last_text: String::new(),
        error: String::new(),
        legacy: false,
        turn_deadline: i64::MIN,
        queued_position: usize::MAX,
    }
}

/// A task whose every text is as long as it may be, made of what takes most room in JSON.
fn longest_task() -> TaskSummary {
    let chars = |count: usize| "\u{1}".repeat(count);
    TaskSummary {
        id: "😀".repeat(63),
        session_id: chars(256),
        main_session_id: chars(256),
        label: chars(120),
        subdir: "x".repeat(8 * 65),
        task_dir: chars(2 * 4096),
        sandbox_root: chars(4096),
        allow: (0..256).map(|_| chars(128)).collect(),
        available_tools: (0..256).map(|_| chars(128)).collect(),
        preset_id: chars(256),
        model: ModelChoice { provider: chars(256), model: chars(256), reasoning_effort: Some(chars(256)) },
        last_text: chars(4000),
        error: chars(2000),
        ..task(0, chars(65_536))
    }
}

fn export(id: usize, items: usize) -> ExportRecord {
    let item = ExportItem {
        status: ExportItemStatus::Ok,
        src: "s".repeat(1000),
        dst: String::new(),
        bytes: 1,
        hash: String::new(),
        existed: false,
        backup_path: String::new(),
        message: String::new(),
    };
    ExportRecord {
        id: id.to_string(),
        task_id: String::new(),
        label: String::new(),
        at: 0,
        target_dir: String::new(),
        mode: ExportMode::Copy,
        conflict: ConflictMode::Skip,
        status: ExportStatus::Completed,
        undone_at: 0,
        legacy: false,
        items: vec![item; items],
        items_total: None,
        items_truncated: false,
    }
}

#[test]
fn a_request_may_lack_params_and_hold_more_than_it_must() {
    for line in [
        r#"{"id":"1","method":"health"}"#,
        r#"{"id":"1","method":"health","params":null}"#,
        " {\"params\" : {\"more\":[1]}, \"jsonrpc\":\"2.0\", \"method\":\"health\", \"id\":\"1\"}\t",
        r#"{"\u0069d":"1","method":"he\u0061lth","params":{}}"#,
    ] {
        let request = parse(line);
        assert_eq!((request.id.as_str(), request.method.as_str()), ("1", "health"), "{line}");
        request.params::<Health>().unwrap();
    }
}

#[test]
fn a_line_that_is_no_request_is_refused_with_the_id_if_it_has_one() {
    for line in [
        "not json",
        "[1,2]",
        r#"["1","health"]"#,
        r#""x""#,
        "7",
        "null",
        "{}",
        r#"{"method":"health"}"#,
        r#"{"id":7,"method":"health"}"#,
        r#"{"id":null,"method":"health"}"#,
        r#"{"id":["1"],"method":"health"}"#,
        r#"{"id":"1","method":"health""#,
        r#"{"id":"1","method":"health"} {}"#,
        r#"{"id":"1","id":"1","method":"health"}"#,
        r#"{"id":"1","method":"health","method":"health"}"#,
    ] {
        assert_eq!(refused(line.as_bytes()).0, None, "{line}");
    }
    assert_eq!(refused(b"{\"id\":\"1\",\"method\":\"h\xff\"}").0, None);
    assert_eq!(refused(b"{'id':1}").1, "not a request: key must be a string");
    for line in [r#"{"id":"a"}"#, r#"{"id":"a","method":null}"#, r#"{"id":"a","method":{},"params":[]}"#] {
        let (id, message) = refused(line.as_bytes());
        assert_eq!((id.as_deref(), message.as_str()), (Some("a"), "method is missing or not a string"));
    }
}

#[test]
fn a_request_may_be_64_deep_and_a_deeper_one_is_refused_by_its_id() {
    // The frame is the first.
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth - 2), "]".repeat(depth - 2));
        format!(r#"{{"id":"1","method":"health","params":{{"x":{open}{close}}}}}"#)
    };
    parse(&nested(64)).params::<Health>().unwrap();
    for depth in [65, 129, 500_000] {
        let (id, message) = refused(nested(depth).as_bytes());
        assert_eq!((id.as_deref(), message.as_str()), (Some("1"), "the line is nested deeper than 64"));
    }
    assert_eq!(refused(&vec![b'['; 1 << 20]).0, None);
    assert_eq!(refused("{\"id\":".repeat(1 << 17).as_bytes()).0, None);
}

#[test]
fn half_of_a_surrogate_pair_does_not_lose_a_request() {
    let request = parse(r#"{"id":"\ud83d","method":"task.get","params":{"taskId":"a\ude00 \ud83d\ude00"}}"#);
    assert_eq!(request.id, "\u{fffd}");
    assert_eq!(request.params::<TaskGet>().unwrap().task_id, "a\u{fffd} 😀");
}

#[test]
fn params_that_are_no_object_are_refused() {
    for text in ["[]", "[1]", "5", "\"x\"", "true"] {
        assert_eq!(bad::<Health>(text), "params must be an object", "{text}");
        assert_eq!(bad::<TaskGet>(text), "params must be an object", "{text}");
    }
}

#[test]
fn a_refusal_of_params_names_the_one_that_is_wrong() {
    assert_eq!(bad::<TaskGet>("{}"), "missing field `taskId`");
    assert_eq!(bad::<TaskHeartbeat>(r#"{"taskId":"a"}"#), "missing field `leaseId`");
    assert_eq!(bad::<TaskGet>(r#"{"taskId":5}"#), "taskId: invalid type: integer `5`, expected a string");
    assert_eq!(bad::<TaskGet>(r#"{"taskId":"a","taskId":"a"}"#), "duplicate field `taskId`");
    let statuses = bad::<TaskBulkCleanup>(r#"{"statuses":["completed","gone"]}"#);
    assert!(
        statuses.starts_with("statuses[1]: unknown variant `gone`, expected one of `queued`"),
        "{statuses}"
    );
    let id = bad::<TaskReserve>(r#"{"taskId":"a/b","sessionId":"s","leaseId":"L"}"#);
    assert_eq!(id, "taskId: cannot name a task's directory: it holds a path separator");
    let number = bad::<FilesRead>(r#"{"taskId":"a","relPath":"b","maxChars":1e400}"#);
    assert_eq!(number, "maxChars: number out of range");
}

#[test]
fn a_refusal_quotes_only_the_beginning_of_what_was_sent() {
    let quoted = bad::<TaskBulkCleanup>(&format!(r#"{{"statuses":["{}"]}}"#, "é".repeat(500_000)));
    assert_eq!(quoted.chars().count(), 2000);
    let key = bad::<TaskReserve>(&format!(r#"{{"model":{{"provider":"{}"}}}}"#, "x".repeat(257)));
    assert_eq!(key, "model.provider: must be a string of at most 256 characters");
}

#[test]
fn initialize_needs_an_integer_for_a_protocol_and_a_database() {
    for protocol in ["null", "\"1\"", "1.5", "[1]", "1e400", "99999999999999999999"] {
        let message = bad::<Initialize>(&format!(r#"{{"protocol":{protocol},"dbPath":"/p"}}"#));
        assert!(message.starts_with("protocol: "), "{message}");
    }
    assert_eq!(bad::<Initialize>(r#"{"dbPath":"/p"}"#), "missing field `protocol`");
    assert_eq!(bad::<Initialize>(r#"{"protocol":1}"#), "missing field `dbPath`");
    let odd =
        r#"{"protocol":2,"dbPath":"","pluginVersion":null,"hostPid":"x","platform":7,"features":[1,"f"]}"#;
    let initialize = params::<Initialize>(odd).unwrap();
    assert_eq!((initialize.protocol, initialize.host_pid), (2, None));
    assert_eq!(initialize.features, Some(vec!["f".to_owned()]));
    for (pid, read) in [("12345", Some(12345)), ("0", None), ("-1", None), ("1.5", None), ("1e10", None)] {
        let text = format!(r#"{{"protocol":1,"dbPath":"/p","hostPid":{pid}}}"#);
        assert_eq!(params::<Initialize>(&text).unwrap().host_pid, read, "{pid}");
    }
}

#[test]
fn a_patch_must_be_an_object() {
    for text in ["{}", r#"{"patch":[]}"#, r#"{"patch":5}"#, r#"{"patch":null}"#, r#"{"patch":"x"}"#] {
        params::<ConfigSet>(text).unwrap_err();
        params::<ConfigValidate>(text).unwrap_err();
    }
    assert_eq!(params::<ConfigSet>(r#"{"patch":{}}"#).unwrap().patch, Map::new());
}

#[test]
fn a_turn_is_a_whole_number() {
    let turn = |turn: &str| {
        params::<TaskTurnStarted>(&format!(r#"{{"taskId":"a","leaseId":"L","turn":{turn}}}"#))
            .map(|params| params.turn)
    };
    assert_eq!(turn("0"), Ok(0));
    assert_eq!(turn("9007199254740992"), Ok(1 << 53));
    for bad in ["-1", "1.5", "\"1\"", "null", "9007199254740993", "1e3"] {
        turn(bad).unwrap_err();
    }
    params::<TaskTurnStarted>(r#"{"taskId":"a","leaseId":"L"}"#).unwrap_err();
}

#[test]
fn reserve_fills_in_what_is_missing_or_null_and_refuses_what_is_too_long() {
    let reserve = |more: Value| {
        let mut all = json!({"taskId": "a", "sessionId": "s", "leaseId": "L"});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params::<TaskReserve>(&all.to_string())
    };
    let nothing = json!({"mainSessionId": null, "label": null, "description": null, "subdir": null,
        "timeoutMs": null, "allow": null, "presetId": null, "model": null});
    for more in [json!({}), nothing] {
        let read = reserve(more).unwrap();
        assert_eq!(
            (read.main_session_id.as_str(), read.description.as_str(), read.subdir.as_str()),
            ("", "", "")
        );
        assert_eq!((read.label, read.timeout_ms, read.allow, read.preset_id), (None, None, None, None));
        assert_eq!(read.model, ModelChoice::default());
    }
    let odd = json!({"timeoutMs": 1.9, "allow": ["read", 1, null], "model": {"provider": null, "more": 1}});
    let read = reserve(odd).unwrap();
    assert_eq!((read.timeout_ms, read.allow), (Some(1), Some(vec!["read".to_owned()])));
    assert_eq!(reserve(json!({"timeoutMs": 1e300})).unwrap().timeout_ms, Some(i64::MAX));
    for (key, longest) in [
        ("sessionId", 256),
        ("mainSessionId", 256),
        ("leaseId", 256),
        ("presetId", 256),
        ("description", 65_536),
    ] {
        reserve(json!({ key: "x".repeat(longest) })).unwrap();
        let message = reserve(json!({ key: "x".repeat(longest + 1) })).unwrap_err();
        assert!(message.starts_with(key), "{message}");
    }
    for bad in [
        json!({"sessionId": ""}),
        json!({"leaseId": ""}),
        json!({"allow": "read"}),
        json!({"timeoutMs": "1"}),
    ] {
        reserve(bad.clone()).unwrap_err();
    }
}

#[test]
fn the_self_tests_verdict_must_be_one_there_is() {
    let check = |check: &str| {
        params::<TaskSetSandboxCheck>(&format!(r#"{{"taskId":"a","leaseId":"L","check":{check}}}"#))
    };
    let short =
        check(r#"{"mode":"read-only","probe":"skipped-no-parent","fsDenied":true,"at":1.5,"note":null}"#);
    assert_eq!(short.unwrap().check.at, 1);
    for bad in [
        r#"{"mode":"workspace-write","probe":"mode-mismatch","fsDenied":true}"#,
        r#"{"mode":"","probe":"denied","fsDenied":true}"#,
        r#"{"mode":"read-only","probe":"denied"}"#,
        "null",
    ] {
        check(bad).unwrap_err();
    }
}

#[test]
fn of_the_tools_an_agent_has_256_are_kept_each_once() {
    let names: Vec<Value> = (0..300).map(|n| json!(n.to_string())).chain([json!(1)]).collect();
    let tools = |tools: Value| {
        let text = json!({"taskId": "a", "leaseId": "L", "tools": tools}).to_string();
        params::<TaskSetAvailableTools>(&text).map(|params| params.tools)
    };
    assert_eq!(tools(json!(names)).unwrap().len(), 256);
    assert_eq!(tools(json!(["a", "b", "a", null])).unwrap(), ["a", "b"]);
    assert_eq!(tools(json!(["é".repeat(129)])).unwrap(), ["é".repeat(128)]);
    tools(json!(null)).unwrap_err();
    tools(json!("read")).unwrap_err();
}

#[test]
fn no_event_of_a_task_can_be_longer_than_a_line_may_be() {
    let longest = longest_task();
    let line = event_line(&PodEvent::changed(&longest));
    assert!(line.len() < LIMIT / 2, "{}", line.len());
    assert_eq!(value(&line)["params"]["kind"], "task.changed");
    // Its answers neither, whatever the id: that came in on a line.
    let id = "i".repeat(MAX_REQUEST_LINE);
    let answer = answer_line(&id, TaskResult { task: longest.clone() });
    assert_eq!(result::<TaskResult>(&answer).task, longest);
}

#[test]
fn an_event_beyond_every_limit_becomes_a_warning() {
    let message = "x".repeat(LIMIT);
    let line = event_line(&PodEvent::CoreWarning { task_id: None, message });
    let warning = json!({"kind": "core.warning", "message": "an event was too long to be sent"});
    assert_eq!(value(&line)["params"], warning);
}

#[test]
fn a_list_in_an_answer_shows_the_beginning_of_long_texts() {
    let listed = longest_task().for_list();
    assert_eq!((listed.description.len(), listed.error.len(), listed.last_text.len()), (2000, 2000, 4000));
}

#[test]
fn an_answer_of_exactly_the_limit_is_printed_and_one_byte_more_is_not() {
    let answer = |length: usize| {
        let empty =
            answer_line("1", TaskRows { tasks: vec![task(1, String::new())], truncated: false }).len();
        answer_line("1", TaskRows { tasks: vec![task(1, "x".repeat(length - empty))], truncated: false })
    };
    assert_eq!(answer(LIMIT).len(), LIMIT);
    let shorter = result::<TaskRows>(&answer(LIMIT + 1));
    assert!(shorter.tasks.is_empty() && shorter.truncated);
}

#[test]
fn a_list_of_tasks_that_is_too_long_loses_its_oldest_and_no_more_than_it_must() {
    let rows = TaskRows { tasks: (0..1100).map(|id| task(id, "d".repeat(4000))).collect(), truncated: false };
    let one = serde_json::to_string(&rows.tasks[0]).unwrap().len();
    let line = answer_line("1", rows);
    assert!(line.len() <= LIMIT && line.len() + 2 * (one + 10) > LIMIT, "{}", line.len());
    let rows = result::<TaskRows>(&line);
    assert!(rows.truncated);
    assert!(rows.tasks.iter().enumerate().all(|(at, task)| task.id == at.to_string()));
}

#[test]
fn the_answer_to_initialize_gives_up_exports_before_tasks() {
    let initialized = |tasks: usize, exports: usize| Initialized {
        protocol: 1,
        core_version: CORE_VERSION.to_owned(),
        schema_version: 1,
        db_path: String::new(),
        config: Config::default(),
        tasks: (0..tasks).map(|id| task(id, "d".repeat(2000))).collect(),
        exports: (0..exports).map(|id| export(id, 200)).collect(),
        diagnostics: Vec::new(),
        truncated: false,
    };
    let read = |tasks, exports| {
        let line = answer_line("1", initialized(tasks, exports));
        assert!(line.len() <= LIMIT);
        let read = result::<Initialized>(&line);
        assert!(read.exports.iter().enumerate().all(|(at, export)| export.id == at.to_string()));
        (read.tasks.len(), read.exports.len(), read.truncated)
    };
    assert_eq!(read(10, 3), (10, 3, false));
    let (tasks, exports, truncated) = read(10, 22);
    assert!(tasks == 10 && (15..22).contains(&exports) && truncated);
    let (tasks, exports, truncated) = read(1800, 1);
    assert!((1200..1800).contains(&tasks) && exports == 0 && truncated);
}

fn export_rows(exports: Vec<ExportRecord>) -> ExportRows {
    ExportRows { exports, remembered: BTreeMap::new(), truncated: false }
}

#[test]
fn a_page_of_one_exports_files_that_is_too_long_is_cut() {
    let line = answer_line("1", export_rows(vec![export(1, 5000)]));
    assert!(line.len() <= LIMIT);
    let rows = result::<ExportRows>(&line);
    let record = &rows.exports[0];
    assert!(record.items_truncated && record.items_total == Some(5000) && record.items.len() > 3000);
    let line = answer_line("1", ExportCreated { export: export(1, 5000), message: None });
    let created: ExportCreated = result(&line);
    assert!(line.len() <= LIMIT && created.export.items_total == Some(5000));
}

#[test]
fn a_list_of_exports_that_is_too_long_loses_its_oldest_but_never_all() {
    let listed = |exports| {
        let line = answer_line("1", export_rows(exports));
        assert!(line.len() <= LIMIT);
        result::<ExportRows>(&line)
    };
    let rows = listed((0..24).map(|id| export(id, 200)).collect());
    assert!(rows.truncated && (15..24).contains(&rows.exports.len()));
    for (at, export) in rows.exports.iter().enumerate() {
        assert_eq!((&export.id, export.items.len()), (&at.to_string(), 200));
    }
    // The newest is longer than a line alone.
    let rows = listed(vec![export(1, 5000), export(2, 0)]);
    let [newest] = rows.exports.as_slice() else { panic!("{}", rows.exports.len()) };
    assert!(rows.truncated && newest.id == "1" && newest.items_truncated && newest.items.len() > 3000);
}

#[test]
fn a_transcript_that_is_too_long_loses_its_beginning() {
    let entry = |seq| LegacyLogEntry {
        seq,
        event: "assistant/message".to_owned(),
        kind: "assistant".to_owned(),
        time: 0,
        text: "\u{1}".repeat(4000),
        think: String::new(),
    };
    let line =
        answer_line("1", LegacyLog { entries: (0..500).map(entry).collect(), truncated: false, notes: None });
    let log = result::<LegacyLog>(&line);
    assert!(line.len() <= LIMIT && log.truncated);
    let seqs: Vec<i64> = log.entries.iter().map(|entry| entry.seq).collect();
    assert!(seqs.len() > 100 && seqs.is_sorted() && seqs.last() == Some(&499));
}

#[test]
fn a_list_of_files_that_is_too_long_loses_its_end() {
    let row =
        FileRow { rel_path: "\u{1}".repeat(400), kind: FileType::File, size: 0, mtime: 0, lossy: false };
    let rows = FileRows { root: "/r".to_owned(), entries: vec![row; 2000], truncated: false, missing: false };
    let line = answer_line("1", rows);
    let rows = result::<FileRows>(&line);
    assert!(line.len() <= LIMIT && rows.truncated && rows.entries.len() > 1500);
}

#[test]
fn a_text_is_cut_to_what_its_escapes_leave_room_for() {
    for (text, kept) in [("\u{1}".repeat(720_000), 690_000), ("😀".repeat(1_060_000), 1_040_000)] {
        let (chars, bytes) = (text.chars().count(), text.len() as u64);
        let encoding = "utf-8".to_owned();
        let line =
            answer_line("1", FileText { text, truncated: false, bytes, chars, encoding, binary: false });
        assert!(line.len() <= LIMIT && line.len() + 16 > LIMIT, "{}", line.len());
        let read = result::<FileText>(&line);
        assert!(read.truncated && read.bytes == bytes && read.chars > kept);
        assert_eq!(read.text.chars().count(), read.chars);
    }
}

#[test]
fn what_cannot_be_shortened_is_an_internal_error_that_names_the_limit() {
    let task = TaskResult { task: task(1, "x".repeat(LIMIT)) };
    let error = &value(&answer_line("1", task))["error"];
    assert_eq!((&error["code"], &error["data"]), (&json!("INTERNAL"), &json!({"limit": LIMIT})));
    let data = json!("x".repeat(LIMIT));
    let error = WireError { code: PodErrorCode::DbError, message: "m".to_owned(), data };
    let line = error_line(Some("1"), &error);
    assert_eq!(value(&line)["error"]["data"], json!({"limit": LIMIT}));
}

#[test]
fn an_error_has_an_id_and_data_even_if_they_are_null_and_a_text_of_bounded_length() {
    let error = WireError { code: PodErrorCode::BadRequest, message: "é".repeat(5000), data: Value::Null };
    let line = value(&error_line(None, &error));
    assert_eq!(line["error"]["message"], "é".repeat(2000));
    let keys: Vec<&String> = line.as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 2);
    assert!(line["id"].is_null() && line["error"].as_object().unwrap()["data"].is_null());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Request::parse(&bytes);
    }

    #[test]
    fn a_damaged_request_is_read_or_refused(at in any::<proptest::sample::Index>(), byte in any::<u8>()) {
        let golden = include_str!("vectors/pod-v1.ndjson");
        for line in golden.lines().filter(|line| line.contains(r#","method":""#)) {
            let mut line = line.as_bytes().to_vec();
            let at = at.index(line.len());
            line[at] = byte;
            if let Ok(request) = Request::parse(&line) {
                let _ = (request.params::<TaskReserve>(), request.params::<Initialize>());
                let _ = (request.params::<TaskBulkCleanup>(), request.params::<ConfigSet>());
            }
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_list_of_any_rows_fits_its_line(
        sizes in proptest::collection::vec(0_usize..100_000, 0..24), unit in "[a\u{1}\"é😀]",
    ) {
        let tasks: Vec<_> =
            sizes.iter().enumerate().map(|(id, size)| task(id, unit.repeat(*size))).collect();
        let line = answer_line("1", TaskRows { tasks: tasks.clone(), truncated: false });
        prop_assert!(line.len() <= LIMIT);
        let rows = result::<TaskRows>(&line);
        prop_assert_eq!(&rows.tasks[..], &tasks[..rows.tasks.len()]);
        prop_assert_eq!(rows.truncated, rows.tasks.len() < tasks.len());
    }
}
