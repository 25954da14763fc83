//! Show what is known of a task.

use clap::Args;
use cofferdam_protocol::host::TaskRow;
use cofferdam_protocol::pod::ModelChoice;
use jiff::tz::Offset;

use super::list::moment;
use crate::client::arguments::Shown;
use crate::client::host::failure::Failure;
use crate::client::host::follow::status;
use crate::client::host::{Run, find};
use crate::client::moment::{local_offset, zone};
use crate::client::shown::{duration, lines, one_line};

#[derive(Args, Debug)]
pub(crate) struct Show {
    /// The beginning of the task's id
    task: String,
    #[command(flatten)]
    shown: Shown,
}

impl Show {
    pub(super) fn run(&self, run: &mut Run) -> Result<(), Failure> {
        let row = find::task(&run.control, &self.task)?;
        if self.shown.as_json(&mut run.terminal) {
            return Ok(run.terminal.print_json(&row)?);
        }
        Ok(run.terminal.print(as_lines(&row, local_offset()))?)
    }
}

pub(super) fn as_lines(row: &TaskRow, offset: Offset) -> String {
    let task = &row.task;
    let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { one_line(text) };
    let when = |ms| match moment(ms, offset) {
        none if none == "-" => none,
        moment => format!("{moment} {}", zone(offset)),
    };
    let agent = match (row.live, row.can_resume) {
        (true, _) => "there; cofferdam task tell gives it more to do",
        (false, true) if task.turns == 0 => {
            "none yet: the task has not begun; cofferdam task resume begins it"
        }
        (false, true) => "gone; cofferdam task resume brings it back",
        (false, false) => "gone",
    };
    let ModelChoice { provider, model, .. } = &task.model;
    let model = [provider, model].into_iter().filter(|word| !word.is_empty()).map(|word| one_line(word));
    let model = model.collect::<Vec<_>>().join(" ");
    let sandbox = [task.sandbox_mode.as_str(), task.sandbox_probe.as_str()];
    let sandbox = sandbox.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", probe: ");
    let mut text = [
        ("Task", one_line(&task.id)),
        ("Status", status(row)),
        ("Error", or_dash(task.error.trim())),
        ("Agent", agent.to_owned()),
        ("Label", or_dash(&task.label)),
        ("Directory", or_dash(&task.task_dir)),
        ("Main session", or_dash(&task.main_session_id)),
        ("Session", or_dash(&task.session_id)),
        ("Preset", or_dash(&task.preset_id)),
        ("Model", or_dash(&model)),
        ("Tools", or_dash(&task.allow.join(", "))),
        ("Sandbox", or_dash(&sandbox)),
        (
            "Turns",
            format!("{}, each {} at most", task.turns, duration(task.timeout_ms.unsigned_abs() / 1000)),
        ),
        ("Created", when(task.created_at)),
        ("Started", when(task.started_at)),
        ("Ended", when(task.ended_at)),
        (
            "Migrated",
            if task.legacy { "yes; it can be looked at, exported and removed" } else { "no" }.to_owned(),
        ),
    ]
    .map(|(name, value)| format!("{:<14}{value}", format!("{name}:")))
    .join("\n");
    for (name, said) in [("Description", &task.description), ("Last said", &task.last_text)] {
        if !said.trim().is_empty() {
            let said = lines(said.trim_end());
            let said: Vec<_> =
                said.split('\n').map(|line| format!("  {line}").trim_end().to_owned()).collect();
            text.push_str(&format!("\n{name}:\n{}", said.join("\n")));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use cofferdam_protocol::pod::TaskStatus;

    use super::*;
    use crate::client::host::testing;

    #[test]
    fn everything_a_person_may_ask_is_there_and_nothing_of_it_steers_the_terminal() {
        let mut row = testing::row("pod-1", TaskStatus::Failed);
        row.can_resume = true;
        row.task.error = "it broke\n\x1b[2J".to_owned();
        row.task.description = "do\n\nit\u{202e}".to_owned();
        row.task.last_text = "I\ttried\u{9b}\n".to_owned();
        row.task.allow = vec!["read".to_owned(), "\x07".to_owned()];
        row.task.model.model = "m".to_owned();
        assert_eq!(
            as_lines(&row, Offset::UTC),
            "Task:         pod-1\n\
             Status:       failed\n\
             Error:        it broke\\n\\u{1b}[2J\n\
             Agent:        none yet: the task has not begun; cofferdam task resume begins it\n\
             Label:        -\n\
             Directory:    /pods/pod-1\n\
             Main session: -\n\
             Session:      pod-session-1\n\
             Preset:       fake\n\
             Model:        m\n\
             Tools:        read, \\u{7}\n\
             Sandbox:      workspace-write, probe: denied\n\
             Turns:        0, each 10m 0s at most\n\
             Created:      2026-01-02 03:04:05 UTC+0\n\
             Started:      -\n\
             Ended:        -\n\
             Migrated:     no\n\
             Description:\n\
             \u{20} do\n\
             \n\
             \u{20} it\\u{202e}\n\
             Last said:\n\
             \u{20} I\ttried\\u{9b}"
        );
    }
}
