//! Check whether a conversation can be resumed.

use clap::Args;

use super::Run;
use super::failure::Failure;
use super::management;
use crate::client::arguments::Shown;
use crate::client::shown::one_line;
use crate::session::SessionCore;

#[derive(Args, Debug)]
pub(super) struct Validate {
    /// The conversation's id
    #[arg(value_name = "ID")]
    session: String,
    #[command(flatten)]
    shown: Shown,
}

impl Validate {
    pub(super) fn run(&self, run: &mut Run) -> Result<(), Failure> {
        let summary = management::program().validate(&run.workspace()?, &self.session)?;
        if self.shown.as_json(&mut run.terminal) {
            return Ok(run.terminal.print_json(&summary)?);
        }
        let (id, messages) = (one_line(&summary.session_id), summary.message_count);
        Ok(run.terminal.print(format_args!("{id} can be resumed: {messages} message(s)"))?)
    }
}
