//! What the tests of these actors share: an engine without a disk, a clock that is set by hand, and an actor that
//! stands in for a workspace's.

use std::any::Any;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::mpsc as blocking;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use actix::prelude::*;
use cofferdam_protocol::ckpt::{SnapshotId, WorkspaceId};
use cofferdam_storage::ckpt::*;
use cofferdam_storage::clock::{Clock, WallTime};
use cofferdam_storage::path::RelPath;
use cofferdam_storage::peer::Peer;
use tokio::sync::{mpsc, oneshot};

use super::failure::{Failure, RoutingError};
use super::operations::Operation;
use super::workspace_actor::{View, Write, Written};

/// A snapshot of that name.
pub(crate) fn snapshot(id: &str) -> Snapshot {
    Snapshot {
        id: SnapshotId::new(id).unwrap(),
        message: None,
        metadata: None,
        pinned: false,
        created_at: WallTime(0),
        missing: false,
        warnings: 0,
    }
}

/// A rollback to `one`, told from others by a number.
pub(crate) fn past_rollback(number: usize) -> PastRollback {
    let kind = RollbackKind::To(SnapshotId::new("one").unwrap());
    PastRollback { operation: number.to_string(), at: WallTime(1_000_000_000), kind }
}

/// An ordinary user.
pub(crate) fn user(uid: u32) -> Peer {
    Peer { uid, gid: uid, groups: Vec::new() }
}

/// A user who is neither root nor who runs the tests.
pub(crate) const ALICE: u32 = 1001;
/// Another one.
pub(crate) const BOB: u32 = 1002;

/// A clock that stands still until it is set.
#[derive(Debug, Default)]
pub(crate) struct HandClock(Mutex<Duration>);

impl HandClock {
    /// Sets both of its times.
    pub(crate) fn set(&self, to: Duration) {
        *self.0.lock().unwrap() = to;
    }
}

impl Clock for HandClock {
    fn wall(&self) -> WallTime {
        WallTime(i64::try_from(self.0.lock().unwrap().as_nanos()).unwrap())
    }

    fn monotonic(&self) -> Duration {
        *self.0.lock().unwrap()
    }
}

/// What the next call of a name does before, or instead of, what it always does.
enum Plan {
    /// Says that it was entered and waits.
    Wait(oneshot::Sender<()>, blocking::Receiver<()>),
    Fail(Error),
    Panic,
}

/// A call that waits in the engine.
pub(crate) struct Held {
    entered: Option<oneshot::Receiver<()>>,
    release: blocking::Sender<()>,
}

impl Held {
    /// Until the call is there.
    pub(crate) async fn entered(&mut self) {
        self.entered.take().unwrap().await.unwrap();
    }

    /// Lets the call go on.
    pub(crate) fn release(self) {
        self.release.send(()).unwrap();
    }
}

/// An engine without a disk: directories are names with an owner and a number for their content.
#[derive(Default)]
pub(crate) struct FakeBackend {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    clock: Arc<HandClock>,
    /// Owner and content; 0 is empty.
    directories: BTreeMap<PathBuf, (u32, u64)>,
    links: HashMap<PathBuf, PathBuf>,
    workspaces: BTreeMap<WorkspaceId, WorkspaceState>,
    /// Directories that are kept apart from them.
    kept: BTreeMap<WorkspaceId, WorkspaceState>,
    /// Content of each workspace's newest snapshot.
    newest: HashMap<WorkspaceId, (SnapshotId, u64)>,
    calls: Vec<String>,
    plans: HashMap<&'static str, VecDeque<Plan>>,
    /// Of which workspace, and what.
    trash: Vec<(WorkspaceId, Snapshot)>,
    collections: VecDeque<bool>,
    usage: FsUsage,
}

