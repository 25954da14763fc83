//! Files that other programs wrote: what is said of each is what was recorded.

use std::path::Path;

use cofferdam_protocol::session::{Health, SessionId, Summary};
use cofferdam_tests::files::{read, set_mtime, write};
use cofferdam_tests::session;
use serde::Deserialize;

use super::site::{Site, page, planned};
use crate::session::Error;

#[derive(Deserialize)]
struct Expected {
    workspace: String,
    scope_directory: String,
    entries: Vec<Entry>,
    all_installed_together: Together,
}

#[derive(Deserialize)]
struct Entry {
    file: String,
    install: String,
    session_id: String,
    mtime_ms: i64,
    summary: Summary,
    validate: String,
}

#[derive(Deserialize)]
struct Together {
    list_order: Vec<String>,
    plan_ids: Vec<String>,
}

impl Entry {
    fn id(&self) -> SessionId {
        SessionId::new(self.session_id.as_str()).unwrap()
    }
}

/// A recorded file, as if it had been written for the site's workspace.
fn recorded(name: &str, site: &Site) -> Vec<u8> {
    session::recorded(name, &site.workspace())
}

fn expected(site: &Site) -> Expected {
    serde_json::from_slice(&recorded("expected.json", site)).unwrap()
}

fn install(site: &Site, entry: &Entry) -> std::path::PathBuf {
    let place = entry.install.replace("<scope>", site.scope().to_str().unwrap());
    let place = Path::new(&place.replace("<workspace>", site.workspace().to_str().unwrap())).to_owned();
    write(&place, recorded(&entry.file, site));
    set_mtime(&place, entry.mtime_ms / 1000, entry.mtime_ms % 1000 * 1_000_000);
    place
}

/// The code that the wire has for what validation says.
fn code(outcome: Result<Summary, Error>) -> &'static str {
    match outcome {
        Ok(_) => "ok",
        Err(Error::Corrupt { .. }) => "corrupt",
        Err(Error::IncompatibleVersion { .. }) => "incompatible_version",
        Err(Error::ScopeMismatch { .. }) => "scope_mismatch",
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn the_recorded_scope_is_the_one_of_the_recorded_workspace() {
    let json = session::recorded("expected.json", Path::new("/w/demo"));
    let expected: Expected = serde_json::from_slice(&json).unwrap();
    assert_eq!(crate::session::scope::directory_name(&expected.workspace), expected.scope_directory);
}

#[test]
fn each_recorded_file_has_its_recorded_summary_and_is_not_touched() {
    let count = expected(&Site::new()).entries.len();
    assert!(count > 20);
    for at in 0..count {
        let site = Site::new();
        let entry = &expected(&site).entries[at];
        let place = install(&site, entry);
        let store = site.store();
        assert_eq!(store.inspect(&entry.id()).unwrap(), entry.summary, "{}", entry.file);
        assert_eq!(
            store.list(20, None, false).unwrap().sessions,
            std::slice::from_ref(&entry.summary),
            "{}",
            entry.file
        );
        assert_eq!(code(store.validate(&entry.id())), entry.validate, "{}", entry.file);
        let is_ready = entry.summary.health == Health::Ready;
        assert_eq!(store.load(&entry.id()).is_ok(), is_ready, "{}", entry.file);
        assert_eq!(read(&place), recorded(&entry.file, &site), "{}", entry.file);
    }
}

#[test]
fn together_the_recorded_files_are_listed_and_planned_in_the_recorded_order() {
    let site = Site::new();
    let expected = expected(&site);
    for entry in &expected.entries {
        install(&site, entry);
    }
    let store = site.store();
    assert_eq!(page(&store, 100, None, false), (expected.all_installed_together.list_order, None));
    let planned: Vec<_> = planned(&store).iter().map(ToString::to_string).collect();
    assert_eq!(planned, expected.all_installed_together.plan_ids);
}

#[test]
fn every_shorter_part_of_a_file_is_corrupt_and_so_is_one_with_a_tail() {
    let site = Site::new();
    let expected = expected(&site);
    let entry = &expected.entries[0];
    let whole = recorded(&entry.file, &site);
    let store = site.store();
    for length in 0..whole.len() {
        site.put(&entry.id(), &whole[..length], 1);
        assert_eq!(code(store.validate(&entry.id())), "corrupt", "{length}");
    }
    for tail in [&b"\0"[..], b"{}", b"\xff"] {
        site.put(&entry.id(), [&whole, tail].concat(), 1);
        assert_eq!(code(store.validate(&entry.id())), "corrupt", "{tail:?}");
    }
    site.put(&entry.id(), [&whole, &b" \n\t"[..]].concat(), 1);
    assert_eq!(code(store.validate(&entry.id())), "ok");
}
