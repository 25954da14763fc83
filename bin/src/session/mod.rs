//! Sessions, for programs: their messages, the client of the management protocol, and the programs' side of that and of
//! the lines of a conversation.

pub(crate) mod control;
mod control_client;
mod core_program;
pub(crate) mod headless;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

pub use cofferdam_actors::session::recovery::{
    ClearInterruption, ClearPlan, ClearReport, ClientError, ListPage, SessionCore,
};
pub use cofferdam_actors::session::{
    ClearSessions, InspectSession, ListSessions, LoadSession, OpenStore, Opened, Parts, PersistSession,
    Persisted, PrepareClearAll, Sessions, ValidateSession, recovery,
};
pub use cofferdam_protocol::session::{
    ClearRequest, Envelope, Health, InspectRequest, ListRequest, PrepareClearAllRequest, SessionData,
    SessionError, SessionErrorCode, Skipped, Summary, ValidateRequest,
};
use cofferdam_storage::clock::RandomIds;
pub use cofferdam_storage::session::config::Places;
use cofferdam_storage::{clock, fault};
pub use control_client::SessionControlClient;
pub(crate) use core_program::core_program;

/// The system's settings.
const SYSTEM_CONFIG: &str = "/etc/copilot-shell/config.toml";

/// What the session actors of a process work with, as its surroundings say.
pub(crate) fn parts() -> Parts {
    Parts {
        disk: fault::disk_from_env(),
        clock: clock::from_env().0,
        ids: Arc::new(RandomIds),
        places: Places {
            system: Some(PathBuf::from(SYSTEM_CONFIG)),
            home: std::env::home_dir(),
            provider: variable("COSH_AI_PROVIDER"),
        },
    }
}

/// A variable of the environment that says something.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(OsString::into_string)?.ok().filter(|value| !value.is_empty())
}
