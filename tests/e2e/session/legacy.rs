//! Conversations in the flat directory, from the time before directories for each workspace.

use std::path::Path;

use cofferdam_protocol::session::Health;
use cofferdam_tests::files::{chmod, mkdir, names, read, symlink, write};
use cofferdam_tests::session::{ARRAY, SessionSite, envelope, id, put};
use serde_json::json;

use super::{each_fault, site, site_of_ordinary_user, texts, under};

fn old_file(dir: &Path) -> std::path::PathBuf {
    dir.join(format!("{}.json", id(1)))
}

/// What the mock says after `prompts`.
fn echo(prompts: &[&str]) -> String {
    format!("mock history: {}", prompts.join(" | "))
}

#[test]
fn it_is_listed_beside_the_others_and_reading_leaves_it_where_it_is() {
    let site = site();
    put(&site.legacy(), &id(1), ARRAY, 7);
    let row = site.inspect(1);
    assert_eq!((row.health, row.message_count, row.updated_at_ms), (Health::Ready, 1, 7000));
    assert_eq!((row.first_prompt.as_deref(), row.model), (Some("long ago"), None));
    assert_eq!(site.list(json!({})).0, [site.inspect(1)]);
    assert_eq!((site.validate(1), site.planned()), ("ok".to_owned(), vec![id(1).to_string()]));
    assert_eq!(read(old_file(&site.legacy())), ARRAY.as_bytes());
    assert!(!site.home().join(".copilot-shell").exists());
}

#[test]
fn the_first_turn_moves_it() {
    let site = site();
    site.use_mock();
    put(&site.legacy(), &id(1), ARRAY, 7);
    assert_eq!(site.turn(1, "again").outcome(), "ok");
    assert_eq!(texts(&site, 1), ["long ago", "again", &echo(&["long ago", "again"])]);
    let stored = site.envelope(1);
    assert_eq!((stored.generation, stored.created_at_ms, stored.model.as_str()), (1, 7000, "mock-history"));
    assert_eq!(names(site.legacy()), [""; 0]);
}

#[test]
fn only_arrays_of_messages_were_kept_there() {
    let site = site();
    site.use_mock();
    for text in [envelope(&id(1), &site.workspace()), "{}".to_owned(), "[{}]".to_owned(), String::new()] {
        put(&site.legacy(), &id(1), &text, 7);
        assert_eq!((site.inspect(1).health, site.validate(1)), (Health::Corrupt, "corrupt".to_owned()));
        assert_eq!(site.turn(1, "again").outcome(), "corrupt/load");
        assert_eq!(read(old_file(&site.legacy())), text.as_bytes());
    }
}

#[test]
fn of_two_copies_the_newer_kind_counts_and_both_are_removed() {
    let site = site();
    site.put_ready(&id(1), 5);
    put(&site.legacy(), &id(1), ARRAY, 9);
    assert_eq!(site.listed(), [id(1).to_string()]);
    assert_eq!((site.inspect(1).first_prompt.as_deref(), site.planned().len()), (Some("hello"), 1));
    assert_eq!(site.clear(1), "ok");
    assert_eq!((names(site.scope()).len(), names(site.legacy()).len()), (0, 0));
}

#[test]
fn a_copy_that_cannot_be_removed_is_an_error_until_it_can_and_costs_no_message() {
    let site = site_of_ordinary_user();
    site.use_mock();
    put(&site.legacy(), &id(1), ARRAY, 7);
    site.hand_over();
    chmod(site.legacy(), 0o555);
    assert_eq!(site.turn(1, "one").outcome(), "io/persist");
    assert_eq!(site.envelope(1).generation, 1);
    // The newer one is not removed before the older one.
    assert_eq!(site.clear(1), "io");
    assert!(site.file(1).exists());
    chmod(site.legacy(), 0o755);
    assert_eq!(site.turn(1, "two").outcome(), "ok");
    assert_eq!((site.envelope(1).generation, names(site.legacy()).len()), (2, 0));
    assert_eq!(texts(&site, 1)[..2], ["long ago", "one"]);
    assert_eq!(texts(&site, 1)[3], "two");
}

