//! A home of a program's own, in which there is nothing but what is put there: the settings that its sessions need, and where
//! their files are.

use std::path::{Path, PathBuf};

use cofferdam_protocol::session::SessionId;
use toml_edit::{DocumentMut, Item, Table, value};

use super::Config;
use super::config::{FILE, text};
use super::dir::file_name;
use super::scope::directory_name;

/// Where the settings are, relative to the home.
pub fn settings_path() -> &'static Path {
    Path::new(FILE)
}

/// Where a session's file is, relative to the home. `workspace` is a canonical path.
pub fn session_path(workspace: &str, id: &SessionId) -> PathBuf {
    let root = Config::DEFAULT_DIR.trim_start_matches("~/");
    [root, &directory_name(workspace), &file_name(id)].iter().collect()
}

/// The settings: those of the user's own home, but with a store that is kept, and where [`session_path`] says. And why the
/// user's own cannot be used, if they are there and cannot.
pub fn settings(home: Option<&Path>) -> (String, Option<String>) {
    let path = home.map(|home| home.join(FILE)).filter(|path| path.exists());
    let read = path.map(|path| {
        let parsed = text(&path).map_err(|error| error.to_string());
        let parsed = parsed.and_then(|text| text.parse::<DocumentMut>().map_err(|error| error.to_string()));
        parsed.map_err(|error| format!("{} is ignored: {error}", path.display()))
    });
    let (mut document, warning) = match read {
        Some(Ok(document)) => (document, None),
        Some(Err(warning)) => (DocumentMut::new(), Some(warning)),
        None => (DocumentMut::new(), None),
    };
    let session = document.entry("session").or_insert(Item::Table(Table::new()));
    if !session.is_table_like() {
        *session = Item::Table(Table::new());
    }
    session["auto_persist"] = value(true);
    session["persist_dir"] = value(Config::DEFAULT_DIR);
    (document.to_string(), warning)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cofferdam_protocol::session::{Content, Envelope, Message, SCHEMA_VERSION};
    use cofferdam_tests::files;

    use super::*;
    use crate::clock::{RandomIds, SystemClock};
    use crate::disk::Disk;
    use crate::session::config::Places;
    use crate::session::{SessionStore, StoreParts};

    #[test]
    fn whatever_the_user_has_set_the_store_is_kept_and_in_its_place() {
        for own in [
            None,
            Some(
                "[session]\nauto_persist = false\npersist_dir = \"/elsewhere\"\n[ai]\nactive_model = \"m\"\n",
            ),
            Some("session = 1\n[ai]\nactive_model = \"m\"\n"),
            Some("session.auto_persist = false\nai.active_model = \"m\"\n"),
            Some("[session\n"),
        ] {
            let (user, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            if let Some(own) = own {
                files::write(user.path().join(FILE), own);
            }
            let (text, warning) = settings(Some(user.path()));
            files::write(home.path().join(settings_path()), &text);
            let places = Places { home: Some(home.path().to_owned()), ..Places::default() };
            let (config, warnings) = Config::load(&places, None);
            assert_eq!((config.auto_persist, config.persist_dir.as_str()), (true, Config::DEFAULT_DIR));
            assert!(warnings.is_empty(), "{warnings:?}: {text}");
            let damaged = own == Some("[session\n");
            assert_eq!(warning.is_some(), damaged, "{warning:?}");
            assert_eq!(config.ai.active_model.is_some(), own.is_some() && !damaged, "{text}");
        }
    }

    #[test]
    fn a_store_finds_a_session_where_it_is_said_to_be() {
        let (home, workspace) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let id = SessionId::new("2d711642-b726-4b04-8d2a-8a0470f4ed24").unwrap();
        let parts = StoreParts {
            disk: Disk::default(),
            clock: Arc::new(SystemClock::new()),
            ids: Arc::new(RandomIds),
            home: Some(home.path().to_owned()),
        };
        let (config, _) = Config::load(&Places::default(), None);
        let store = SessionStore::open(parts, &config, workspace.path()).unwrap();
        let mut envelope = Envelope {
            schema_version: SCHEMA_VERSION,
            session_id: id.to_string(),
            workspace_scope: store.workspace().to_owned(),
            created_at_ms: 1,
            updated_at_ms: 0,
            model: String::new(),
            generation: 0,
            messages: vec![Message {
                role: "user".to_owned(),
                content: Content::Text("hi".to_owned()),
                tool_call_id: None,
                name: None,
                tool_calls: None,
            }],
            compaction: None,
            compaction_revision: 0,
        };
        store.persist(&mut envelope).unwrap();
        assert!(home.path().join(session_path(store.workspace(), &id)).is_file());
    }
}
