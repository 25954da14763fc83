//! What a user should know about something that succeeded. The wire has no room for it, so only the control API can
//! tell; where this user cannot reach it, nothing is said.

use std::time::Duration;

use cofferdam_web::ckpt::WarningReport;

use super::invocation::Invocation;
use super::shown::one_line;

/// What was asked for is done; asking what it was worth is not worth a longer wait.
pub(super) const BUDGET: Duration = Duration::from_secs(1);

/// How many warnings are shown one by one.
const SHOWN: usize = 10;

/// Shows the first few warnings and how many more there are; `omitted` of them did not come along.
pub(super) fn show(invocation: &mut Invocation, warnings: &[WarningReport], omitted: u64) {
    for warning in warnings.iter().take(SHOWN) {
        invocation.terminal.warn(format_args!("Warning: {}: {}", one_line(&warning.path), warning.text));
    }
    let more = warnings.len().saturating_sub(SHOWN) as u64 + omitted;
    if more > 0 {
        invocation.terminal.warn(format_args!("Warning: and {more} more"));
    }
}
