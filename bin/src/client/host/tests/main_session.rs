//! `cofferdam main attach`. It ends where the daemon does not let it attach again.

use cofferdam_protocol::host::{HostEvent, MainMessage};
use serde_json::json;

use crate::client::host::testing::*;

fn message(id: &str, text: &str) -> HostEvent {
    HostEvent::MainMessage(MainMessage {
        session_id: "main 1".into(),
        id: id.into(),
        text: text.into(),
        at: NOW,
    })
}

#[test]
fn each_message_is_printed_once_also_if_it_comes_again_after_the_daemon_did() {
    let stub = Stub::new(|method, _| panic!("{method}"))
        .stream(Stream::of(&[message("ipp-ret-1", "a"), message("ipp-ret-1", "a")]).then_over())
        .stream(
            Stream::of(&[message("ipp-ret-1", "a"), HostEvent::Lost, message("ipp-ret-2", "b\x1b")])
                .then_over(),
        )
        .stream(Stream::refused());
    let ran = stub.run(&["main", "attach", "main 1", "--cwd", "/a b", "--format", "json"]);
    let ids: Vec<_> =
        ran.out.lines().map(|line| serde_json::from_str::<MainMessage>(line).unwrap().id).collect();
    assert_eq!(ids, ["ipp-ret-1", "ipp-ret-2"]);
    assert!(!ran.out.contains('\x1b'));
    assert_eq!(
        ran.err,
        "Attached: main 1; Ctrl-C ends it.\n\
         The daemon is gone; looking for it.\n\
         Attached again: main 1\n\
         Warning: something the daemon said was lost; a message may be missing\n\
         The daemon is gone; looking for it.\n\
         Error [Forbidden]: not for you\n"
    );
    assert_eq!(ran.code, 1);
    let listens = stub.asked();
    assert_eq!(listens[0], ("events".to_owned(), json!("?sessionId=main%201&cwd=%2Fa%20b")));
    assert!(listens.iter().all(|listen| *listen == listens[0]) && listens.len() == 3, "{listens:?}");
}

#[test]
fn the_working_directory_is_the_current_one_unless_it_is_said() {
    let stub = Stub::new(|method, _| panic!("{method}")).stream(Stream::refused());
    assert_eq!(stub.run(&["main", "attach", "m"]).code, 1);
    let here = std::env::current_dir().unwrap();
    let here =
        percent_encoding::utf8_percent_encode(here.to_str().unwrap(), percent_encoding::NON_ALPHANUMERIC);
    assert_eq!(stub.asked()[0].1, json!(format!("?sessionId=m&cwd={here}")));
    assert_eq!(stub.run(&["main", "attach", " "]).code, 1);
}
