//! The JSON lines of a running conversation: what a client sends, and what is answered.
//!
//! - [`Input`]: one object a line, read strictly, since a message that was half understood is worse than one refused;
//! - [`Output`]: one compact object a line; keys in a fixed order, absent values left out;
//! - [`StreamEvent`]: an answer as it comes, on this wire and from a provider.

mod input;
mod object;
mod output;
mod stream;

pub use input::{ApprovalAnswer, HostExecuted, Input, MalformedLine, ShellContext, UserLine, Verdict};
pub use output::{
    CAPABILITIES, Capabilities, ErrorLine, Output, Phase, System, TextBlock, ToolPermission, ToolResult,
};
pub use stream::{BlockStart, Delta, StreamEvent};
