//! What a supervisor is told.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cofferdam_storage::pod::presets::{OutputForm, PromptBy};
use cofferdam_storage::sandbox::{Limits, Order, PodUser, ProbeOrder, Program, default_hidden};

use super::output::Output;
use super::run::{GRACE, Job};
use super::shell::USUAL_PATH;
use super::template::{Values, argv};
use super::{CommandParts, Facts};
use crate::host::agent::AgentError;

/// What every program gets of the daemon's environment.
const VARS: [&str; 12] = [
    "PATH",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_COLLATE",
    "LC_MESSAGES",
    "LC_NUMERIC",
    "LC_TIME",
    "TZ",
    "USER",
    "LOGNAME",
];

impl CommandParts {
    /// Has the sandbox made and tested, and nothing run in it.
    pub(super) fn test(&self, facts: &Facts) -> Job {
        let root = Path::new(&facts.policy.root);
        // The nearest that an agent could want to write to, first.
        let places = root.parent().map(Path::to_owned).into_iter().chain(self.places.iter().cloned());
        let probe = ProbeOrder {
            places: places.collect(),
            sockets: self.sockets.clone(),
            process: std::process::id(),
        };
        let output = Output::new(OutputForm::Text, &BTreeMap::new());
        self.job(Order { probe: Some(probe), ..self.order(facts) }, String::new(), output)
    }

    /// Has the program run for a turn, which `begins` a conversation or goes on with one.
    pub(super) fn turn(&self, facts: &Facts, begins: bool, prompt: String) -> Result<Job, AgentError> {
        let preset = &facts.preset;
        let template = match begins {
            true => &preset.argv_first,
            false => preset.argv_follow_up.as_ref().ok_or_else(|| {
                AgentError::NotResumable(format!(
                    "an agent of the preset {id} has one turn; start a new task, or give {id} an argv_follow_up in the \
                     file of presets",
                    id = preset.id
                ))
            })?,
        };
        let values = Values {
            prompt: &prompt,
            system_prompt: &facts.system_prompt,
            task_dir: &facts.policy.task_dir,
            session_id: &facts.session_id,
            allowed_tools: &facts.tools.join(","),
            agent_tools: &agent_tools(facts),
            model: &facts.model,
        };
        let argv = argv(template, &values).map_err(AgentError::Failed)?;
        let cwd = PathBuf::from(&facts.policy.task_dir);
        let program = Program { argv, env: self.environment(facts), cwd };
        let input = match preset.prompt {
            PromptBy::Argument => String::new(),
            PromptBy::Stdin => prompt,
        };
        let output = Output::new(preset.output, &preset.tools);
        Ok(self.job(Order { program: Some(program), ..self.order(facts) }, input, output))
    }

    pub(super) fn job(&self, order: Order, input: String, output: Output) -> Job {
        let supervisor = self.supervisor.clone();
        Job { supervisor, order, files: Vec::new(), input, output, faster: self.faster }
    }

    pub(super) fn order(&self, facts: &Facts) -> Order {
        let root = PathBuf::from(&facts.policy.root);
        let uid = rustix::process::geteuid().as_raw();
        Order {
            task_dir: PathBuf::from(&facts.policy.task_dir),
            hidden: default_hidden(&self.state, &root, self.home.as_deref(), uid),
            sandbox_root: root,
            mode: facts.mode,
            private_parent: self.private.clone(),
            real_home: self.home.clone(),
            from_home: facts.preset.from_home.clone(),
            kept_home: facts.home.clone(),
            home_files: Vec::new(),
            // It may be in what is hidden.
            readable: facts.core.iter().map(|core| core.path.clone()).collect(),
            writable: facts.preset.writable.clone(),
            // Only root's supervisor heeds it.
            user: Some(PodUser::default()),
            probe: None,
            program: None,
            limits: Limits::usual(),
            grace_ms: u32::try_from(self.real(GRACE).as_millis()).unwrap_or(u32::MAX),
            least: facts.least.clone(),
            without: Vec::new(),
        }
    }

    pub(super) fn environment(&self, facts: &Facts) -> Vec<(String, String)> {
        let names = VARS.into_iter().chain(facts.preset.env.iter().map(String::as_str));
        let mut chosen: BTreeMap<&str, &str> =
            names.filter_map(|name| Some((name, self.vars.get(name)?.as_str()))).collect();
        chosen.entry("PATH").or_insert(USUAL_PATH);
        // Nobody looks at a screen.
        chosen.entry("TERM").or_insert("dumb");
        chosen.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }
}

/// The tools it may use, in the agent's own words.
fn agent_tools(facts: &Facts) -> String {
    let mut names: Vec<&str> = Vec::new();
    for ours in &facts.tools {
        let before = names.len();
        let theirs = facts.preset.tools.iter().filter(|(_, name)| *name == ours);
        names.extend(theirs.map(|(theirs, _)| theirs.as_str()));
        if names.len() == before {
            names.push(ours);
        }
    }
    names.join(",")
}