impl FakeBackend {
    /// With these directories, not empty, of these owners.
    pub(crate) fn with(directories: &[(&str, u32)]) -> Arc<Self> {
        let fake = Self::default();
        for (path, owner) in directories {
            fake.state().directories.insert(PathBuf::from(path), (*owner, 1));
        }
        Arc::new(fake)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The clock by which it dates snapshots.
    pub(crate) fn clock(&self) -> Arc<HandClock> {
        Arc::clone(&self.state().clock)
    }

    /// Registers a directory that has these snapshots, dated 1 s apart.
    pub(crate) fn registered(&self, path: &str, owner: u32, snapshots: &[&str]) -> WorkspaceId {
        let mut state = self.state();
        state.directories.insert(PathBuf::from(path), (owner, 1));
        let id = state.register(Path::new(path), owner).workspace.id;
        let dated = |(n, id): (usize, &&str)| Snapshot {
            created_at: WallTime((n as i64 + 1) * 1_000_000_000),
            ..snapshot(id)
        };
        let dated = snapshots.iter().enumerate().map(dated).collect();
        state.workspaces.get_mut(&id).unwrap().snapshots = dated;
        id
    }

    /// Changes a snapshot that is there.
    pub(crate) fn change(&self, workspace: &WorkspaceId, snapshot: &str, how: impl FnOnce(&mut Snapshot)) {
        let mut state = self.state();
        let all = &mut state.workspaces.get_mut(workspace).unwrap().snapshots;
        how(all.iter_mut().find(|one| one.id.as_str() == snapshot).unwrap());
    }

    /// What is kept of this directory, changed.
    pub(crate) fn change_kept(&self, path: &str, how: impl FnOnce(&mut Vec<Snapshot>)) {
        let mut state = self.state();
        let found = state.kept.values_mut().find(|one| one.workspace.path == Path::new(path));
        how(&mut found.unwrap().snapshots);
    }

    /// Takes a directory away.
    pub(crate) fn remove(&self, path: &str) {
        self.state().directories.remove(Path::new(path)).unwrap();
    }

    /// Makes `path` another name of `target`.
    pub(crate) fn link(&self, path: &str, target: &str) {
        self.state().links.insert(PathBuf::from(path), PathBuf::from(target));
    }

    /// Gives a directory to another user.
    pub(crate) fn give(&self, path: &str, owner: u32) {
        self.state().directories.get_mut(Path::new(path)).unwrap().0 = owner;
    }

    /// Gives a directory other content; 0 empties it.
    pub(crate) fn write(&self, path: &str, content: u64) {
        self.state().directories.get_mut(Path::new(path)).unwrap().1 = content;
    }

    /// Says what the space is from now on.
    pub(crate) fn set_usage(&self, total: u64, used: u64) {
        self.state().usage = FsUsage { total, used };
    }

    /// What the next collections answer; after them, that nothing is left.
    pub(crate) fn collections(&self, more: &[bool]) {
        self.state().collections.extend(more);
    }

    /// Makes the next call of that name wait.
    pub(crate) fn hold(&self, call: &'static str) -> Held {
        let ((entering, entered), (release, released)) = (oneshot::channel(), blocking::channel());
        self.plan(call, Plan::Wait(entering, released));
        Held { entered: Some(entered), release }
    }

    /// Makes the next call of that name fail.
    pub(crate) fn fail(&self, call: &'static str, error: Error) {
        self.plan(call, Plan::Fail(error));
    }

    /// Makes the next call of that name panic.
    pub(crate) fn panic(&self, call: &'static str) {
        self.plan(call, Plan::Panic);
    }

    fn plan(&self, call: &'static str, plan: Plan) {
        self.state().plans.entry(call).or_default().push_back(plan);
    }

    /// The calls so far, without those that only look.
    pub(crate) fn changes(&self) -> Vec<String> {
        let looks = ["workspaces", "kept", "canonical", "usage", "collect"];
        let calls = self.state().calls.clone();
        let is_look = |call: &String| looks.contains(&call.split(' ').next().unwrap_or_default());
        calls.into_iter().filter(|call| !is_look(call)).collect()
    }

    /// How often it was called by that name.
    pub(crate) fn count(&self, call: &str) -> usize {
        self.state().calls.iter().filter(|made| made.split(' ').next() == Some(call)).count()
    }

    /// Notes a call, and does what was planned for it. The lock is not held while it waits.
    fn enter(&self, call: &'static str, what: impl std::fmt::Display) -> Result<MutexGuard<'_, State>> {
        let plan = {
            let mut state = self.state();
            state.calls.push(format!("{call} {what}").trim_end().to_owned());
            state.plans.get_mut(call).and_then(VecDeque::pop_front)
        };
        match plan {
            Some(Plan::Wait(entering, released)) => {
                // The test may not look, or be over.
                let _ = entering.send(());
                let _ = released.recv();
            }
            Some(Plan::Fail(error)) => return Err(error),
            Some(Plan::Panic) => panic!("planned"),
            None => {}
        }
        Ok(self.state())
    }
}

impl State {
    fn resolve(&self, path: &Path) -> Result<PathBuf> {
        let path = self.links.get(path).map_or(path, PathBuf::as_path);
        match self.directories.get_key_value(path) {
            Some((path, _)) => Ok(path.clone()),
            None => Err(Error::io(path.display().to_string(), std::io::ErrorKind::NotFound.into())),
        }
    }

    fn register(&mut self, path: &Path, owner: u32) -> WorkspaceState {
        let fresh = WorkspaceId::from_digest([0, 0, self.workspaces.len() as u8], 1);
        let id = match self.workspaces.values().find(|one| one.workspace.path == path) {
            Some(there) if there.workspace.owner == owner => return there.clone(),
            // As the engine does: the other owner's registration ends, and its id is free again.
            Some(there) => there.workspace.id.clone(),
            None => fresh,
        };
        let workspace = Workspace { id: id.clone(), path: path.to_owned(), owner };
        let state = WorkspaceState { workspace, snapshots: Vec::new() };
        self.workspaces.insert(id, state.clone());
        state
    }

    fn workspace(&mut self, id: &WorkspaceId) -> Result<&mut WorkspaceState> {
        self.workspaces
            .get_mut(id)
            .or_else(|| self.kept.get_mut(id))
            .ok_or_else(|| Error::WorkspaceNotFound(id.clone()))
    }

    fn content(&mut self, id: &WorkspaceId) -> Result<u64> {
        let path = self.workspace(id)?.workspace.path.clone();
        self.directories.get(&path).map(|(_, content)| *content).ok_or(Error::WorkspaceGone(path))
    }
}

impl Backend for FakeBackend {
    fn workspaces(&self) -> Result<Vec<WorkspaceState>> {
        Ok(self.enter("workspaces", "")?.workspaces.values().cloned().collect())
    }

    fn canonical(&self, _: &Peer, path: &Path) -> Result<PathBuf> {
        self.enter("canonical", path.display())?.resolve(path)
    }

    fn init(&self, peer: &Peer, path: &Path) -> Result<WorkspaceState> {
        let mut state = self.enter("init", path.display())?;
        let missing = |_| Error::InvalidPath(format!("path does not exist: {}", path.display()));
        let path = state.resolve(path).map_err(missing)?;
        let owner = state.directories.get(&path).unwrap().0;
        if !peer.is_privileged() && peer.uid != owner {
            return Err(Error::InvalidPath(format!("not your directory: {}", path.display())));
        }
        Ok(state.register(&path, owner))
    }

    fn prime(&self, _: &Peer, workspace: &WorkspaceId) -> Result<()> {
        self.enter("prime", workspace).map(drop)
    }

    fn checkpoint(&self, _: &Peer, workspace: &WorkspaceId, new: &NewSnapshot) -> Result<Checkpointed> {
        let mut state = self.enter("checkpoint", &new.id)?;
        let content = state.content(workspace)?;
        let made = Snapshot {
            message: new.message.as_deref().map(Into::into),
            metadata: new.metadata.as_deref().map(Into::into),
            pinned: new.pin,
            created_at: state.clock.wall(),
            ..snapshot(new.id.as_str())
        };
        match state.newest.get(workspace) {
            _ if content == 0 && !new.even_empty => return Ok(Checkpointed::EmptyWorkspace),
            Some((newest, same)) if new.skip_unchanged && *same == content => {
                return Ok(Checkpointed::Unchanged(newest.clone()));
            }
            _ => {}
        }
        state.newest.insert(workspace.clone(), (new.id.clone(), content));
        let all = &mut state.workspace(workspace)?.snapshots;
        if all.iter().any(|one| one.id == new.id) {
            return Err(Error::SnapshotExists(new.id.clone()));
        }
        all.push(made.clone());
        Ok(Checkpointed::Created(made))
    }

    fn rollback(&self, _: &Peer, workspace: &WorkspaceId, to: &SnapshotId) -> Result<RolledBack> {
        self.enter("rollback", to)?.workspace(workspace)?;
        Ok(RolledBack { changed: 3, warnings: Vec::new() })
    }

    fn newest_rollback(&self, _: &Peer, workspace: &WorkspaceId) -> Result<Option<PastRollback>> {
        let mut state = self.enter("newest", workspace)?;
        state.workspace(workspace)?;
        Ok(Some(past_rollback(7)))
    }

    fn undo(&self, _: &Peer, workspace: &WorkspaceId) -> Result<Undone> {
        let mut state = self.enter("undo", workspace)?;
        state.workspace(workspace)?;
        let rollback = past_rollback(state.calls.len());
        Ok(Undone { rollback, outcome: RolledBack { changed: 2, warnings: Vec::new() } })
    }

    fn delete(
        &self,
        _: &Peer,
        workspace: &WorkspaceId,
        snapshots: &[SnapshotId],
        how: Removal,
    ) -> Result<()> {
        let names: Vec<&str> = snapshots.iter().map(SnapshotId::as_str).collect();
        let mut state = self.enter("delete", format!("{} {how:?}", names.join(" ")))?;
        let all = &mut state.workspace(workspace)?.snapshots;
        if let Some(unknown) = snapshots.iter().find(|id| !all.iter().any(|one| one.id == **id)) {
            return Err(Error::SnapshotNotFound(unknown.clone()));
        }
        let gone: Vec<_> = all.extract_if(.., |one| snapshots.contains(&one.id)).collect();
        if how == Removal::Trash {
            state.trash.extend(gone.into_iter().map(|snapshot| (workspace.clone(), snapshot)));
        }
        Ok(())
    }

    fn diff(&self, _: &Peer, _: &WorkspaceId, from: &TreeRef, to: &TreeRef) -> Result<Vec<Change>> {
        let shown = |tree: &TreeRef| match tree {
            TreeRef::Snapshot(id) => id.to_string(),
            TreeRef::Live => "LIVE".to_owned(),
        };
        drop(self.enter("diff", format!("{} {}", shown(from), shown(to)))?);
        let path = |text: &[u8]| RelPath::new(text).unwrap();
        Ok(vec![
            Change { path: path(b"dir"), kind: ChangeKind::Added(FileKind::Directory) },
            Change { path: path(b"new\xff"), kind: ChangeKind::Renamed { from: path(b"old") } },
        ])
    }

    fn look(
        &self,
        _: &Peer,
        _: &WorkspaceId,
        tree: &TreeRef,
        path: &RelPath,
        most: usize,
    ) -> Result<Option<Seen>> {
        let shown = match tree {
            TreeRef::Snapshot(id) => id.to_string(),
            TreeRef::Live => "LIVE".to_owned(),
        };
        drop(self.enter("look", format!("{shown} {path} {most}"))?);
        Ok((path.as_bytes() != b"none").then(|| {
            let text = format!("first\n{shown}\nlast\n").into_bytes();
            Seen { kind: FileKind::File, size: text.len() as u64, bytes: Some(text) }
        }))
    }

    fn recover(&self, _: &Peer, workspace: &WorkspaceId) -> Result<()> {
        let mut state = self.enter("recover", workspace)?;
        state.workspace(workspace)?;
        state.workspaces.remove(workspace);
        Ok(())
    }

    fn keep(&self, dir: &Path) -> Result<WorkspaceState> {
        let mut state = self.enter("keep", dir.display())?;
        let missing = |_| Error::InvalidPath(format!("path does not exist: {}", dir.display()));
        let path = state.resolve(dir).map_err(missing)?;
        let owner = state.directories[&path].0;
        if let Some(there) = state.kept.values().find(|one| one.workspace.path == path) {
            return Ok(there.clone());
        }
        let id = WorkspaceId::from_digest([255, 0, state.kept.len() as u8], 1);
        let kept =
            WorkspaceState { workspace: Workspace { id: id.clone(), path, owner }, snapshots: Vec::new() };
        state.kept.insert(id, kept.clone());
        Ok(kept)
    }

    fn kept(&self) -> Result<Vec<WorkspaceState>> {
        Ok(self.enter("kept", "")?.kept.values().cloned().collect())
    }

    fn forget_kept(&self, workspace: &WorkspaceId) -> Result<()> {
        let forgotten = self.enter("forget", workspace)?.kept.remove(workspace);
        forgotten.map(drop).ok_or_else(|| Error::WorkspaceNotFound(workspace.clone()))
    }

    fn trash(&self, _: &Peer) -> Result<Vec<Trashed>> {
        let state = self.enter("trash", "")?;
        let workspace = |id: &WorkspaceId| state.workspaces.get(id).unwrap().workspace.clone();
        let trashed = state.trash.iter().enumerate().map(|(item, (of, snapshot))| Trashed {
            item: item as u64,
            workspace: workspace(of),
            tree: TrashedTree::Snapshot { id: snapshot.id.clone(), message: None },
            created_at: snapshot.created_at,
            until: snapshot.created_at,
            missing: false,
        });
        Ok(trashed.collect())
    }

    fn restore_trashed(
        &self,
        _: &Peer,
        workspace: &WorkspaceId,
        item: u64,
        name: Option<&SnapshotId>,
        pin: bool,
    ) -> Result<Snapshot> {
        let mut state = self.enter("restore", item)?;
        let (_, mut snapshot) = state.trash.get(item as usize).cloned().ok_or(Error::NotInTrash(item))?;
        snapshot.id = name.cloned().unwrap_or(snapshot.id);
        snapshot.pinned |= pin;
        // It was the first that was taken.
        state.workspace(workspace)?.snapshots.insert(0, snapshot.clone());
        Ok(snapshot)
    }

    fn warnings(&self, _: &Peer, _: &WorkspaceId, snapshot: &SnapshotId) -> Result<Vec<Warning>> {
        drop(self.enter("warnings", snapshot)?);
        Ok(vec![Warning { path: RelPath::new(b"locked").unwrap(), kind: WarningKind::Unreadable }])
    }

    fn collect(&self, budget: u64) -> Result<bool> {
        Ok(self.enter("collect", budget)?.collections.pop_front().unwrap_or(false))
    }

    fn check(&self, read_data: bool) -> Result<CheckReport> {
        drop(self.enter("check", read_data)?);
        Ok(CheckReport { snapshots: 7, ..CheckReport::default() })
    }

    fn usage(&self) -> Result<FsUsage> {
        Ok(self.enter("usage", "")?.usage)
    }

    fn size(&self) -> Result<StoreSize> {
        drop(self.enter("size", "")?);
        Ok(StoreSize { packs: 5, ..StoreSize::default() })
    }
}

/// Stands in for a workspace's actor: hands every write to the test, which answers when it likes.
pub(crate) struct ProbeActor(pub(crate) mpsc::UnboundedSender<Box<dyn Any>>);

/// The writes that a probe took.
pub(crate) struct Inbox(pub(crate) mpsc::UnboundedReceiver<Box<dyn Any>>);

/// A write that waits for the test's answer.
pub(crate) struct Received<O: Operation> {
    /// The message.
    pub(crate) write: Write<O>,
    reply: oneshot::Sender<Written<O::Done>>,
}

impl Inbox {
    /// The next write, which is one of these.
    pub(crate) async fn next<O: Operation>(&mut self) -> Received<O> {
        *self.0.recv().await.unwrap().downcast().expect("another operation")
    }

    /// Whether nothing has come.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<O: Operation> Received<O> {
    /// Takes the operation, as the real actor does when its turn comes.
    pub(crate) fn begin(&self) -> O {
        self.write.ticket.begin().expect("given up")
    }

    /// Answers that it was done, and what the workspace is now.
    pub(crate) fn done(self, done: O::Done, view: Option<View>) {
        self.answer(Ok(done), view);
    }

    /// Answers.
    pub(crate) fn answer(self, result: std::result::Result<O::Done, Failure>, view: Option<View>) {
        drop(self.write);
        // Nobody may wait any more.
        let _ = self.reply.send(Written { result, view });
    }
}

impl Actor for ProbeActor {
    type Context = Context<Self>;
}

impl<O: Operation> Handler<Write<O>> for ProbeActor {
    type Result = ResponseFuture<Written<O::Done>>;

    fn handle(&mut self, write: Write<O>, _: &mut Context<Self>) -> Self::Result {
        let (reply, answer) = oneshot::channel();
        let _ = self.0.send(Box::new(Received { write, reply }));
        let unanswered = |_| Written { result: Err(RoutingError::Stopping.into()), view: None };
        Box::pin(async move { answer.await.unwrap_or_else(unanswered) })
    }
}
