//! Sessions: the client of the management protocol, and the program's side of it and of the lines of a conversation.

pub(crate) mod control;
mod control_client;
pub(crate) mod headless;

pub use cofferdam_actors::session::recovery::{
    ClearInterruption, ClearPlan, ClearReport, ClientError, ListPage, SessionCore,
};
pub use cofferdam_protocol::session::{Health, SessionError, SessionErrorCode, Skipped, Summary};
pub use control_client::SessionControlClient;
