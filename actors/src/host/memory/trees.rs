//! Checkpoints of directories, as far as they are needed here.

use std::path::Path;

use cofferdam_storage::ckpt::{Warning, WarningKind};

use crate::Carries;
use crate::ckpt::{Ckpt, Failure, ForgetTree, KeepTree, ListKept, RewindTree};
use crate::mailbox::mailboxes;

mailboxes! {
    /// The way to whoever takes checkpoints of directories that are nobody's workspace.
    pub(in crate::host) struct Trees {
        keep: KeepTree,
        rewind: RewindTree,
        list: ListKept,
        forget: ForgetTree,
    }
}

impl From<&Ckpt> for Trees {
    fn from(ckpt: &Ckpt) -> Self {
        Self {
            keep: ckpt.recipient().clone(),
            rewind: ckpt.recipient().clone(),
            list: ckpt.recipient().clone(),
            forget: ckpt.recipient().clone(),
        }
    }
}

/// How many paths are named of those that are not in a checkpoint.
const TOLD: usize = 3;

/// What was done to a directory.
#[derive(Debug, Default)]
pub(super) struct Changed {
    /// How many paths were.
    pub(super) paths: u64,
    /// What people should know.
    pub(super) notes: Vec<String>,
}

/// Errors are texts for people.
impl Trees {
    /// The name, or one that begins with it, under which nothing is kept of any of these directories.
    pub(super) async fn free_name(&self, dirs: [&Path; 2], name: &str) -> Result<String, String> {
        let mut taken = self.names(dirs[0]).await?;
        taken.extend(self.names(dirs[1]).await?);
        let mut names = (1..).map(|n| if n == 1 { name.to_owned() } else { format!("{name}-{n}") });
        Ok(names.find(|name| !taken.contains(name)).unwrap_or_default())
    }

    /// Keeps what directories are like, under a name of which nothing is kept. Says what of it is not kept as it is.
    pub(super) async fn keep_both(&self, dirs: [&Path; 2], name: &str) -> Result<String, String> {
        let (files, agent) = tokio::join!(self.keep(dirs[0], name), self.keep(dirs[1], name));
        Ok(missing(&files?, &agent?))
    }

    /// Keeps what a directory is like.
    pub(super) async fn keep(&self, dir: &Path, name: &str) -> Result<Vec<Warning>, String> {
        self.ask(KeepTree { dir: dir.to_owned(), id: name.to_owned(), metadata: None }).await
    }

    /// Whether something is kept of both directories under a name.
    pub(super) async fn has(&self, dirs: [&Path; 2], name: &str) -> Result<bool, String> {
        let [one, other] = [self.names(dirs[0]).await?, self.names(dirs[1]).await?];
        Ok([one, other].iter().all(|names| names.iter().any(|known| known == name)))
    }

    /// Makes a directory what it was like; all of it or nothing.
    pub(super) async fn rewind(&self, dir: &Path, name: &str) -> Result<Changed, String> {
        let done = self.ask(RewindTree { dir: dir.to_owned(), to: name.to_owned() }).await?;
        let notes = done.warnings.iter().map(told).collect();
        Ok(Changed { paths: done.changed, notes })
    }

    /// Forgets all that is kept of a directory, which may be gone.
    pub(super) async fn forget(&self, dir: &Path) -> Result<(), String> {
        self.ask(ForgetTree { dir: dir.to_owned() }).await
    }

    /// The names under which something is kept of a directory.
    async fn names(&self, dir: &Path) -> Result<Vec<String>, String> {
        let kept = self.ask(ListKept { dir: dir.to_owned() }).await?;
        Ok(kept.into_iter().map(|snapshot| snapshot.id.to_string()).collect())
    }

    async fn ask<M, T>(&self, message: M) -> Result<T, String>
    where
        Self: Carries<M>,
        M: actix::Message<Result = Result<T, Failure>> + Send + 'static,
        T: Send + 'static,
    {
        match self.recipient().send(message).await {
            Ok(answer) => answer.map_err(|failure| failure.message),
            Err(_) => Err("whoever takes checkpoints is stopping".to_owned()),
        }
    }
}

/// What people are told of what is missing in a checkpoint of the task's directory and the agent's; nothing if nothing is.
pub(super) fn missing(files: &[Warning], agent: &[Warning]) -> String {
    let one = |warning: &Warning, whose: &str| {
        let what = match warning.kind {
            WarningKind::Unreadable => "could not be read",
            WarningKind::ChangedWhileRead | WarningKind::LateWrite => "kept changing while it was read",
            WarningKind::MountPoint => "is a mount, and what is in it was left out",
            WarningKind::OwnerNotRestored => "has not got its owner or its special bits",
        };
        format!("{whose}{} {what}", warning.path)
    };
    let files = files.iter().map(|warning| one(warning, ""));
    let all = files.chain(agent.iter().map(|warning| one(warning, "in the agent's own directory, ")));
    let all: Vec<String> = all.collect();
    match all.get(TOLD..).map_or(0, <[String]>::len) {
        0 => all.join("; "),
        more => format!("{}; and {more} more", all[..TOLD].join("; ")),
    }
}

/// What people are told of what could not be brought back as it was.
fn told(warning: &Warning) -> String {
    let what = match warning.kind {
        WarningKind::Unreadable => "could not be read, and was left alone",
        WarningKind::ChangedWhileRead => "kept changing while it was read",
        WarningKind::MountPoint => "is a mount, and was left alone",
        WarningKind::LateWrite => "was written to meanwhile; the newer content is kept",
        WarningKind::OwnerNotRestored => "has not got its owner or its special bits back",
    };
    format!("{} {what}", warning.path)
}
