//! The host's surface (spec §9): the methods of `POST /isolation-pod/api`, their envelope, and what the host shows of itself.
//!
//! Every method is a type that implements [`HostMethod`]: its fields are the args, and it names its answer. Methods of ours
//! beyond the contract's eighteen are of the same kind and are served by the control API alone ([`OWN_METHODS`]).

mod code;
mod envelope;
mod event;
mod methods;
mod shown;

pub use code::{HostCode, HostErrorCode};
pub use envelope::{ApiRequest, BadBody, failure_body, success_body};
pub use event::{HostEvent, MainMessage};
pub use methods::*;
pub use shown::*;

/// The version of the host's documents, as they say it.
pub const HOST_BUILD: u32 = 2;
/// The version of these lines, additions included. It changes when, and only when, a golden line does; clients do not see it.
pub const WIRE_VERSION: u32 = 3;
/// The most bytes of a request's body.
pub const MAX_BODY: usize = 256 << 10;
/// The most characters of a return preview.
pub const MAX_PREVIEW: usize = 4000;
/// The most characters of a message to a main session.
pub const MAX_RETURN: usize = 8000;
