//! Show with which agents tasks can be started.

use clap::Args;
use cofferdam_protocol::host::{GetState, PresetChoice, State};
use cofferdam_storage::pod::presets::SAMPLE;
use serde::Serialize;

use crate::client::arguments::Shown;
use crate::client::host::Run;
use crate::client::host::failure::Failure;
use crate::client::host::task::list::mention_core;
use crate::client::shown::one_line;
use crate::client::table::table;
use crate::terminal::Terminal;

#[derive(Args, Debug)]
#[command(after_help = "For example: cofferdam task presets --sample > pods.toml")]
pub(crate) struct Presets {
    /// Print a file of presets for common agents' command lines, to take from; needs no daemon
    #[arg(long)]
    sample: bool,
    #[command(flatten)]
    shown: Shown,
}

/// A preset, and whether a task can be started with it now.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    #[serde(flatten)]
    preset: &'a PresetChoice,
    /// Whether it is the one that tasks get that name none.
    chosen: bool,
    /// Whether a task can be started with it.
    usable: bool,
}

impl Presets {
    /// Prints what is known without a daemon, if that is wanted.
    pub(super) fn sample(&self, terminal: &mut Terminal) -> Option<Result<(), Failure>> {
        self.sample.then(|| Ok(terminal.print(SAMPLE.trim_end())?))
    }

    pub(super) fn run(&self, run: &mut Run) -> Result<(), Failure> {
        if let Some(printed) = self.sample(&mut run.terminal) {
            return printed;
        }
        let state = run.control.host(&GetState::default())?;
        mention_core(&state.core, &mut run.terminal);
        let rows = rows(&state);
        if self.shown.as_json(&mut run.terminal) {
            return Ok(run.terminal.print_json(&rows)?);
        }
        run.terminal.print(as_table(&rows))?;
        if !rows.iter().any(|row| row.chosen) {
            run.terminal.say("Choose one for all tasks: cofferdam config set presetId=<preset>");
        }
        run.terminal.say("More of them, for common agents: cofferdam task presets --sample");
        Ok(())
    }
}

fn rows(state: &State) -> Vec<Row<'_>> {
    state
        .preset_choices
        .iter()
        .map(|preset| Row {
            chosen: state.config.as_ref().is_some_and(|config| config.preset_id == preset.id),
            usable: !preset.broken && preset.lacks.is_empty(),
            preset,
        })
        .collect()
}

fn as_table(rows: &[Row<'_>]) -> String {
    if rows.is_empty() {
        return "No presets: there is no agent to run.".to_owned();
    }
    let mut lines = vec![["", "PRESET", "NAME", "TURNS", "NEEDS", "STATE"].map(str::to_owned)];
    lines.extend(rows.iter().map(|row| {
        let state = match (row.preset.broken, row.preset.lacks.as_slice()) {
            (true, _) => format!("cannot be used: {}", one_line(&row.preset.why)),
            (false, []) => "usable".to_owned(),
            (false, lacking) => {
                format!("not allowed: {} (allowedTools, allowWrites)", one_line(&lacking.join(", ")))
            }
        };
        let turns = if row.preset.resumable { "any" } else { "one" };
        [
            if row.chosen { "*" } else { "" }.to_owned(),
            one_line(&row.preset.id),
            one_line(&row.preset.name),
            if row.preset.broken { "-" } else { turns }.to_owned(),
            if row.preset.needs.is_empty() { "-".to_owned() } else { one_line(&row.preset.needs.join(",")) },
            state,
        ]
    }));
    table(&lines)
}

#[cfg(test)]
mod tests {
    use cofferdam_protocol::pod::Config;

    use super::*;
    use crate::client::host::testing::state;

    fn choice(id: &str, needs: &[&str], lacks: &[&str], why: &str) -> PresetChoice {
        PresetChoice {
            id: id.to_owned(),
            name: id.to_uppercase(),
            broken: !why.is_empty(),
            why: why.to_owned(),
            needs: needs.iter().map(|tool| (*tool).to_owned()).collect(),
            lacks: lacks.iter().map(|tool| (*tool).to_owned()).collect(),
            resumable: id == "a",
        }
    }

    #[test]
    fn the_table_says_what_can_be_used_and_why_not() {
        let mut state = state(&[]);
        state.preset_choices = vec![
            choice("a", &["bash"], &[], ""),
            choice("b", &["bash", "edit"], &["edit"], ""),
            choice("c", &[], &[], "no\x1b program"),
        ];
        state.config = Some(Config { preset_id: "a".to_owned(), ..Config::default() });
        assert_eq!(
            as_table(&rows(&state)),
            "   PRESET  NAME  TURNS  NEEDS      STATE\n\
             *  a       A     any    bash       usable\n\
             \x20  b       B     one    bash,edit  not allowed: edit (allowedTools, allowWrites)\n\
             \x20  c       C     -      -          cannot be used: no\\u{1b} program"
        );
        assert!(as_table(&[]).starts_with("No presets"));
    }
}
