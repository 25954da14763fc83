//! The routes of the host's methods, over a host that only says what it was asked.

use cofferdam_actors::host::HostFailure;
use cofferdam_protocol::host::{HostCode, HostErrorCode, MAX_BODY};
use cofferdam_protocol::pod::PodErrorCode as PodCode;

use super::*;
use crate::host::tests::stub::{Heard, HostStub, args_of_all};

async fn send(stub: HostStub, peer: Option<Peer>, request: TestRequest) -> (StatusCode, String, Value) {
    ask(scope(services(Some(stub.start().into()))), peer, request).await
}

fn call(name: &str, args: &Value) -> TestRequest {
    post(&format!("/api/v1/pod/{name}"), args)
}

#[actix_web::test]
async fn each_method_is_a_route_that_takes_its_args_and_answers_flat() {
    for (name, args) in args_of_all() {
        let heard = Heard::default();
        let stub = HostStub { heard: heard.clone(), ..HostStub::default() };
        let (status, content_type, body) = send(stub, Some(Peer::own()), call(name, &args)).await;
        assert_eq!((status, content_type.as_str()), (StatusCode::OK, "application/json"), "{name}: {body}");
        assert_eq!((&body["ok"], body.get("result")), (&json!(true), None), "{name}");
        assert_eq!(heard.asked.lock().unwrap().len(), 1, "{name}");
    }
}

