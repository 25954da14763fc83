//! Remove conversations.

use std::collections::{HashMap, HashSet};

use clap::Args;
use cofferdam_protocol::session::{
    ListRequest, SessionError, SessionErrorCode, SessionId, Skipped, Summary, limits,
};
use serde::Serialize;

use super::Run;
use super::failure::Failure;
use super::management;
use crate::client::arguments::Shown;
use crate::client::shown::{excerpt, one_line};
use crate::session::{ClearPlan, ClearReport, SessionCore};

#[derive(Args, Debug)]
pub(super) struct Clear {
    /// The conversations' ids
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    sessions: Vec<String>,
    /// Every conversation of the workspace
    #[arg(long)]
    all: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    shown: Shown,
}

impl Clear {
    pub(super) fn run(&self, run: &mut Run) -> Result<(), Failure> {
        let (workspace, remover) = (run.workspace()?, management::remover(run));
        let planned = self.plan(&workspace, &*remover)?;
        if planned.session_ids.is_empty() {
            return self.nothing_to_do(run, &planned);
        }
        if !self.yes {
            let prompts = first_prompts(&workspace, &*remover, &planned);
            run.terminal.say(as_plan(&workspace, &planned, &prompts));
            let question = format!("Remove {} conversation(s) for good?", planned.session_ids.len());
            match run.terminal.confirm(&question)? {
                None => return Err(Failure::Said("nobody is here to confirm it; --yes does".to_owned())),
                Some(false) => {
                    run.terminal.say("Nothing was removed.");
                    return Ok(());
                }
                Some(true) => {}
            }
        }
        let cleared = remover.clear(&workspace, &planned.session_ids, &[])?;
        self.report(run, &cleared)
    }

    fn plan(&self, workspace: &str, remover: &dyn SessionCore) -> Result<ClearPlan, Failure> {
        if self.all {
            return Ok(remover.prepare_clear_all(workspace, &[])?);
        }
        let mut plan = ClearPlan::default();
        for id in &self.sessions {
            // Before anybody is asked about a plan that cannot be carried out.
            if let Err(error) = SessionId::new(id.as_str()) {
                let refused = SessionError::new(SessionErrorCode::InvalidId, &error.to_string());
                return Err(Failure::Refused(refused.into()));
            }
            if !plan.session_ids.contains(id) {
                plan.session_ids.push(id.clone());
            }
        }
        Ok(plan)
    }

    fn nothing_to_do(&self, run: &mut Run, planned: &ClearPlan) -> Result<(), Failure> {
        if self.shown.as_json(&mut run.terminal) {
            return self.report(run, &ClearReport::default());
        }
        let but = match planned.protected_session_ids.len() {
            0 => String::new(),
            protected => format!(" but {protected} that are protected"),
        };
        Ok(run.terminal.print(format_args!("No conversations to remove{but}."))?)
    }

    /// Says what became of each conversation. Anything but "removed" is a failure.
    fn report(&self, run: &mut Run, cleared: &ClearReport) -> Result<(), Failure> {
        let whole = cleared.skipped.is_empty() && cleared.interruption.is_none();
        if self.shown.as_json(&mut run.terminal) {
            run.terminal.print_json(&Report::of(cleared))?;
        } else {
            run.terminal.print(as_text(cleared))?;
        }
        if whole { Ok(()) } else { Err(Failure::Shown) }
    }
}

/// What `--format json` prints.
#[derive(Serialize)]
struct Report<'a> {
    deleted: &'a [String],
    skipped: &'a [Skipped],
    unknown_session_ids: &'a [String],
    unattempted_session_ids: &'a [String],
    error: Option<Interrupted<'a>>,
}

/// Why it ended before all were tried.
#[derive(Serialize)]
struct Interrupted<'a> {
    code: &'a str,
    message: &'a str,
}

impl<'a> Report<'a> {
    fn of(cleared: &'a ClearReport) -> Self {
        let interruption = cleared.interruption.as_ref();
        Self {
            deleted: &cleared.deleted,
            skipped: &cleared.skipped,
            unknown_session_ids: interruption.map(|it| &*it.unknown_session_ids).unwrap_or_default(),
            unattempted_session_ids: interruption.map(|it| &*it.unattempted_session_ids).unwrap_or_default(),
            error: interruption.map(|it| Interrupted { code: &it.error.code, message: &it.error.message }),
        }
    }
}

/// How the conversations of a plan begin, by id: what people know them by. Those that cannot be found out are left out.
fn first_prompts(workspace: &str, core: &dyn SessionCore, planned: &ClearPlan) -> HashMap<String, String> {
    let mut wanted: HashSet<&String> = planned.session_ids.iter().collect();
    let (mut found, mut cursor) = (HashMap::new(), None);
    while !wanted.is_empty() {
        let request = ListRequest {
            workspace_scope: workspace.to_owned(),
            limit: limits::LIST_PAGE,
            cursor,
            all_workspaces: false,
        };
        let Ok(page) = core.list(request) else { break };
        for Summary { session_id, first_prompt, .. } in page.sessions {
            if wanted.remove(&session_id)
                && let Some(prompt) = first_prompt
            {
                found.insert(session_id, prompt);
            }
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    found
}

fn as_plan(workspace: &str, planned: &ClearPlan, prompts: &HashMap<String, String>) -> String {
    let mut lines = vec![format!("To be removed, of {}:", one_line(workspace))];
    lines.extend(planned.session_ids.iter().map(|id| match prompts.get(id) {
        Some(prompt) => format!("  {}  {}", one_line(id), excerpt(prompt)),
        None => format!("  {}", one_line(id)),
    }));
    if !planned.protected_session_ids.is_empty() {
        lines.push("Protected, and kept:".to_owned());
        lines.extend(planned.protected_session_ids.iter().map(|id| format!("  {}", one_line(id))));
    }
    lines.join("\n")
}

fn as_text(cleared: &ClearReport) -> String {
    let mut lines = vec![format!("Removed {} conversation(s).", cleared.deleted.len())];
    if !cleared.skipped.is_empty() {
        lines.push(format!("Not removed, {}:", cleared.skipped.len()));
        lines.extend(cleared.skipped.iter().map(|skipped| {
            format!("  {}: {}", one_line(&skipped.session_id), one_line(&skipped.error.message))
        }));
    }
    if let Some(interruption) = &cleared.interruption {
        lines.push(format!("Interrupted: {}", one_line(&interruption.error.message)));
        for (what, ids) in [
            ("Perhaps removed, perhaps not", &interruption.unknown_session_ids),
            ("Not tried", &interruption.unattempted_session_ids),
        ] {
            if !ids.is_empty() {
                lines.push(format!("{what}, {}:", ids.len()));
                lines.extend(ids.iter().map(|id| format!("  {}", one_line(id))));
            }
        }
        lines.push("List the conversations, and clear again what is left.".to_owned());
    }
    lines.join("\n")
}
