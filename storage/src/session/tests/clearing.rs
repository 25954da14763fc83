//! What is removed, in which order, and what is left alone.

use cofferdam_tests::files::{Locked, chmod, fifo, mkdir, names, read, remove, symlink, write};
use cofferdam_tests::skip;
use cofferdam_tests::user::{NOBODY, as_user, give_all, is_root};

use super::site::{ARRAY, Site, envelope, id, put};
use super::talk::fresh;
use crate::disk::Op;
use crate::disk::testing::Recorder;
use crate::session::{Cleared, Error, SessionStore};

fn clear(store: &SessionStore, ids: &[u32]) -> Cleared {
    let ids: Vec<_> = ids.iter().map(|n| id(*n).to_string()).collect();
    store.clear(&ids, &[])
}

/// The names of the errors of what was skipped.
fn skipped(cleared: &Cleared) -> Vec<&str> {
    let name = |error: &Error| match error {
        Error::InvalidId(_) => "invalid_id",
        Error::NotFound(_) => "not_found",
        Error::Corrupt { .. } => "corrupt",
        Error::Conflict(_) => "conflict",
        Error::ActiveSession(_) => "active_session",
        Error::Io { .. } => "io",
        other => panic!("{other:?}"),
    };
    cleared.skipped.iter().map(|(_, error)| name(error)).collect()
}

#[test]
fn each_id_is_cleared_for_itself_in_the_order_asked_for() {
    let site = Site::new();
    let store = site.store();
    for n in [1, 2, 4] {
        store.persist(&mut fresh(&site, &id(n))).unwrap();
    }
    let asked =
        [id(1).to_string(), id(2).to_string(), id(2).to_string(), id(3).to_string(), "BAD".to_owned()];
    let cleared = store.clear(&asked, &[id(1)]);
    assert_eq!(cleared.deleted, [id(2)]);
    assert_eq!(skipped(&cleared), ["active_session", "not_found", "not_found", "invalid_id"]);
    let texts: Vec<_> = cleared.skipped.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(texts, [&asked[0], &asked[2], &asked[3], &asked[4]]);
    let mut left = [1, 4].map(|n| [format!(".{}.lock", id(n)), format!("{}.json", id(n))]).concat();
    left.sort_unstable();
    assert_eq!(names(site.scope()), left);
}

#[test]
fn what_a_file_holds_does_not_matter() {
    let site = Site::new();
    site.put(&id(1), "{broken", 1);
    site.put(&id(2), r#"{"schema_version":99}"#, 1);
    site.put(&id(3), envelope(&id(3), &site.path("other")), 1);
    cofferdam_tests::files::sparse(site.scope().join(format!("{}.json", id(4))), 1 << 35, &[]);
    put(&site.legacy(), &id(5), "{broken", 1);
    let cleared = clear(&site.store(), &[1, 2, 3, 4, 5]);
    assert_eq!(cleared.deleted.len(), 5, "{cleared:?}");
    assert_eq!((names(site.scope()).len(), names(site.legacy()).len()), (0, 0));
}

#[test]
fn where_nothing_is_nothing_is_made() {
    let site = Site::new();
    assert_eq!(skipped(&clear(&site.store(), &[1])), ["not_found"]);
    assert!(!site.root().exists());
    put(&site.legacy(), &id(1), ARRAY, 1);
    assert_eq!(clear(&site.store(), &[1]).deleted.len(), 1);
    assert!(!site.root().exists());
}

#[test]
fn the_older_copy_goes_durably_before_the_newer_one_and_all_the_newer_ones_are_synced_at_once() {
    let mut site = Site::new();
    let (done, disk) = Recorder::disk();
    site.disk = disk;
    let store = site.store();
    for n in 1..=3 {
        store.persist(&mut fresh(&site, &id(n))).unwrap();
    }
    put(&site.legacy(), &id(1), ARRAY, 1);
    done.take();
    let cleared = clear(&site.store(), &[1, 2, 3]);
    assert_eq!(cleared.deleted.len(), 3);
    let both = [Op::Unlink, Op::Unlink];
    assert_eq!(done.take(), [&[Op::Unlink, Op::Fsync], &both[..], &both, &both, &[Op::Fsync]].concat());
    assert_eq!((names(site.scope()).len(), names(site.legacy()).len()), (0, 0));
}

#[test]
fn a_session_whose_lock_is_held_stays() {
    let site = Site::new();
    put(&site.legacy(), &id(2), ARRAY, 1);
    let store = site.store();
    store.persist(&mut fresh(&site, &id(1))).unwrap();
    let paths =
        [site.scope().join(format!(".{}.lock", id(1))), site.legacy().join(format!("{}.json", id(2)))];
    let held = paths.map(Locked::new);
    assert_eq!(skipped(&clear(&store, &[1, 2])), ["conflict", "conflict"]);
    assert!(store.load(&id(1)).is_ok() && store.load(&id(2)).is_ok());
    drop(held);
    assert_eq!(clear(&store, &[1, 2]).deleted.len(), 2);
}

#[test]
fn what_is_no_file_is_corrupt_and_stays_with_all_it_leads_to() {
    let site = Site::new();
    let outside = site.path("outside.json");
    write(&outside, envelope(&id(1), &site.workspace()));
    for dir in [site.scope(), site.legacy()] {
        let at = |n| dir.join(format!("{}.json", id(n)));
        mkdir(&dir);
        symlink(&outside, at(1));
        mkdir(at(2));
        fifo(at(3));
        let before = names(&dir);
        assert_eq!(skipped(&clear(&site.store(), &[1, 2, 3])), ["corrupt"; 3]);
        assert_eq!(names(&dir), before);
        remove(dir);
    }
    // Beside a healthy file it keeps that, too.
    symlink(&outside, {
        mkdir(site.legacy());
        site.legacy().join(format!("{}.json", id(1)))
    });
    site.put_ready(&id(1), 1);
    assert_eq!(skipped(&clear(&site.store(), &[1])), ["corrupt"]);
    assert!(site.store().load(&id(1)).is_ok());
    assert_eq!(read(&outside), envelope(&id(1), &site.workspace()).as_bytes());
}

#[test]
fn an_ordinary_users_files_that_nobody_may_read_can_be_cleared() {
    let site = Site::new();
    site.put_ready(&id(1), 1);
    put(&site.legacy(), &id(2), ARRAY, 1);
    chmod(site.scope().join(format!("{}.json", id(1))), 0);
    chmod(site.legacy().join(format!("{}.json", id(2))), 0);
    let work = || clear(&site.store(), &[1, 2]).deleted.len();
    let deleted = if is_root() {
        give_all(site.path("."), NOBODY);
        as_user(NOBODY, work)
    } else {
        work()
    };
    assert_eq!(deleted, 2);
}

#[test]
fn a_directory_that_may_not_be_written_to_keeps_both_copies() {
    if !is_root() {
        skip!("only root can be somebody else");
    }
    let site = Site::new();
    site.put_ready(&id(1), 1);
    put(&site.legacy(), &id(1), ARRAY, 1);
    give_all(site.path("."), NOBODY);
    chmod(site.legacy(), 0o555);
    let cleared = as_user(NOBODY, || clear(&site.store(), &[1]));
    assert_eq!(skipped(&cleared), ["io"]);
    assert!(site.scope().join(format!("{}.json", id(1))).exists());
    assert_eq!(names(site.legacy()).len(), 1);
}
