//! The pod's wire against frozen lines: one request and one answer a method, an error a code, and the events.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use cofferdam_protocol::pod::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A conversation: each request with its answer behind it, then errors, then events.
const GOLDEN: &str = include_str!("vectors/pod-v1.ndjson");

const CODES: [&str; 27] = [
    "UNKNOWN_METHOD",
    "BAD_REQUEST",
    "CORE_UNAVAILABLE",
    "PROTOCOL_MISMATCH",
    "SCHEMA_MISMATCH",
    "DB_ERROR",
    "INTERNAL",
    "STALE_LEASE",
    "NO_SANDBOX_ROOT",
    "BAD_ROOT",
    "BAD_SUBDIR",
    "ROOT_PROTECTED",
    "PATH_OUTSIDE",
    "TASK_NOT_FOUND",
    "TASK_BUSY",
    "TASK_RUNNING",
    "TASK_NOT_RESUMABLE",
    "EXPORT_DISABLED",
    "TARGET_INSIDE_SANDBOX",
    "EXPORT_LIMIT",
    "EXPORT_NOT_FOUND",
    "FILE_TOO_LARGE",
    "FILE_NOT_FOUND",
    "BINARY_FILE",
    "UNDO_CONFLICT",
    "LEGACY_READONLY",
    "CONFIG_INVALID",
];

/// How a method's golden lines are held against its types: given both, as they are printed again.
type Again = fn(&str, &str) -> (String, String);

macro_rules! methods {
    ($($method:ident)+) => {
        fn methods() -> BTreeMap<&'static str, Again> {
            BTreeMap::from([$(($method::NAME, again::<$method> as Again)),+])
        }
    };
}
methods! {
    Initialize Shutdown Health DiagnosticsGet ConfigGet ConfigValidate ConfigSet TaskList TaskGet TaskReserve
    TaskReattach TaskMarkStarting TaskMarkRunning TaskTurnStarted TaskTurnEnded TaskSetLastText TaskSetSandboxCheck
    TaskSetAvailableTools TaskSetError TaskCancel TaskHeartbeat TaskCleanupFiles TaskDelete TaskBySession
    TaskLegacyLog TaskBulkCleanup SandboxPrepare FilesList FilesStat FilesRead ExportCreate ExportList ExportUndo
    ExportDeleteRecord
}

