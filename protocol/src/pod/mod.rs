//! The isolation pod protocol: newline-delimited JSON between a host and its sidecar.
//!
//! One JSON value a line: requests with an id, answers with that id, events without one. Every method is a type that
//! implements [`Method`]: its fields are the params, and it names its result.

mod code;
mod config;
mod event;
mod export;
mod frame;
mod ids;
mod lenient_json;
mod line;
mod methods;
mod sandbox;
mod task;
mod text;

pub use code::PodErrorCode;
pub use config::{Config, LogLevel, RootRefusal, SandboxProbeMode};
pub use event::PodEvent;
pub use export::{ConflictMode, ExportItem, ExportItemStatus, ExportMode, ExportRecord, ExportStatus};
pub(crate) use frame::object;
pub use frame::{BadRequest, Request, WireError, answer_line, error_line, event_line};
pub use ids::{InvalidTaskId, LeaseId, Subdir, TaskId, pod_session_id, session_uuid};
pub use lenient_json::{repair_numbers, repair_surrogates};
pub use line::{Line, LineReader};
pub(crate) use methods::lenient;
pub use methods::*;
pub use sandbox::{Probe, SandboxCheck, SandboxMode, SandboxPolicy};
pub use task::{ModelChoice, TaskStatus, TaskSummary};
pub use text::{cut, label};

/// The version that `initialize` compares.
pub const PROTOCOL_VERSION: i64 = 1;
/// The version of these lines, additions included. It changes when, and only when, a golden line does; hosts do not see it.
pub const WIRE_VERSION: u32 = 1;
/// The version of plugin and core that this contract belongs to.
pub const CORE_VERSION: &str = "0.2.0";
/// The most bytes of a request line, without its newline.
pub const MAX_REQUEST_LINE: usize = 1 << 20;
/// The most bytes of a line the sidecar prints, without its newline.
pub const MAX_RESPONSE_LINE: usize = 4 << 20;
/// What the error of a task says that a restart interrupted. Part of the contract, word for word.
pub const INTERRUPTED: &str = "宿主重启，任务已中断";
