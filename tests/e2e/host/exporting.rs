//! Files that leave a task's directory, and come back out of where they went.

use std::fs;

use cofferdam_tests::host::{Core, HostSite};
use cofferdam_tests::site::Daemon;

use super::{site, with_either_core};

with_either_core! {
    files_are_exported_and_the_export_is_undone
    an_undo_keeps_what_was_changed_since_and_is_no_success
    files_are_moved_skipped_or_renamed_as_it_was_asked_for
    what_cannot_be_exported_is_refused_and_nothing_is_written
}

/// A task that has written two files, and a directory outside.
fn with_files(site: &HostSite) -> (Daemon, String, String) {
    let daemon = site.start_with(&[]);
    site.ok(&["task", "run", "write a first\nwrite d/b second", "--wait"]);
    let id = site.json(&["task", "list"])[0]["id"].as_str().unwrap().to_owned();
    (daemon, id, site.outside())
}

fn files_are_exported_and_the_export_is_undone(core: Core) {
    let site = site(core);
    let (_daemon, id, out) = with_files(&site);
    fs::write(site.path("outside/a"), "was there").unwrap();
    let told = site.ok(&["export", "create", &id, "--to", "outside", "--yes"]);
    assert!(told.contains(&format!("written  {out}/a")) && told.contains("2 written, "), "{told}");
    assert_eq!(fs::read_to_string(site.path("outside/a")).unwrap().trim_end(), "first");
    assert_eq!(fs::read_to_string(site.path("outside/d/b")).unwrap().trim_end(), "second");
    let exports = site.json(&["export", "list"]);
    let export = exports["exports"][0]["id"].as_str().unwrap();
    let told = site.ok(&["export", "undo", export, "--yes"]);
    assert!(
        told.contains(&format!("removed   {out}/d/b")) && told.contains(&format!("restored  {out}/a")),
        "{told}"
    );
    assert_eq!(fs::read_to_string(site.path("outside/a")).unwrap(), "was there");
    assert!(!site.path("outside/d/b").exists());
}

fn an_undo_keeps_what_was_changed_since_and_is_no_success(core: Core) {
    let site = site(core);
    let (_daemon, id, out) = with_files(&site);
    site.ok(&["export", "create", &id, "a", "--to", &out, "--yes"]);
    fs::write(site.path("outside/a"), "changed").unwrap();
    let undone = site.run(&["export", "undo", "exp-", "--yes"]);
    assert_eq!(undone.code, 1, "{undone:?}");
    assert!(undone.stdout.contains(&format!("kept      {out}/a: ")), "{undone:?}");
    assert_eq!(fs::read_to_string(site.path("outside/a")).unwrap(), "changed");
}

fn files_are_moved_skipped_or_renamed_as_it_was_asked_for(core: Core) {
    let site = site(core);
    let (_daemon, id, out) = with_files(&site);
    fs::write(site.path("outside/a"), "was there").unwrap();
    let export =
        |line: &[&str]| site.ok(&[&["export", "create", &id, "a", "--to", &out, "--yes"], line].concat());
    assert!(export(&["--conflict", "skip"]).contains(&format!("skipped  {out}/a")));
    assert!(export(&["--conflict", "rename"]).contains(&format!("written  {out}/a-1")));
    assert_eq!(fs::read_to_string(site.path("outside/a")).unwrap(), "was there");
    export(&["--move"]);
    assert_eq!(fs::read_to_string(site.path("outside/a")).unwrap().trim_end(), "first");
    let files = site.json(&["task", "files", &id]);
    let paths: Vec<_> =
        files["entries"].as_array().unwrap().iter().map(|row| row["relPath"].clone()).collect();
    assert_eq!(paths, ["d", "d/b"]);
}

fn what_cannot_be_exported_is_refused_and_nothing_is_written(core: Core) {
    let site = site(core);
    let (_daemon, id, out) = with_files(&site);
    let root = site.root();
    for (line, why) in [
        (&["nothing", "--to", &out, "--yes"][..], "no file nothing"),
        (&["--to", root.to_str().unwrap(), "--yes"], "TARGET_INSIDE_SANDBOX"),
        // Nobody is here to ask.
        (&["--to", &out], "--yes"),
    ] {
        let refused = site.run(&[&["export", "create", &id], line].concat());
        assert!(refused.code == 1 && refused.stderr.contains(why), "{line:?}: {refused:?}");
    }
    site.ok(&["config", "set", "enableExport=false"]);
    let refused = site.run(&["export", "create", &id, "--to", &out, "--yes"]);
    assert!(refused.code == 1 && refused.stderr.contains("EXPORT_DISABLED"), "{refused:?}");
    assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
}
