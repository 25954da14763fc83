//! Entries that are no healthy files.

use cofferdam_protocol::session::{Health, limits};
use cofferdam_tests::files::{fifo, mkdir, null_device, read, remove, socket, sparse, symlink, write};
use cofferdam_tests::user;

use super::site::{ARRAY, Site, envelope, id, page, planned, put};
use crate::session::Error;

#[test]
fn what_is_no_file_is_neither_listed_nor_opened_and_is_corrupt() {
    let site = Site::new();
    let outside = site.path("outside.json");
    write(&outside, envelope(&id(2), &site.workspace()));
    for dir in [site.scope(), site.legacy()] {
        mkdir(&dir);
        let at = |n| dir.join(format!("{}.json", id(n)));
        mkdir(at(1));
        symlink(&outside, at(2));
        // Nobody ever writes to it: whoever opened it to read would wait for ever.
        fifo(at(3));
        socket(at(4));
        if user::is_root() {
            null_device(at(5));
        } else {
            mkdir(at(5));
        }
        let store = site.store();
        assert_eq!(page(&store, 20, None, true), (vec![], None));
        assert_eq!(planned(&store), []);
        for n in 1..=5 {
            let row = store.inspect(&id(n)).unwrap();
            assert_eq!(
                (row.health, row.message_count, row.schema_version),
                (Health::Corrupt, 0, None),
                "{n}"
            );
            assert_eq!(row.workspace_scope, site.workspace().to_str().unwrap());
            assert!(matches!(store.validate(&id(n)), Err(Error::Corrupt { .. })), "{n}");
            assert!(matches!(store.load(&id(n)), Err(Error::Corrupt { .. })), "{n}");
        }
        // The same again for the flat directory.
        remove(&dir);
    }
    assert_eq!(read(&outside), envelope(&id(2), &site.workspace()).into_bytes());
}

#[test]
fn a_file_that_is_too_large_is_corrupt_without_being_read() {
    let site = Site::new();
    mkdir(site.scope());
    let at = |n| site.scope().join(format!("{}.json", id(n)));
    sparse(at(1), 32 << 30, &[]);
    sparse(at(2), limits::SESSION_FILE + 1, &[]);
    let text = envelope(&id(3), &site.workspace());
    // Blanks up to the most that is allowed.
    let blanks = " ".repeat(limits::SESSION_FILE as usize - text.len());
    write(at(3), format!("{text}{blanks}"));
    write(at(4), format!("{text}{blanks} "));
    let store = site.store();
    let rows = store.list(20, None, false).unwrap().sessions;
    assert_eq!(rows.len(), 4);
    for row in rows {
        let expected = if row.session_id == id(3).as_str() { Health::Ready } else { Health::Corrupt };
        assert_eq!(row.health, expected, "{}", row.session_id);
    }
    assert_eq!(store.inspect(&id(1)).unwrap().health, Health::Corrupt);
    assert!(matches!(store.validate(&id(2)), Err(Error::Corrupt { .. })));
}

#[test]
fn an_envelope_in_the_flat_directory_is_corrupt_and_its_summary_says_so() {
    let site = Site::new();
    put(&site.legacy(), &id(1), envelope(&id(1), &site.workspace()), 7);
    put(&site.legacy(), &id(2), format!(" \n{ARRAY}"), 6);
    put(&site.legacy(), &id(3), r#"[{"role": "user"}]"#, 5);
    let store = site.store();
    let rows = store.list(20, None, false).unwrap().sessions;
    let health: Vec<_> = rows.iter().map(|row| row.health).collect();
    assert_eq!(health, [Health::Corrupt, Health::Ready, Health::Corrupt]);
    for row in &rows {
        let id = cofferdam_protocol::session::SessionId::new(row.session_id.as_str()).unwrap();
        assert_eq!(store.inspect(&id).unwrap(), *row);
    }
}

#[test]
fn a_damaged_file_never_gives_way_to_the_one_in_the_flat_directory() {
    let site = Site::new();
    put(&site.legacy(), &id(1), ARRAY, 1);
    site.put(&id(1), "{broken", 2);
    let store = site.store();
    assert!(matches!(store.load(&id(1)), Err(Error::Corrupt { .. })));
    assert_eq!(store.inspect(&id(1)).unwrap().health, Health::Corrupt);
}

#[test]
fn an_array_becomes_a_conversation_as_old_as_its_file() {
    let site = Site::new();
    put(&site.legacy(), &id(1), ARRAY, 1234);
    site.put(&id(2), "[]", 1235);
    let store = site.store();
    let envelope = store.load(&id(1)).unwrap();
    assert_eq!(
        (envelope.generation, envelope.created_at_ms, envelope.updated_at_ms),
        (0, 1_234_000, 1_234_000)
    );
    assert_eq!(envelope.workspace_scope, store.workspace());
    let row = store.inspect(&id(2)).unwrap();
    assert_eq!(
        (row.health, row.message_count, row.model, row.schema_version),
        (Health::Ready, 0, None, Some(1))
    );
}

#[test]
fn times_before_1970_are_shown_as_0() {
    let site = Site::new();
    site.put(&id(1), "{broken", -5);
    assert_eq!(site.store().inspect(&id(1)).unwrap().updated_at_ms, 0);
}

#[test]
fn a_secret_leaves_neither_in_a_summary_nor_in_a_conversation() {
    let site = Site::new();
    let text = envelope(&id(1), &site.workspace());
    site.put(&id(1), text.replace("hello", "use api_key=sk-abcdefghijklmnopqrstuvwxyz123456 now"), 1);
    let store = site.store();
    let row = store.inspect(&id(1)).unwrap();
    assert_eq!(row.first_prompt.as_deref(), Some("use api_key=<redacted> now"));
    assert_eq!(store.list(20, None, false).unwrap().sessions, [row]);
    assert!(!format!("{:?}", store.load(&id(1)).unwrap()).contains("sk-abc"));
}

#[test]
fn a_model_is_cut_to_its_bound_when_a_conversation_is_loaded() {
    let site = Site::new();
    let text = envelope(&id(1), &site.workspace());
    site.put(&id(1), text.replace("\"m\"", &format!("\"{}\"", "x".repeat(300))), 1);
    let store = site.store();
    let expected = format!("{}…", "x".repeat(limits::MODEL - 3));
    assert_eq!(store.load(&id(1)).unwrap().model, expected);
    assert_eq!(store.validate(&id(1)).unwrap().model, Some(expected));
}
