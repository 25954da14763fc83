//! What is written, and what is refused.

use std::os::unix::fs::PermissionsExt;

use cofferdam_protocol::session::{Compaction, Envelope, limits};
use cofferdam_tests::files::{Locked, mkdir, names, read, remove, set_mtime, symlink, write};

use super::site::{ARRAY, Site, envelope, id, put};
use super::talk::{fresh, said, temporary, texts};
use crate::clock::{Clock, SystemClock};
use crate::disk::Disk;
use crate::disk::Op;
use crate::disk::testing::{Faults, Recorder};
use crate::session::{Error, SessionStore};

fn mode(path: impl AsRef<std::path::Path>) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

#[track_caller]
fn is_conflict(outcome: Result<(), Error>) {
    assert!(matches!(outcome, Err(Error::Conflict(_))), "{outcome:?}");
}

#[track_caller]
fn is_corrupt(outcome: Result<(), Error>) {
    assert!(matches!(outcome, Err(Error::Corrupt { .. })), "{outcome:?}");
}

#[test]
fn a_conversation_is_written_privately_and_read_back_as_it_was() {
    let site = Site::new();
    let store = site.store();
    let mut talk = fresh(&site, &id(1));
    for generation in 1..=3 {
        store.persist(&mut talk).unwrap();
        assert_eq!((talk.generation, talk.created_at_ms), (generation, 1_000));
        assert!(talk.updated_at_ms > 1_600_000_000_000);
        assert_eq!(store.load(&id(1)).unwrap(), talk);
        talk.messages.push(said("assistant", "yes"));
    }
    assert_eq!(names(site.scope()), [format!(".{}.lock", id(1)), format!("{}.json", id(1))]);
    assert_eq!([site.scope(), site.root()].map(mode), [0o700; 2]);
    for name in names(site.scope()) {
        assert_eq!(mode(site.scope().join(name)), 0o600);
    }
    let text = String::from_utf8(read(site.scope().join(format!("{}.json", id(1))))).unwrap();
    assert!(text.starts_with("{\n  \"schema_version\": 1,\n  \"session_id\": "), "{text}");
}

#[test]
fn a_replacement_is_whole_and_durable_before_it_has_its_name_and_the_name_is_after() {
    let mut site = Site::new();
    let (done, disk) = Recorder::disk();
    site.disk = disk;
    let store = site.store();
    let mut talk = fresh(&site, &id(1));
    store.persist(&mut talk).unwrap();
    let written = [Op::Create, Op::SetMeta, Op::Write, Op::Fsync, Op::Rename, Op::Fsync];
    let first = done.take();
    let made = first.strip_suffix(&written[..]).unwrap();
    // The home is there, four directories are not; then the lock. Nothing is made in a directory whose own name is not
    // durable.
    assert_eq!(made.iter().filter(|op| **op == Op::Mkdir).count(), 4, "{made:?}");
    assert!(made.windows(2).all(|two| two[0] != Op::Mkdir || two[1] == Op::Fsync), "{made:?}");
    assert_eq!(made.last(), Some(&Op::Create));
    store.persist(&mut talk).unwrap();
    assert_eq!(done.take(), written);
}

#[test]
fn a_moved_conversation_is_durable_before_the_old_file_goes() {
    let mut site = Site::new();
    let (done, disk) = Recorder::disk();
    site.disk = disk;
    put(&site.legacy(), &id(1), ARRAY, 77);
    let store = site.store();
    let mut talk = store.load(&id(1)).unwrap();
    talk.messages.push(said("user", "again"));
    store.persist(&mut talk).unwrap();
    assert!(done.take().ends_with(&[Op::Fsync, Op::Rename, Op::Fsync, Op::Unlink, Op::Fsync]));
    assert_eq!((talk.generation, talk.created_at_ms), (1, 77_000));
    assert_eq!(names(site.legacy()), [""; 0]);
    let moved = store.load(&id(1)).unwrap();
    assert_eq!((texts(&moved), moved.created_at_ms), (vec!["long ago", "again"], 77_000));
}

