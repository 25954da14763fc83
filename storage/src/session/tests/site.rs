//! A place with a store in it.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use cofferdam_protocol::session::{ListCursor, SessionId};
use cofferdam_tests::session::Place;
use cofferdam_tests::user;

use crate::clock::{RandomIds, SystemClock};
use crate::disk::Disk;
use crate::session::{Config, Error, SessionStore, StoreParts, config};

pub(super) use cofferdam_tests::session::{ARRAY, envelope, id, put};

/// A test's own place.
pub(super) struct Site {
    place: Place,
    /// What the store is told of the disk.
    pub(super) disk: Disk,
}

impl Site {
    pub(super) fn new() -> Self {
        Self { place: Place::new(), disk: Disk::default() }
    }

    pub(super) fn parts(&self) -> StoreParts {
        StoreParts {
            disk: self.disk.clone(),
            clock: Arc::new(SystemClock::new()),
            ids: Arc::new(RandomIds),
            home: Some(self.home()),
        }
    }

    /// The workspace's store with the default settings.
    pub(super) fn store(&self) -> SessionStore {
        self.open(&self.workspace(), Config::DEFAULT_DIR).unwrap()
    }

    /// The store of a workspace in a root.
    pub(super) fn open(&self, workspace: &Path, persist_dir: &str) -> Result<SessionStore, Error> {
        let (config, _) = Config::load(&config::Places::default(), None);
        let config = Config { persist_dir: persist_dir.to_owned(), ..config };
        SessionStore::open(self.parts(), &config, workspace)
    }

    /// Does something as an ordinary user, to whom everything here then belongs.
    pub(super) fn as_ordinary_user(&self, work: impl FnOnce() + Send) {
        if user::is_root() {
            user::give_all(self.path(""), user::NOBODY);
            user::as_user(user::NOBODY, work);
        } else {
            work();
        }
    }
}

impl Deref for Site {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.place
    }
}

/// The ids of a page, and where the next begins.
#[track_caller]
pub(super) fn page(
    store: &SessionStore,
    limit: usize,
    cursor: Option<&ListCursor>,
    all_workspaces: bool,
) -> (Vec<String>, Option<ListCursor>) {
    let page = store.list(limit, cursor, all_workspaces).unwrap();
    (page.sessions.into_iter().map(|row| row.session_id).collect(), page.next)
}

/// The ids that a plan for everything names.
#[track_caller]
pub(super) fn planned(store: &SessionStore) -> Vec<SessionId> {
    store.plan(&[], None, None).unwrap().clearable
}
