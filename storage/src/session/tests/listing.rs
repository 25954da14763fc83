//! Pages, plans, cursors, other workspaces.

use std::path::PathBuf;

use cofferdam_protocol::session::Health;
use cofferdam_tests::files::{chmod, mkdir, names, remove, symlink, write};

use super::site::{ARRAY, Site, envelope, id, page, planned, put};
use crate::session::{Config, Error};

/// The texts of ids, in order.
fn ids(numbers: impl IntoIterator<Item = u32>) -> Vec<String> {
    numbers.into_iter().map(|n| id(n).to_string()).collect()
}

#[test]
fn a_list_begins_with_the_newest_and_orders_equally_new_ones_by_id() {
    let site = Site::new();
    for (n, seconds) in [(5, 10), (3, 10), (4, 20), (1, 5), (2, 10)] {
        site.put_ready(&id(n), seconds);
    }
    let store = site.store();
    let mut cursor = None;
    let mut seen = Vec::new();
    for length in [2, 2, 1] {
        let (ids, next) = page(&store, 2, cursor.as_ref(), false);
        assert_eq!((ids.len(), next.is_some()), (length, length == 2));
        seen.extend(ids);
        cursor = next;
    }
    assert_eq!(seen, ids([4, 2, 3, 5, 1]));
    assert_eq!(page(&store, 5, None, false).1, None);
}

#[test]
fn a_page_goes_on_behind_an_entry_that_is_gone() {
    let site = Site::new();
    site.put_ready(&id(1), 20);
    site.put_ready(&id(2), 10);
    let store = site.store();
    let (_, cursor) = page(&store, 1, None, false);
    remove(site.scope().join(format!("{}.json", id(1))));
    assert_eq!(page(&store, 1, cursor.as_ref(), false), (ids([2]), None));
}

#[test]
fn a_page_has_at_least_one_row_and_at_most_a_hundred() {
    let site = Site::new();
    for n in 0..150 {
        site.put_ready(&id(n), 1000 - i64::from(n));
    }
    let store = site.store();
    assert_eq!(page(&store, 0, None, false).0, ids([0]));
    let (first, cursor) = page(&store, 1_000_000_000, None, false);
    assert_eq!(first, ids(0..100));
    assert_eq!(page(&store, 100, cursor.as_ref(), false), (ids(100..150), None));
}

#[test]
fn what_is_no_readable_file_takes_no_row_and_does_not_hide_the_rest() {
    let site = Site::new();
    for n in 1..=4 {
        site.put_ready(&id(n), 100 - i64::from(n));
    }
    chmod(site.scope().join(format!("{}.json", id(1))), 0);
    chmod(site.scope().join(format!("{}.json", id(4))), 0);
    site.as_ordinary_user(|| {
        let store = site.store();
        assert_eq!(page(&store, 2, None, false), (ids([2, 3]), None));
        assert_eq!(planned(&store), [id(2), id(3)]);
        assert!(matches!(store.inspect(&id(1)), Err(Error::Io { .. })));
    });
}

#[test]
fn a_plan_is_sorted_and_goes_on_behind_any_id() {
    let site = Site::new();
    for n in [4, 2, 1, 3] {
        site.put(&id(n), "{broken", i64::from(n));
    }
    put(&site.legacy(), &id(5), ARRAY, 1);
    put(&site.legacy(), &id(4), ARRAY, 1);
    let store = site.store();
    let plan = store.plan(&[id(2), id(9)], Some(3), None).unwrap();
    assert_eq!((plan.clearable, plan.protected, plan.next), (vec![id(1), id(3)], vec![id(2)], Some(id(3))));
    let plan = store.plan(&[], Some(3), Some(&id(3))).unwrap();
    assert_eq!((plan.clearable, plan.next), (vec![id(4), id(5)], None));
    assert_eq!(store.plan(&[], Some(0), Some(&id(0))).unwrap().clearable, [id(1)]);
}

#[test]
fn a_plan_without_a_limit_is_the_whole_one_or_none() {
    let site = Site::new();
    for n in 0..4096 {
        write(site.scope().join(format!("{}.json", id(n))), "");
    }
    let store = site.store();
    assert_eq!(planned(&store).len(), 4096);
    write(site.scope().join(format!("{}.json", id(4096))), "");
    assert!(matches!(store.plan(&[], None, None), Err(Error::InvalidRequest(_))));
    assert!(matches!(store.plan(&[], None, Some(&id(4000))), Err(Error::InvalidRequest(_))));
    let plan = store.plan(&[], Some(1_000_000), None).unwrap();
    assert_eq!((plan.clearable.len(), plan.next), (4096, Some(id(4095))));
}

#[test]
fn what_is_in_the_flat_directory_is_listed_unless_it_has_a_namesake() {
    let site = Site::new();
    put(&site.legacy(), &id(1), ARRAY, 30);
    put(&site.legacy(), &id(2), ARRAY, 20);
    put(&site.legacy(), &id(3), ARRAY, 10);
    site.put_ready(&id(2), 40);
    // A damaged namesake, of whatever kind, hides it as well: the session under that id is the damaged one.
    symlink("/nowhere", site.scope().join(format!("{}.json", id(3))));
    let store = site.store();
    let rows = store.list(20, None, false).unwrap().sessions;
    let rows: Vec<_> =
        rows.iter().map(|row| (row.session_id.as_str(), row.first_prompt.as_deref())).collect();
    assert_eq!(rows, [(id(2).as_str(), Some("hello")), (id(1).as_str(), Some("long ago"))]);
    assert!(matches!(store.load(&id(3)), Err(Error::Corrupt { .. })));
}