#[test]
fn an_old_file_that_cannot_be_removed_is_an_error_each_time_until_it_can_and_costs_no_message() {
    let mut site = Site::new();
    put(&site.legacy(), &id(1), ARRAY, 77);
    let mut talk = site.store().load(&id(1)).unwrap();
    for generation in 1..=2 {
        talk.messages.push(said("user", "more"));
        site.disk = Disk::with_faults(std::sync::Arc::new(NoUnlink));
        let outcome = site.store().persist(&mut talk);
        assert!(matches!(&outcome, Err(Error::Io { operation: "remove", .. })), "{outcome:?}");
        assert_eq!(talk.generation, generation);
        assert_eq!(site.store().load(&id(1)).unwrap(), talk);
        assert_eq!(names(site.legacy()).len(), 1);
    }
    site.disk = Disk::default();
    site.store().persist(&mut talk).unwrap();
    assert_eq!((names(site.legacy()).len(), talk.generation), (0, 3));
    assert_eq!(texts(&site.store().load(&id(1)).unwrap()), ["long ago", "more", "more"]);
}

/// A directory from which nothing can be removed.
#[derive(Debug)]
struct NoUnlink;

impl crate::disk::FaultHook for NoUnlink {
    fn before(&self, op: Op) -> std::io::Result<()> {
        if op == Op::Unlink { Err(rustix::io::Errno::ACCESS.into()) } else { Ok(()) }
    }
    fn step(&self, _: &str) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn beside_a_newer_file_only_an_array_is_taken_for_the_old_one() {
    let site = Site::new();
    for (old, stays) in
        [(ARRAY.to_owned(), 0), ("{broken".to_owned(), 1), (envelope(&id(1), &site.workspace()), 1)]
    {
        put(&site.legacy(), &id(1), &old, 77);
        remove(site.scope());
        let mut talk = fresh(&site, &id(1));
        site.put_ready(&id(1), 99);
        talk.generation = 3;
        site.store().persist(&mut talk).unwrap();
        assert_eq!(names(site.legacy()).len(), stays, "{old}");
    }
    // What is no file at all is in nobody's way.
    remove(site.legacy());
    mkdir(site.legacy().join(format!("{}.json", id(1))));
    let mut talk = site.store().load(&id(1)).unwrap();
    site.store().persist(&mut talk).unwrap();
}

#[test]
fn secrets_never_reach_the_disk_and_are_forgotten() {
    let site = Site::new();
    let store = site.store();
    let mut talk = fresh(&site, &id(1));
    talk.messages.push(said("user", "use api_key=sk-A1b2C3d4A1b2C3d4A1b2C3d4 please"));
    store.persist(&mut talk).unwrap();
    assert_eq!(texts(&talk), ["hello", "use api_key=<redacted> please"]);
    let text = read(site.scope().join(format!("{}.json", id(1))));
    assert!(!String::from_utf8(text).unwrap().contains("A1b2"));
}

#[test]
fn only_the_newest_generation_and_revision_may_be_followed() {
    let site = Site::new();
    let store = site.store();
    let mut talk = fresh(&site, &id(1));
    talk.compaction_revision = 5;
    store.persist(&mut talk).unwrap();
    let bytes = read(site.scope().join(format!("{}.json", id(1))));
    for (generation, revision) in [(0, 5), (2, 5), (1, 4)] {
        let before = Envelope { generation, compaction_revision: revision, ..talk.clone() };
        let mut other = before.clone();
        is_conflict(store.persist(&mut other));
        assert_eq!(other, before);
    }
    assert_eq!(read(site.scope().join(format!("{}.json", id(1)))), bytes);
    assert_eq!(temporary(&site), [""; 0]);
    store.persist(&mut talk).unwrap();
}

#[test]
fn what_was_removed_meanwhile_does_not_come_back() {
    let site = Site::new();
    let store = site.store();
    let mut written = fresh(&site, &id(1));
    store.persist(&mut written).unwrap();
    put(&site.legacy(), &id(2), ARRAY, 77);
    site.put(&id(3), ARRAY, 77);
    let mut arrays = [2, 3].map(|n| site.store().load(&id(n)).unwrap());
    let ids = [1, 2, 3].map(|n| id(n).to_string());
    assert_eq!(site.store().clear(&ids, &[]).deleted.len(), 3);
    let store = site.store();
    is_conflict(store.persist(&mut written));
    arrays.iter_mut().for_each(|array| is_conflict(store.persist(array)));
    for n in 1..=3 {
        assert!(matches!(store.load(&id(n)), Err(Error::NotFound(_))));
    }
}

#[test]
fn a_directory_that_was_removed_as_a_whole_is_made_again() {
    let site = Site::new();
    let store = site.store();
    let mut talk = fresh(&site, &id(1));
    store.persist(&mut talk).unwrap();
    for gone in [site.scope(), site.root()] {
        remove(gone);
        talk.messages.push(said("user", "still here"));
        store.persist(&mut talk).unwrap();
        assert_eq!(store.load(&id(1)).unwrap(), talk);
    }
    assert_eq!((talk.generation, talk.messages.len()), (3, 3));
}

#[test]
fn an_array_that_was_written_since_it_was_read_is_not_replaced() {
    for legacy in [true, false] {
        let site = Site::new();
        let dir = if legacy { site.legacy() } else { site.scope() };
        put(&dir, &id(1), ARRAY, 77);
        let mut talk = site.store().load(&id(1)).unwrap();
        let newer = ARRAY.replace("ago", "after");
        put(&dir, &id(1), &newer, 78);
        is_conflict(site.store().persist(&mut talk));
        assert_eq!(texts(&site.store().load(&id(1)).unwrap()), ["long after"]);
        // Nor is it by a conversation that begins.
        is_conflict(site.store().persist(&mut fresh(&site, &id(1))));
    }
}

#[test]
fn what_cannot_be_loaded_is_not_replaced() {
    let site = Site::new();
    let store = site.store();
    let ready = envelope(&id(1), &site.workspace());
    let table = [
        ("{broken".to_owned(), "corrupt"),
        (ready.replace("\"schema_version\": 1", "\"schema_version\": 99"), "incompatible"),
        (envelope(&id(1), &site.path("other")), "scope"),
        (ready.replace("\"generation\": 3", &format!("\"generation\": {}", u64::MAX)), "exhausted"),
    ];
    for (stored, what) in table {
        site.put(&id(1), &stored, 5);
        let generation = if what == "exhausted" { u64::MAX } else { 3 };
        let outcome = store.persist(&mut Envelope { generation, ..fresh(&site, &id(1)) });
        match (what, &outcome) {
            ("corrupt" | "exhausted", Err(Error::Corrupt { .. }))
            | ("incompatible", Err(Error::IncompatibleVersion { version: 99, .. }))
            | ("scope", Err(Error::ScopeMismatch { .. })) => {}
            _ => panic!("{what}: {outcome:?}"),
        }
        assert_eq!(read(site.scope().join(format!("{}.json", id(1)))), stored.as_bytes());
    }
    remove(site.scope());
    put(&site.legacy(), &id(1), "{}", 5);
    is_corrupt(site.store().persist(&mut fresh(&site, &id(1))));
    assert_eq!(names(site.legacy()).len(), 1);
}

#[test]
fn an_envelope_that_does_not_belong_here_makes_nothing() {
    let site = Site::new();
    let store = site.store();
    let talk = fresh(&site, &id(1));
    let refused = |talk: Envelope| store.persist(&mut { talk }).unwrap_err();
    let newer = Envelope { schema_version: 2, ..talk.clone() };
    assert!(matches!(refused(newer), Error::IncompatibleVersion { version: 2, .. }));
    let foreign = Envelope { workspace_scope: "/elsewhere".to_owned(), ..talk.clone() };
    assert!(matches!(refused(foreign), Error::ScopeMismatch { .. }));
    let odd = Envelope { session_id: "../x".to_owned(), ..talk.clone() };
    assert!(matches!(refused(odd), Error::InvalidId(_)));
    let large = "x".repeat(limits::SESSION_FILE as usize);
    let large = Envelope { messages: vec![said("user", &large)], ..talk };
    assert!(matches!(refused(large), Error::Corrupt { .. }));
    assert!(!site.root().exists());
}

fn compaction(through: u64) -> Compaction {
    Compaction {
        revision: 7,
        compacted_through: through,
        summary: "they spoke; password=hunter2".to_owned(),
        model: "m".to_owned(),
        prompt_version: 1,
        source_digest: String::new(),
        tokens_before: None,
        tokens_after: None,
        created_at_ms: 5,
    }
}

#[test]
fn a_summary_stands_for_the_messages_as_they_are_written() {
    let site = Site::new();
    let store = site.store();
    let mut talk = fresh(&site, &id(1));
    talk.messages.insert(0, said("user", "token=abc"));
    for through in [0, 3, u64::MAX] {
        talk.compaction = Some(compaction(through));
        is_corrupt(store.persist(&mut talk));
    }
    assert!(!site.root().exists());
    talk.compaction = Some(compaction(1));
    store.persist(&mut talk).unwrap();
    let stored = store.load(&id(1)).unwrap();
    assert_eq!(stored, talk);
    assert_eq!(stored.compaction_revision, 7);
    let compaction = stored.compaction.unwrap();
    assert_eq!(compaction.source_digest, Compaction::digest(&[said("user", "token=<redacted>")]));
    assert_eq!(compaction.summary, "they spoke; password=<redacted>");
}

#[test]
fn a_lock_that_somebody_holds_is_a_conflict_until_it_is_given_back() {
    let site = Site::new();
    let store = site.store();
    let mut talk = fresh(&site, &id(1));
    store.persist(&mut talk).unwrap();
    let held = Locked::new(site.scope().join(format!(".{}.lock", id(1))));
    is_conflict(store.persist(&mut talk));
    assert_eq!(talk.generation, 1);
    drop(held);
    store.persist(&mut talk).unwrap();

    put(&site.legacy(), &id(2), ARRAY, 77);
    let store = site.store();
    let held = Locked::new(site.legacy().join(format!("{}.json", id(2))));
    let mut talk = store.load(&id(2)).unwrap();
    is_conflict(store.persist(&mut talk));
    drop(held);
    store.persist(&mut talk).unwrap();
}

#[test]
fn a_lock_that_is_no_file_is_refused_and_not_followed() {
    let site = Site::new();
    let store = site.store();
    let lock = site.scope().join(format!(".{}.lock", id(1)));
    write(site.path("target"), "");
    symlink(site.path("target"), site.path("link"));
    mkdir(site.scope());
    let makers: [fn(&Site, &std::path::Path); 3] = [
        |site, lock| symlink(site.path("target"), lock),
        |_, lock| mkdir(lock),
        |_, lock| cofferdam_tests::files::fifo(lock),
    ];
    for make in makers {
        make(&site, &lock);
        let outcome = store.persist(&mut fresh(&site, &id(1)));
        assert!(matches!(outcome, Err(Error::Io { operation: "open lock", .. })), "{outcome:?}");
        assert_eq!(names(site.scope()).len(), 1);
        remove(&lock);
    }
    assert_eq!(mode(site.path("target")) & 0o077, 0o044);
}

#[test]
fn old_temporary_files_go_with_the_first_write_and_nothing_else_does() {
    let site = Site::new();
    let now = SystemClock::new().wall().0 / 1_000_000_000;
    let temporary = |name: &str, age: i64| {
        let path = site.scope().join(name);
        write(&path, "{");
        set_mtime(&path, now - age, 0);
    };
    temporary(".a.b.tmp", 3601);
    temporary(".young.tmp", 3500);
    temporary("z.tmp", 9999);
    temporary(".old.lock", 9999);
    mkdir(site.scope().join(".dir.tmp"));
    set_mtime(site.scope().join(".dir.tmp"), 1, 0);
    let store = site.store();
    let (id_1, left) = (id(1), [".dir.tmp", ".old.lock", ".young.tmp", "z.tmp"]);
    store.list(20, None, false).unwrap();
    store.clear(&[id_1.to_string()], &[]);
    assert_eq!(names(site.scope()).len(), 5);
    let mut talk = fresh(&site, &id_1);
    store.persist(&mut talk).unwrap();
    let names = || names(site.scope()).into_iter().filter(|name| !name.contains(id_1.as_str()));
    assert!(names().eq(left), "{:?}", names().collect::<Vec<_>>());
    // Once for each store.
    temporary(".a.b.tmp", 3601);
    store.persist(&mut talk).unwrap();
    assert_eq!(names().count(), 5);
    site.store().persist(&mut talk).unwrap();
    assert_eq!(names().count(), 4);
}

/// A store whose disk is full when operation `nth` comes.
fn full(site: &mut Site, nth: u64) -> SessionStore {
    site.disk = Disk::with_faults(Faults::new(nth, rustix::io::Errno::NOSPC, false));
    site.store()
}

#[test]
fn a_full_disk_is_an_io_error_that_leaves_the_old_conversation_and_no_temporary_file() {
    let mut site = Site::new();
    let mut talk = fresh(&site, &id(1));
    site.store().persist(&mut talk).unwrap();
    let old = talk.clone();
    // To make the temporary file, to write it, to sync it, to rename it.
    for nth in [0, 2, 3, 4] {
        let mut talk = old.clone();
        talk.messages.push(said("user", "more"));
        let before = talk.clone();
        let outcome = full(&mut site, nth).persist(&mut talk);
        assert!(
            matches!(&outcome, Err(Error::Io { source, .. })
            if source.raw_os_error() == Some(rustix::io::Errno::NOSPC.raw_os_error())),
            "{outcome:?}"
        );
        assert_eq!(talk, before);
        assert_eq!(site.store().load(&id(1)).unwrap(), old);
        assert_eq!(temporary(&site), [""; 0]);
    }
}
