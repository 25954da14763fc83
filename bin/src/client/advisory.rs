//! What a user should know whatever was asked: too many snapshots, a filling disk.

use std::time::Duration;

use super::invocation::Invocation;
use crate::checkpoint::Health;

/// A command is not held up for this.
const BUDGET: Duration = Duration::from_millis(30);

/// Asks and warns, after a command that succeeded. That nobody answers in time is nothing to report.
pub(super) fn show(invocation: &mut Invocation) {
    if let Ok(health) = invocation.client.clone().deadline(Some(BUDGET)).health() {
        for warning in warnings(health, invocation.program) {
            invocation.terminal.warn(warning);
        }
    }
}

fn warnings(health: Health, program: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    if health.over_limit_workspace_count > 0 {
        warnings.push(format!(
            "Warning: {} workspace(s) have more than 1000 snapshots; remove old ones: {program} cleanup -w <workspace>",
            health.over_limit_workspace_count
        ));
    }
    let percent = u128::from(health.fs_used_bytes) * 100 / u128::from(health.fs_total_bytes).max(1);
    if u128::from(health.fs_used_bytes) * 10 > u128::from(health.fs_total_bytes) * 9 {
        warnings.push(format!("Warning: the filesystem that holds the snapshots is {percent}% full"));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_ninety_percent_and_any_crowded_workspace_are_worth_a_warning() {
        let warned = |over_limit_workspace_count, fs_used_bytes| {
            warnings(Health { over_limit_workspace_count, fs_total_bytes: 1000, fs_used_bytes }, "ws-ckpt")
                .len()
        };
        assert_eq!(warned(0, 900), 0);
        assert_eq!(warned(0, 901), 1);
        assert_eq!(warned(2, 1000), 2);
        let unknown = Health { over_limit_workspace_count: 0, fs_total_bytes: 0, fs_used_bytes: 0 };
        assert!(warnings(unknown, "ws-ckpt").is_empty());
    }
}