#[test]
fn reading_makes_nothing() {
    let site = Site::new();
    let store = site.store();
    assert_eq!(page(&store, 20, None, false), (vec![], None));
    assert_eq!(page(&store, 20, None, true), (vec![], None));
    assert_eq!(planned(&store), []);
    for outcome in [store.inspect(&id(1)), store.validate(&id(1))] {
        assert!(matches!(outcome, Err(Error::NotFound(_))));
    }
    assert!(names(site.path("home")).is_empty());
}

#[test]
fn sessions_of_other_workspaces_are_listed_as_what_they_are() {
    let site = Site::new();
    let other = site.other("other");
    site.put_ready(&id(1), 60);
    put(&site.legacy(), &id(2), ARRAY, 50);
    let foreign = site.scope_of(&other);
    put(&foreign, &id(3), envelope(&id(3), &other), 40);
    put(&foreign, &id(4), ARRAY, 30);
    put(&foreign, &id(5), "{broken", 20);
    put(&foreign, &id(6), r#"{"schema_version": 9}"#, 10);
    // One that says it is this workspace's, but lies where this workspace has no access to it.
    put(&foreign, &id(7), envelope(&id(7), &site.workspace()), 5);
    let store = site.store();
    assert_eq!(page(&store, 20, None, false).0, ids([1, 2]));
    let rows = store.list(20, None, true).unwrap().sessions;
    let (here, there) = (site.workspace(), other);
    let (here, there) = (here.to_str().unwrap(), there.to_str().unwrap());
    let table = [
        (1, here, Health::Ready, Some("hello"), 2000),
        (2, here, Health::Ready, Some("long ago"), 50_000),
        (3, there, Health::ScopeMismatch, Some("hello"), 2000),
        (4, "", Health::ScopeMismatch, Some("long ago"), 30_000),
        (5, "", Health::Corrupt, None, 20_000),
        (6, "", Health::Incompatible, None, 10_000),
        (7, here, Health::ScopeMismatch, Some("hello"), 2000),
    ];
    assert_eq!(rows.len(), table.len());
    for (row, (n, workspace, health, prompt, updated)) in rows.iter().zip(table) {
        assert_eq!(row.session_id, id(n).as_str());
        assert_eq!((row.workspace_scope.as_str(), row.health), (workspace, health), "{n}");
        assert_eq!((row.first_prompt.as_deref(), row.updated_at_ms), (prompt, updated), "{n}");
    }
}

#[test]
fn namesakes_of_one_time_in_several_workspaces_each_come_once() {
    let site = Site::new();
    let workspaces: Vec<_> = ["a", "b", "c"].map(|name| site.other(name)).into();
    for workspace in workspaces.iter().chain([&site.workspace()]) {
        for n in 1..=2 {
            put(&site.scope_of(workspace), &id(n), envelope(&id(n), workspace), 10);
        }
    }
    let store = site.store();
    let mut cursor = None;
    let mut seen = Vec::new();
    loop {
        let page = store.list(1, cursor.as_ref(), true).unwrap();
        seen.extend(page.sessions.into_iter().map(|row| (row.session_id, row.workspace_scope)));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen.len(), 8);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 8);
}

#[test]
fn only_directories_named_as_workspaces_are_looked_into() {
    let site = Site::new();
    let root = site.root();
    let outside = site.path("outside");
    put(&outside, &id(1), ARRAY, 1);
    symlink(&outside, root_with(&root, "0123456789abcdef01234567"));
    put(&root.join("0123456789ABCDEF01234567"), &id(2), ARRAY, 1);
    put(&root.join("0123456789abcdef0123456"), &id(3), ARRAY, 1);
    put(&root, &id(4), ARRAY, 1);
    write(root.join("0123456789abcdef01234568"), "");
    put(&root.join("0123456789abcdef01234569"), &id(5), ARRAY, 1);
    assert_eq!(page(&site.store(), 20, None, true).0, ids([5]));
}

fn root_with(root: &std::path::Path, name: &str) -> PathBuf {
    mkdir(root);
    root.join(name)
}

#[test]
fn a_directory_that_cannot_be_read_does_not_hide_the_others() {
    let site = Site::new();
    let other = site.other("other");
    put(&site.scope_of(&other), &id(1), envelope(&id(1), &other), 1);
    site.put_ready(&id(2), 2);
    site.as_ordinary_user(|| {
        chmod(site.scope_of(&other), 0);
        assert_eq!(page(&site.store(), 20, None, true).0, ids([2]));
        chmod(site.scope_of(&other), 0o700);
        assert_eq!(page(&site.store(), 20, None, true).0, ids([2, 1]));
    });
}

#[test]
fn a_root_of_the_workspace_is_both_a_root_and_a_flat_directory() {
    let site = Site::new();
    put(&site.workspace().join("p"), &id(1), ARRAY, 1);
    let scope = site.scope();
    let own = site.workspace().join("p").join(scope.file_name().unwrap());
    put(&own, &id(2), envelope(&id(2), &site.workspace()), 2);
    let store = site.open(&site.workspace(), "p").unwrap();
    assert_eq!(page(&store, 20, None, false).0, ids([2, 1]));
    assert_eq!(page(&store, 20, None, true).0, ids([2, 1]));
    let absolute = site.workspace().join("p");
    let store = site.open(&site.workspace(), absolute.to_str().unwrap()).unwrap();
    assert_eq!(page(&store, 20, None, false).0, ids([2]));
    assert!(matches!(store.inspect(&id(1)), Err(Error::NotFound(_))));
    assert_eq!(page(&site.open(&site.workspace(), Config::DEFAULT_DIR).unwrap(), 20, None, false).0, ids([]));
}