/// Nothing of what lies in `dir` is this workspace's.
#[track_caller]
fn is_nobodys(site: &SessionSite, persist_dir: &str, dir: &Path) {
    put(dir, &id(1), ARRAY, 7);
    let project = site.workspace().join(".copilot-shell/config.toml");
    write(project, format!("[session]\npersist_dir = {}\n", json!(persist_dir)));
    assert_eq!((site.listed(), site.planned()), (vec![], vec![]), "{persist_dir}");
    assert_eq!((site.validate(1), site.clear(1)), ("not_found".to_owned(), "not_found".to_owned()));
    assert_eq!(site.turn(1, "x").outcome(), "not_found/load");
    assert_eq!(read(old_file(dir)), ARRAY.as_bytes());
}

#[test]
fn a_directory_that_may_be_shared_is_not_looked_into() {
    let site = site();
    site.use_mock();
    let shared = site.path("shared");
    mkdir(&shared);
    symlink(&shared, site.workspace().join("link"));
    is_nobodys(&site, shared.to_str().unwrap(), &shared);
    is_nobodys(&site, "../shared", &shared);
    is_nobodys(&site, "link", &shared);
    is_nobodys(&site, "~/flat", &site.home().join("flat"));
    is_nobodys(&site, "x/../flat", &site.workspace().join("flat"));
}

#[test]
fn a_directory_of_the_workspace_that_the_settings_name_is() {
    let site = site();
    site.use_mock();
    put(&site.workspace().join("flat"), &id(1), ARRAY, 7);
    symlink("flat", site.workspace().join("link"));
    let project = site.workspace().join(".copilot-shell/config.toml");
    for name in ["flat", "link"] {
        write(&project, format!("[session]\npersist_dir = \"{name}\"\n"));
        assert_eq!((site.listed(), site.validate(1)), (vec![id(1).to_string()], "ok".to_owned()));
    }
    assert_eq!(site.clear(1), "ok");
    assert_eq!(names(site.workspace().join("flat")), [""; 0]);
}

#[test]
fn the_directory_in_which_the_program_was_started_does_not_matter() {
    let site = site();
    site.use_mock();
    let elsewhere = site.path("elsewhere/sessions");
    put(&elsewhere, &id(1), ARRAY, 7);
    assert_eq!(site.turn(1, "x").outcome(), "not_found/load");
    assert_eq!(site.validate(1), "not_found");
    assert_eq!(read(old_file(&elsewhere)), ARRAY.as_bytes());
}

#[test]
fn whichever_operation_of_a_move_fails_or_is_the_last_no_message_is_lost() {
    each_fault(|fault| {
        let site = site();
        site.use_mock();
        put(&site.legacy(), &id(1), ARRAY, 7);
        let (killed, turn) = under(fault, site.turn_command(Some(1), "one"));
        let failed = killed || turn.outcome() != "ok";
        assert!(killed || ["ok", "io/persist"].contains(&turn.outcome().as_str()), "{fault}: {turn:?}");
        let moved = site.file(1).exists();
        match moved {
            true => assert_eq!(texts(&site, 1), ["long ago", "one", &echo(&["long ago", "one"])], "{fault}"),
            false => assert_eq!(site.inspect(1).first_prompt.as_deref(), Some("long ago"), "{fault}"),
        }
        assert!(moved || failed, "{fault}");
        assert_eq!(site.turn(1, "two").outcome(), "ok", "{fault}");
        assert_eq!(site.envelope(1).messages.len(), if moved { 5 } else { 3 }, "{fault}");
        assert_eq!(names(site.legacy()), [""; 0], "{fault}");
        failed
    });
}