fn again<M: Method>(request: &str, answer: &str) -> (String, String)
where
    M::Result: DeserializeOwned,
{
    #[derive(Deserialize)]
    struct Success<T> {
        id: String,
        result: T,
    }
    let Request { id, method, .. } = Request::parse(request.as_bytes()).unwrap();
    let params: M = Request::parse(request.as_bytes()).unwrap().params().unwrap();
    let (id, method) = (serde_json::to_string(&id).unwrap(), serde_json::to_string(&method).unwrap());
    let params = serde_json::to_string(&params).unwrap();
    let answer: Success<M::Result> = serde_json::from_str(answer).unwrap();
    let request = format!(r#"{{"id":{id},"method":{method},"params":{params}}}"#);
    (request, answer_line(&answer.id, answer.result))
}

fn value(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn every_method_reads_its_golden_lines_and_prints_them_byte_for_byte() {
    let methods = methods();
    let mut seen = BTreeSet::new();
    let mut lines = GOLDEN.lines();
    while let Some(request) = lines.next().filter(|line| line.contains(r#","method":""#)) {
        let answer = lines.next().unwrap();
        let method = Request::parse(request.as_bytes()).unwrap().method;
        assert_eq!(value(request)["id"], value(answer)["id"]);
        let (request_again, answer_again) = methods[method.as_str()](request, answer);
        assert_eq!(request_again, request);
        assert_eq!(answer_again, answer);
        seen.insert(method);
    }
    assert_eq!(seen.len(), METHOD_NAMES.len());
}

#[test]
fn every_code_is_spelled_as_in_the_contract_and_its_error_printed_byte_for_byte() {
    #[derive(Deserialize)]
    struct Failed {
        id: Option<String>,
        error: WireError,
    }
    let mut seen = Vec::new();
    for line in GOLDEN.lines().filter(|line| line.contains(r#","error":{"code""#)) {
        let failed: Failed = serde_json::from_str(line).unwrap();
        assert_eq!(error_line(failed.id.as_deref(), &failed.error), line);
        seen.push(serde_json::to_value(failed.error.code).unwrap());
    }
    assert_eq!(seen, CODES);
    let unknown = serde_json::from_str::<PodErrorCode>("\"?\"").unwrap_err().to_string();
    assert_eq!(
        unknown.matches('`').count(),
        2 * (1 + CODES.len()),
        "a code without a golden line: {unknown}"
    );
}

#[test]
fn every_event_is_printed_byte_for_byte() {
    let mut seen = BTreeSet::new();
    for line in GOLDEN.lines().filter(|line| line.starts_with(r#"{"method":"event""#)) {
        let params = value(line)["params"].take();
        seen.insert(params["kind"].as_str().unwrap().to_owned());
        assert_eq!(event_line(&serde_json::from_value(params).unwrap()), line);
    }
    let kinds = ["core.warning", "deadline.expired", "export.progress", "queue.dispatch", "task.changed"];
    assert_eq!(seen, kinds.map(str::to_owned).into());
}

#[test]
fn the_methods_are_the_34_of_the_contract() {
    let mut contract = [
        "initialize",
        "shutdown",
        "health",
        "diagnostics.get",
        "config.get",
        "config.validate",
        "config.set",
        "task.list",
        "task.get",
        "task.reserve",
        "task.reattach",
        "task.markStarting",
        "task.markRunning",
        "task.turnStarted",
        "task.turnEnded",
        "task.setLastText",
        "task.setSandboxCheck",
        "task.setAvailableTools",
        "task.setError",
        "task.cancel",
        "task.heartbeat",
        "task.cleanupFiles",
        "task.delete",
        "task.bySession",
        "task.legacyLog",
        "task.bulkCleanup",
        "sandbox.prepare",
        "files.list",
        "files.stat",
        "files.read",
        "export.create",
        "export.list",
        "export.undo",
        "export.deleteRecord",
    ];
    let mut ours = METHOD_NAMES.to_vec();
    contract.sort_unstable();
    ours.sort_unstable();
    assert_eq!(ours, contract);
    assert_eq!(ours.len(), 34);
}

#[test]
fn a_task_has_exactly_the_keys_of_the_contract() {
    let listed = GOLDEN.lines().find(|line| line.starts_with(r#"{"id":"task.get","result""#)).unwrap();
    let contract = "id sessionId mainSessionId label description status subdir taskDir sandboxRoot createdAt queuedAt \
        startedAt endedAt turns timeoutMs allow availableTools presetId model sandboxMode sandboxProbe fsDenied \
        lastText error legacy turnDeadline queuedPosition";
    let contract: BTreeSet<&str> = contract.split_whitespace().collect();
    assert_eq!(contract.len(), 27);
    assert_eq!(keys(&value(listed)["result"]["task"]), contract);
}

#[test]
fn the_configuration_has_exactly_the_keys_and_defaults_of_the_contract() {
    let contract = serde_json::json!({
        "sandboxRoot": "",
        "allowWrites": true,
        "allowedTools": ["pwsh", "bash", "read", "write", "edit", "glob", "grep"],
        "timeoutMs": 600_000,
        "readContext": true,
        "maxConcurrent": 3,
        "queueEnabled": true,
        "enableExport": true,
        "allowRememberChoice": false,
        "presetId": "",
        "maxTasks": 200,
        "maxExports": 200,
        "retentionDays": 0,
        "previewBytes": 307_200,
        "previewChars": 20_000,
        "exportVerify": true,
        "sandboxProbeMode": "strict",
        "autoResumeOnOpen": true,
        "logLevel": "info",
    });
    assert_eq!(keys(&contract).len(), 19);
    assert_eq!(serde_json::to_value(Config::default()).unwrap(), contract);
}

#[test]
fn the_words_of_a_status_are_those_it_has_on_the_wire() {
    for status in TaskStatus::ALL {
        assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        assert_eq!(TaskStatus::parse(status.as_str()), Some(status));
    }
    for mode in [SandboxMode::WorkspaceWrite, SandboxMode::ReadOnly] {
        assert_eq!(serde_json::to_value(mode).unwrap(), mode.as_str());
    }
    for probe in [Probe::Denied, Probe::Allowed, Probe::Ambiguous, Probe::SkippedNoParent, Probe::Failed] {
        assert_eq!(serde_json::to_value(probe).unwrap(), probe.as_str());
    }
}

#[test]
fn a_change_of_golden_lines_needs_a_new_wire_version() {
    const FROZEN: [(u32, u64); 1] = [(1, 0x860a_4a51_4f02_e3d1)];
    // FNV-1a: it only has to notice a change.
    let digest = GOLDEN.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    assert_eq!(FROZEN.last(), Some(&(WIRE_VERSION, digest)), "{digest:#x}");
}
