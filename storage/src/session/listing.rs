//! Summaries: of a page, and of one session.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::path::Path;
use std::sync::Arc;

use cofferdam_protocol::session::{
    Defect, Envelope, Health, ListCursor, SCHEMA_VERSION, SessionId, Summary, bounded, limits, preview,
};

use super::dir::Dir;
use super::load::{Origin, Reading};
use super::scope::{directory_name, is_directory_name};
use super::{Error, SessionStore, redact, scan};

/// A page of summaries.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Newest file first, then by id.
    pub sessions: Vec<Summary>,
    /// Where the next page begins; none if every candidate was looked at.
    pub next: Option<ListCursor>,
}

impl SessionStore {
    /// A page of at most `limit` summaries (clamped to 1–100). Candidates come from one scan with one stat each; only the
    /// page's files are opened. What cannot be read, or is gone, takes no row.
    ///
    /// With `all_workspaces`, sessions in other workspaces' directories are rows of health `scope_mismatch`, unless they
    /// are damaged or of another schema. The workspace of a row whose file does not say it is empty there.
    pub fn list(
        &self,
        limit: usize,
        cursor: Option<&ListCursor>,
        all_workspaces: bool,
    ) -> Result<Page, Error> {
        let limit = limit.clamp(1, limits::LIST_PAGE);
        let population = self.population(all_workspaces)?;
        let scope_of = |candidate: &Candidate| population.scopes[candidate.scope].as_str();
        let behind =
            |candidate: &Candidate| cursor.is_none_or(|at| candidate.is_behind(scope_of(candidate), at));
        let mut left: BinaryHeap<Candidate> = population.candidates.into_iter().filter(behind).collect();
        let mut page = Page { sessions: Vec::new(), next: None };
        while let Some(candidate) = left.pop() {
            let scope = scope_of(&candidate);
            page.sessions.extend(self.row(&candidate, scope, population.root.as_ref()));
            if page.sessions.len() == limit {
                let Candidate { modified_ms, id, .. } = candidate;
                let scope = all_workspaces.then(|| scope.to_owned());
                page.next = (!left.is_empty()).then_some(ListCursor { modified_ms, scope, id });
                break;
            }
        }
        Ok(page)
    }

    /// The summary of one session, whatever its health.
    pub fn inspect(&self, id: &SessionId) -> Result<Summary, Error> {
        let reading = self.read(id)?.ok_or_else(|| Error::NotFound(id.clone()))?;
        Ok(summary(id, reading, &self.workspace))
    }

    /// The summary of a session that can be resumed; what [`load`](Self::load) says otherwise.
    pub fn validate(&self, id: &SessionId) -> Result<Summary, Error> {
        let Reading { modified_ms, envelope } = self.read(id)?.ok_or_else(|| Error::NotFound(id.clone()))?;
        let envelope = envelope.map_err(|defect| self.error(id, defect))?;
        Ok(summary(id, Reading { modified_ms, envelope: Ok(envelope) }, &self.workspace))
    }

    /// Everything that a list may show, in no order.
    fn population(&self, all_workspaces: bool) -> Result<Population, Error> {
        let own = directory_name(&self.workspace);
        let mut population = Population { scopes: Vec::new(), root: None, candidates: Vec::new() };
        if all_workspaces {
            population.root = self.root()?;
            if let Some(root) = &population.root {
                scan::names(root, |name| {
                    if is_directory_name(name.to_bytes()) {
                        population.scopes.push(name.to_string_lossy().into_owned());
                    }
                })?;
            }
        }
        // In the order of their names, among which this workspace's is whether it has a directory or not.
        population.scopes.push(own.clone());
        population.scopes.sort_unstable();
        population.scopes.dedup();
        let candidates = &mut population.candidates;
        for (scope, name) in population.scopes.iter().enumerate() {
            if *name == own {
                self.own_candidates(scope, candidates)?;
                continue;
            }
            let Some(root) = &population.root else { continue };
            let dir = root.enter(Path::new(name)).and_then(|dir| dir.for_reading());
            // What cannot be read does not hide the others.
            let Ok(dir) = dir else { continue };
            let _ = scan::sessions(&dir, |id, modified_ms| {
                candidates.push(Candidate { modified_ms, id, scope, origin: Origin::Foreign });
            });
        }
        Ok(population)
    }

