//! What the host knows of tasks, exports, configuration and core, as the core said it last.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::Path;

use cofferdam_protocol::host::CoreState;
use cofferdam_protocol::pod::{Config, Diagnostic, ExportRecord, Initialized, LogLevel, TaskSummary};

/// How many diagnostics are kept.
const DIAGNOSTICS: usize = 50;

/// What the host knows. Every change that a panel can see makes the revision grow.
#[derive(Debug)]
pub(super) struct Cache {
    /// Grows with every change.
    revision: u64,
    /// How the core is.
    pub(super) core: CoreState,
    /// The core's database, for people.
    pub(super) store_path: String,
    /// Nothing before the core came for the first time.
    config: Option<Config>,
    tasks: HashMap<String, TaskSummary>,
    /// Tasks whose directory was not there when it was looked at.
    missing: HashSet<String>,
    /// Newest first.
    exports: Vec<ExportRecord>,
    /// Where each main session's exports went, if that was to be remembered.
    remembered: BTreeMap<String, String>,
    diagnostics: VecDeque<Diagnostic>,
}

impl Cache {
    pub(super) fn new(embedded: bool, database: &Path) -> Self {
        Self {
            revision: 1,
            core: CoreState::starting(embedded),
            store_path: database.display().to_string(),
            config: None,
            tasks: HashMap::new(),
            missing: HashSet::new(),
            exports: Vec::new(),
            remembered: BTreeMap::new(),
            diagnostics: VecDeque::new(),
        }
    }

    /// Grows with every change.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// Something that is shown has changed.
    pub(super) fn touch(&mut self) {
        self.revision += 1;
    }

    /// The core came: whatever was known of it is void.
    pub(super) fn core_up(&mut self, core: CoreState, initialized: Option<Initialized>) {
        self.touch();
        self.core = core;
        let Some(said) = initialized else { return };
        self.config = Some(said.config);
        self.tasks = said.tasks.into_iter().map(|task| (task.id.clone(), task)).collect();
        self.exports = said.exports;
        for diagnostic in said.diagnostics {
            self.keep(diagnostic);
        }
    }

    /// The core went. What is known of it stays to be looked at.
    pub(super) fn core_down(&mut self, core: CoreState) {
        self.touch();
        self.core = core;
    }

    /// The configuration; nothing before the core came for the first time.
    pub(super) fn config(&self) -> Option<&Config> {
        self.config.as_ref()
    }

    pub(super) fn set_config(&mut self, config: Config) {
        self.touch();
        self.config = Some(config);
    }

    pub(super) fn task(&self, id: &str) -> Option<&TaskSummary> {
        self.tasks.get(id)
    }

    pub(super) fn task_count(&self) -> usize {
        self.tasks.len()
    }

    /// The task of an agent's session.
    pub(super) fn task_of_session(&self, session: &str) -> Option<&TaskSummary> {
        // Migrated tasks may have none.
        self.tasks.values().find(|task| !session.is_empty() && task.session_id == session)
    }

    /// All tasks, newest first.
    pub(super) fn tasks(&self) -> Vec<&TaskSummary> {
        let mut tasks: Vec<_> = self.tasks.values().collect();
        tasks.sort_unstable_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
        tasks
    }

    /// The core says what a task is now.
    pub(super) fn adopt(&mut self, task: TaskSummary) {
        self.touch();
        self.tasks.insert(task.id.clone(), task);
    }

    /// A request says what a task is. An event may have said something newer already.
    pub(super) fn adopt_if_new(&mut self, task: &TaskSummary) {
        if !self.tasks.contains_key(&task.id) {
            self.adopt(task.clone());
        }
    }

    /// A task's record is gone; `false` if it was not known.
    pub(super) fn remove(&mut self, id: &str) -> bool {
        self.touch();
        self.missing.remove(id);
        self.tasks.remove(id).is_some()
    }

    /// Whether the task's directory was there when it was looked at last.
    pub(super) fn has_directory(&self, id: &str) -> bool {
        !self.missing.contains(id)
    }

    /// Which directories are missing.
    pub(super) fn set_missing(&mut self, missing: HashSet<String>) {
        if missing != self.missing {
            self.touch();
            self.missing = missing;
        }
    }

    pub(super) fn exports(&self) -> &[ExportRecord] {
        &self.exports
    }

    pub(super) fn set_exports(&mut self, exports: Vec<ExportRecord>, remembered: BTreeMap<String, String>) {
        self.touch();
        self.exports = exports;
        self.remembered = remembered;
    }

    /// Where a main session's last export went, if that was to be remembered.
    pub(super) fn remembered_target(&self, main: &str) -> &str {
        self.remembered.get(main).map_or("", String::as_str)
    }

    /// Something a person should know.
    pub(super) fn diagnose(&mut self, at: i64, level: LogLevel, message: String) {
        self.touch();
        self.keep(Diagnostic { at, level, message });
    }

    /// The newest, oldest first.
    pub(super) fn diagnostics(&self, most: usize) -> Vec<Diagnostic> {
        let left_out = self.diagnostics.len().saturating_sub(most);
        self.diagnostics.iter().skip(left_out).cloned().collect()
    }

    fn keep(&mut self, diagnostic: Diagnostic) {
        // The core says after a restart what it said before.
        if self.diagnostics.contains(&diagnostic) {
            return;
        }
        if self.diagnostics.len() == DIAGNOSTICS {
            self.diagnostics.pop_front();
        }
        self.diagnostics.push_back(diagnostic);
    }
}