#[actix_web::test]
async fn args_may_be_left_out_where_none_are_needed_and_are_refused_where_they_are_wrong() {
    let send = async |name: &str, body: &str| {
        let request = TestRequest::post().uri(&format!("/api/v1/pod/{name}")).set_payload(body.to_owned());
        let (status, _, body) = send(HostStub::default(), Some(Peer::own()), request).await;
        (status.as_u16(), body["code"].clone())
    };
    for body in ["", "{}", "null", r#"{"unknown": 1}"#] {
        assert_eq!(send("getState", body).await, (200, Value::Null), "{body}");
    }
    let long = format!(r#"{{"x": "{}"}}"#, "x".repeat(MAX_BODY));
    for body in ["{", "[]", "5", r#"{"taskId": 5}"#, "{} {}"] {
        assert_eq!(send("openTask", body).await, (400, json!("BAD_REQUEST")), "{body}");
    }
    assert_eq!(send("getState", &long[..MAX_BODY]).await, (400, json!("BAD_REQUEST")));
    let request = TestRequest::post().uri("/api/v1/pod/getState").set_payload(long);
    let app = App::new().service(scope(services(Some(HostStub::default().start().into()))));
    let request = request.to_request();
    request.extensions_mut().insert(Peer::own());
    assert_eq!(call_service(&init_service(app).await, request).await.status(), StatusCode::PAYLOAD_TOO_LARGE);
}

#[actix_web::test]
async fn they_are_for_this_process_own_user_and_there_may_be_no_host() {
    let stranger = Peer { uid: Peer::own().uid + 1, gid: 1, groups: Vec::new() };
    for (name, args) in args_of_all() {
        let (status, _, body) = send(HostStub::default(), Some(stranger.clone()), call(name, &args)).await;
        assert_eq!((status.as_u16(), &body["code"]), (403, &json!("Forbidden")), "{name}");
        let (status, _, body) = ask(scope(services(None)), Some(Peer::own()), call(name, &args)).await;
        assert_eq!((status.as_u16(), &body["code"]), (503, &json!("CORE_UNAVAILABLE")), "{name}");
    }
}

#[actix_web::test]
async fn every_code_has_its_status_and_keeps_its_text() {
    let with_status = |status: u16, codes: &[PodCode]| {
        codes.iter().map(|code| (HostErrorCode::from(*code), status)).collect::<Vec<_>>()
    };
    use PodCode::*;
    let table = [
        with_status(400, &[BadRequest, BadSubdir, PathOutside, TargetInsideSandbox]),
        with_status(404, &[UnknownMethod, TaskNotFound, ExportNotFound, FileNotFound]),
        with_status(409, &[StaleLease, NoSandboxRoot, BadRoot, RootProtected, TaskBusy, TaskRunning]),
        with_status(409, &[TaskNotResumable, ExportDisabled, UndoConflict, LegacyReadonly, ConfigInvalid]),
        with_status(422, &[ExportLimit, FileTooLarge, BinaryFile]),
        with_status(500, &[DbError, Internal]),
        with_status(503, &[CoreUnavailable, ProtocolMismatch, SchemaMismatch]),
        vec![
            (HostCode::MainSessionNotLive.into(), 409),
            (HostCode::Forbidden.into(), 403),
            (HostCode::Unauthorized.into(), 401),
            (HostCode::NotFound.into(), 404),
            (HostCode::MethodNotAllowed.into(), 405),
        ],
    ];
    for (code, status) in table.into_iter().flatten() {
        let refusal = Some(HostFailure { code, message: "what happened".to_owned(), data: Value::Null });
        let stub = HostStub { refusal, ..HostStub::default() };
        let answer = send(stub, Some(Peer::own()), call("listExports", &json!({}))).await;
        assert_json(answer, status, &json!({"code": code.word(), "message": "what happened"}));
    }
}

/// Compares the document with every request and answer: schemas hold exactly the keys that are sent, all the way down.
#[actix_web::test]
async fn the_document_describes_every_key_of_every_method() {
    let document: Value = serde_json::from_str(OPENAPI).unwrap();
    for (name, args) in args_of_all() {
        let method = &document["paths"][format!("/pod/{name}")]["post"];
        let schema = |of: &Value| of["content"]["application/json"]["schema"].clone();
        described(&document, &schema(&method["requestBody"]), &args, &format!("{name} args"));
        let answer = send(HostStub::default(), Some(Peer::own()), call(name, &args)).await.2;
        described(&document, &schema(&method["responses"]["200"]), &answer, &format!("{name} answer"));
    }
}

/// Fails unless the value has the keys and kinds that the schema says, and the schema says nothing of other keys.
#[track_caller]
pub(super) fn described(document: &Value, schema: &Value, value: &Value, at: &str) {
    let schema = match schema["$ref"].as_str() {
        Some(name) => {
            document.pointer(name.trim_start_matches('#')).unwrap_or_else(|| panic!("{at}: {name}"))
        }
        None => schema,
    };
    if let Some(choices) = schema["oneOf"].as_array() {
        let nothing = choices.iter().any(|choice| choice["type"] == "null");
        if !(value.is_null() && nothing) {
            described(document, &choices[0], value, at);
        }
        return;
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let kinds = &schema["type"];
    let named = kinds.as_array().map_or_else(|| *kinds == kind, |kinds| kinds.contains(&json!(kind)));
    assert!(named, "{at} is {kind}, not {kinds}");
    if let Some(words) = schema["enum"].as_array() {
        assert!(words.contains(value), "{at} is {value}, not one of {words:?}");
    }
    for (place, item) in value.as_array().into_iter().flatten().enumerate() {
        described(document, &schema["items"], item, &format!("{at}[{place}]"));
    }
    let (Some(properties), Some(object)) = (schema["properties"].as_object(), value.as_object()) else {
        return;
    };
    let is_patch = at.ends_with(".patch");
    let keys: BTreeSet<_> = object.keys().collect();
    if !is_patch {
        assert_eq!(properties.keys().collect::<BTreeSet<_>>(), keys, "{at}");
    }
    for required in schema["required"].as_array().into_iter().flatten() {
        assert!(object.contains_key(required.as_str().unwrap()), "{at}: {required}");
    }
    for (key, value) in object {
        let of = properties.get(key).unwrap_or_else(|| panic!("{at}: {key} is not described"));
        // The words of a patch are bounds of what comes of it.
        described(document, of, value, &format!("{at}.{key}"));
    }
}