    /// This workspace's sessions: those in its own directory, and those of the flat one that have no namesake there.
    fn own_candidates(&self, scope: usize, candidates: &mut Vec<Candidate>) -> Result<(), Error> {
        let own = self.scope.for_reading()?;
        if let Some(own) = &own {
            scan::sessions(own, |id, modified_ms| {
                candidates.push(Candidate { modified_ms, id, scope, origin: Origin::Own });
            })?;
        }
        let Some(legacy) = self.legacy.dir()? else { return Ok(()) };
        scan::sessions(&legacy, |id, modified_ms| {
            let is_hidden = own.as_ref().is_some_and(|own| !matches!(own.stat(&id), Ok(None)));
            if !is_hidden {
                candidates.push(Candidate { modified_ms, id, scope, origin: Origin::Legacy });
            }
        })
    }

    fn root(&self) -> Result<Option<Dir>, Error> {
        match Dir::open(&self.root) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some).map_err(|error| Error::io("open session root", &self.root, error)),
        }
    }

    /// A candidate's row, if it can be read.
    fn row(&self, candidate: &Candidate, scope: &str, root: Option<&Dir>) -> Option<Summary> {
        let dir = match candidate.origin {
            Origin::Own => self.scope.for_reading().ok()??,
            Origin::Legacy => self.legacy.dir().ok()??,
            Origin::Foreign => Arc::new(root?.enter(Path::new(scope)).ok()?),
        };
        let reading = self.read_in(&dir, candidate.origin, &candidate.id).ok()??;
        let workspace = if candidate.origin == Origin::Foreign { "" } else { &self.workspace };
        Some(summary(&candidate.id, reading, workspace))
    }
}

/// What a list may show.
struct Population {
    /// Names of directories, in order.
    scopes: Vec<String>,
    /// The directory they are in, if other workspaces' are among them.
    root: Option<Dir>,
    candidates: Vec<Candidate>,
}

/// A session's file, not looked into yet. The greatest comes first in a list: the newest, of equally new ones the one with
/// the least id, of those the one in the first directory.
#[derive(PartialEq, Eq)]
struct Candidate {
    modified_ms: u64,
    id: SessionId,
    /// Which of [`Population::scopes`].
    scope: usize,
    origin: Origin,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        let backwards = (&other.id, other.scope).cmp(&(&self.id, self.scope));
        self.modified_ms.cmp(&other.modified_ms).then(backwards)
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Candidate {
    /// Whether it comes after a cursor. One that names no directory stands behind all of its time and id.
    fn is_behind(&self, scope: &str, cursor: &ListCursor) -> bool {
        let order = cursor.modified_ms.cmp(&self.modified_ms).then_with(|| self.id.cmp(&cursor.id));
        let order = order.then_with(|| cursor.scope.as_deref().map_or(Ordering::Less, |at| scope.cmp(at)));
        order == Ordering::Greater
    }
}

/// What a list shows of a session. `workspace` stands where the file does not say one.
fn summary(id: &SessionId, reading: Reading, workspace: &str) -> Summary {
    let (envelope, health, schema_version) = match reading.envelope {
        Ok(envelope) => (Some(envelope), Health::Ready, Some(SCHEMA_VERSION)),
        Err(Defect::ScopeMismatch(envelope)) => {
            (Some(*envelope), Health::ScopeMismatch, Some(SCHEMA_VERSION))
        }
        Err(Defect::Incompatible(version)) => (None, Health::Incompatible, Some(version)),
        Err(Defect::Corrupt(_)) => (None, Health::Corrupt, None),
    };
    let mut summary = Summary {
        session_id: id.to_string(),
        workspace_scope: bounded(workspace, limits::WORKSPACE),
        created_at_ms: reading.modified_ms,
        updated_at_ms: reading.modified_ms,
        model: None,
        message_count: 0,
        first_prompt: None,
        schema_version,
        health,
    };
    if let Some(mut envelope) = envelope {
        summary.workspace_scope = bounded(&envelope.workspace_scope, limits::WORKSPACE);
        summary.created_at_ms = envelope.created_at_ms;
        summary.updated_at_ms = envelope.updated_at_ms;
        summary.model = Some(bounded(&envelope.model, limits::MODEL)).filter(|model| !model.is_empty());
        summary.message_count = envelope.messages.len() as u64;
        summary.first_prompt = first_prompt(&mut envelope);
    }
    summary
}

/// What the user said first, without secrets; these are taken out of no more messages than needed.
fn first_prompt(envelope: &mut Envelope) -> Option<String> {
    let users = envelope.messages.iter_mut().filter(|message| message.role == "user");
    preview(users.map(|message| {
        redact::message(message);
        &*message
    }))
}
