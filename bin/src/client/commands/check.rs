//! Verify the store, through the running daemon or without one.

use clap::Args;
use cofferdam_web::ckpt::CheckSummary;

use crate::client::arguments::Shown;
use crate::client::failure::Failure;
use crate::client::invocation::Invocation;
use crate::client::shown::{one_line, size};
use crate::control::ControlError;

#[derive(Args, Debug)]
pub(crate) struct Check {
    /// Read every byte, not only the indexes
    #[arg(long)]
    read_data: bool,
    #[command(flatten)]
    shown: Shown,
}

impl Check {
    pub(crate) fn run(&self, invocation: &mut Invocation) -> Result<(), Failure> {
        let summary = match invocation.control()?.check(self.read_data) {
            Err(ControlError::Unreachable { .. }) => {
                let state_dir = invocation.state_dir()?;
                cofferdam_storage::ckpt::check_state_dir(&state_dir, self.read_data)?.into()
            }
            checked => checked?,
        };
        if self.shown.as_json(&mut invocation.terminal) {
            invocation.terminal.print_json(&summary)?;
        } else {
            invocation.terminal.print(as_text(&summary))?;
        }
        if summary.damage.is_empty() { Ok(()) } else { Err(Failure::Shown) }
    }
}

fn as_text(summary: &CheckSummary) -> String {
    let CheckSummary { snapshots, objects, bytes_read, damage } = summary;
    let mut text = format!("{snapshots} snapshots, {objects} objects, {} read: ", size(*bytes_read));
    if damage.is_empty() {
        text.push_str("sound");
        return text;
    }
    text.push_str(&format!("{} damaged", damage.len()));
    for line in damage {
        text.push_str("\n  ");
        text.push_str(&one_line(line));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_figure_is_the_number_of_snapshots_and_damage_is_listed() {
        let mut summary = CheckSummary { snapshots: 12, objects: 345, bytes_read: 2048, damage: vec![] };
        assert_eq!(as_text(&summary), "12 snapshots, 345 objects, 2.0 KiB read: sound");
        summary.damage = vec!["pack 0a1b: block 3 has a wrong checksum".to_owned()];
        assert_eq!(
            as_text(&summary),
            "12 snapshots, 345 objects, 2.0 KiB read: 1 damaged\n  pack 0a1b: block 3 has a wrong checksum"
        );
    }
}
