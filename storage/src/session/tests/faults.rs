//! Every operation of writing, moving and clearing fails once, and is the last of its process once.

use cofferdam_protocol::session::Envelope;
use cofferdam_tests::files::{names, write};
use cofferdam_tests::mount::Mount;
use cofferdam_tests::skip;
use cofferdam_tests::user::is_root;
use rustix::io::Errno;

use super::site::{ARRAY, Site, id, put};
use super::talk::{fresh, said, texts};
use crate::disk::Disk;
use crate::disk::testing::Faults;
use crate::session::Error;

/// Runs `scene` with a disk that fails at operation N, for every N and in every way, until none fails any more.
fn each_fault(scene: impl Fn(&Faults, Disk, &str)) {
    for (errno, dies) in [(Errno::IO, false), (Errno::NOSPC, false), (Errno::IO, true)] {
        for nth in 0.. {
            let faults = Faults::new(nth, errno, dies);
            let what = format!("operation {nth}, {errno:?}, dies: {dies}");
            scene(&faults, Disk::with_faults(faults.clone()), &what);
            if !faults.happened() {
                assert!(nth > 3, "nothing was done");
                break;
            }
        }
    }
}

/// Writes one message more on a failing disk; then on a healthy one, as the same process goes on if it lives and as
/// another does if it died. What is read in between is the whole old conversation or the whole new one.
#[track_caller]
fn write_more(site: &mut Site, failing: Disk, old: &[&str], mut talk: Envelope, what: &str) {
    let new: Vec<_> = old.iter().copied().chain(["more"]).collect();
    talk.messages.push(said("user", "more"));
    site.disk = failing;
    let store = site.store();
    let result = store.persist(&mut talk);
    site.disk = Disk::default();
    match site.store().load(&id(1)) {
        Ok(stored) => {
            assert!(texts(&stored) == old || texts(&stored) == new, "{what}: {stored:?}");
            assert!(result.is_err() || stored == talk, "{what}: {stored:?}");
            // As much as the process knows is stored.
            assert_eq!(stored.generation, talk.generation, "{what}");
        }
        Err(Error::NotFound(_)) => assert!(old.is_empty() && result.is_err(), "{what}"),
        Err(error) => panic!("{what}: {error}"),
    }
    let mut other = site.store().load(&id(1)).unwrap_or_else(|_| fresh(site, &id(1)));
    let mut survivor = talk;
    let before = survivor.messages.len();
    site.store().persist(&mut survivor).unwrap_or_else(|error| panic!("{what}: {error}"));
    let stored = site.store().load(&id(1)).unwrap();
    assert_eq!((stored.messages.len(), &stored), (before, &survivor), "{what}");
    assert!(!site.legacy().exists() || names(site.legacy()).is_empty(), "{what}");
    // Whoever read it before that is too late.
    assert!(matches!(site.store().persist(&mut other), Err(Error::Conflict(_))), "{what}");
}

#[test]
fn a_first_write_that_fails_leaves_nothing_or_the_whole_conversation() {
    each_fault(|_, failing, what| {
        let mut site = Site::new();
        let mut talk = fresh(&site, &id(1));
        talk.messages.clear();
        write_more(&mut site, failing, &[], talk, what);
    });
}

#[test]
fn a_later_write_that_fails_leaves_the_old_or_the_new_conversation_whole() {
    each_fault(|_, failing, what| {
        let mut site = Site::new();
        let mut talk = fresh(&site, &id(1));
        site.store().persist(&mut talk).unwrap();
        // The first write of a store also removes what died writers left.
        let stale = site.scope().join(".a.b.tmp");
        write(&stale, "{");
        cofferdam_tests::files::set_mtime(&stale, 1, 0);
        write_more(&mut site, failing, &["hello"], talk, what);
    });
}

#[test]
fn a_move_that_fails_leaves_the_old_or_the_new_conversation_whole() {
    each_fault(|_, failing, what| {
        let mut site = Site::new();
        put(&site.legacy(), &id(1), ARRAY, 77);
        let talk = site.store().load(&id(1)).unwrap();
        write_more(&mut site, failing, &["long ago"], talk, what);
    });
}

#[test]
fn a_clear_that_fails_leaves_the_newest_conversation_whole_or_nothing() {
    each_fault(|faults, failing, what| {
        let mut site = Site::new();
        let mut talks = [1, 2].map(|n| fresh(&site, &id(n)));
        for talk in &mut talks {
            site.store().persist(talk).unwrap();
            put(&site.legacy(), &id(1), ARRAY, 77);
        }
        site.disk = failing;
        let asked = [1, 2].map(|n| id(n).to_string());
        let cleared = site.store().clear(&asked, &[]);
        site.disk = Disk::default();
        let store = site.store();
        assert_eq!(cleared.deleted.len() + cleared.skipped.len(), 2, "{what}");
        for (talk, n) in talks.iter_mut().zip(1..) {
            match store.load(&id(n)) {
                Ok(stored) => {
                    assert_eq!(stored, *talk, "{what}");
                    assert!(!cleared.deleted.contains(&id(n)), "{what}");
                }
                Err(Error::NotFound(_)) => {
                    // Nor does anybody who read it before bring it back.
                    assert!(matches!(store.persist(talk), Err(Error::Conflict(_))), "{what}");
                }
                Err(error) => panic!("{what}: {error}"),
            }
        }
        assert!(faults.happened() || cleared.deleted.len() == 2, "{what}");
        for (id, error) in store.clear(&asked, &[]).skipped {
            assert!(matches!(error, Error::NotFound(_)), "{what}: {id}: {error}");
        }
        assert_eq!(store.plan(&[], None, None).unwrap().clearable, [], "{what}");
    });
}

#[test]
fn on_a_disk_that_is_really_full_nothing_is_lost_and_clearing_makes_room() {
    if !is_root() {
        skip!("only root can mount");
    }
    let site = Site::new();
    let mount = Mount::tmpfs(&site.path("home"), 2048);
    let store = site.store();
    let long = "x".repeat(200_000);
    let mut talks = [1, 2].map(|n| fresh(&site, &id(n)));
    for talk in &mut talks {
        talk.messages.push(said("user", &long));
        store.persist(talk).unwrap();
    }
    mount.fill();
    let [first, second] = &mut talks;
    let old = first.clone();
    first.messages.push(said("user", &long));
    let outcome = store.persist(first);
    assert!(
        matches!(&outcome, Err(Error::Io { source, .. })
        if source.raw_os_error() == Some(Errno::NOSPC.raw_os_error())),
        "{outcome:?}"
    );
    assert_eq!(store.load(&id(1)).unwrap(), old);
    assert_eq!(store.clear(std::slice::from_ref(&second.session_id), &[]).deleted, [id(2)]);
    mount.free();
    store.persist(first).unwrap();
    assert_eq!(store.load(&id(1)).unwrap(), *first);
}
