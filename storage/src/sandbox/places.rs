//! Which files a sandbox sees and may write, with links resolved.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use cofferdam_protocol::pod::SandboxMode;

use super::failure::{Doing, Failure, Result};
use super::order::Order;
use super::task::Task;

/// The places of a sandbox. Paths are absolute and without links.
#[derive(Debug)]
pub(super) struct Places {
    /// The task's directory. Its path is among those that are shown or writable; what is meant is what is held.
    pub(super) task: Rc<Task>,
    /// The sandbox's own directory.
    pub(super) private: PathBuf,
    /// The program's home; it may be in that.
    pub(super) home: PathBuf,
    /// What cannot be seen; none lies in another.
    pub(super) hidden: Vec<PathBuf>,
    /// What can be read, wherever it lies.
    pub(super) shown: Vec<PathBuf>,
    /// What can be written.
    pub(super) writable: Vec<PathBuf>,
}

/// What is the home of some users of the system, and holds what every program needs.
const SYSTEM: [&str; 6] = ["/", "/bin", "/sbin", "/usr/bin", "/usr/sbin", "/dev"];

/// What holds nothing for a task, and much for others: our own state, other tasks, the user's home with its keys, and what
/// is kept for the user's session. `home` is the user's own, as `HOME` says; where the system knows another one, that is hidden,
/// too, by every supervisor.
pub fn default_hidden(state: &Path, sandbox_root: &Path, home: Option<&Path>, uid: u32) -> Vec<PathBuf> {
    let session = PathBuf::from(format!("/run/user/{uid}"));
    let home = home.filter(|home| *home != Path::new("/")).map(Path::to_owned);
    [state.to_owned(), sandbox_root.to_owned(), session].into_iter().chain(home).collect()
}

impl Places {
    /// Resolves the places of an order. What is to be hidden or shown and is not there is left out. `user_home` is where the
    /// user's keys are, whatever the order says. What is taken from the user's home is shown there, too, unless it was `copied`.
    pub(super) fn of(
        order: &Order,
        task: Rc<Task>,
        (private, home): (&Path, &Path),
        user_home: Option<PathBuf>,
        copied: bool,
    ) -> Result<Self> {
        let (task_dir, root) = (task.path().to_owned(), task.root().to_owned());
        let (private, home) = (resolve(private)?, resolve(home)?);
        let linked = order.real_home.iter().filter(|_| !copied);
        let from_home = linked.flat_map(|home| order.from_home.iter().map(move |path| home.join(path)));
        let mut shown: Vec<_> = order.readable.iter().cloned().chain(from_home).filter_map(there).collect();
        let mut writable = vec![private.clone(), home.clone()];
        match order.mode {
            SandboxMode::WorkspaceWrite => {
                writable.push(task_dir.clone());
                writable.extend(order.writable.iter().cloned().filter_map(there));
            }
            SandboxMode::ReadOnly => shown.push(task_dir.clone()),
        }
        let user_home =
            user_home.and_then(there).filter(|home| !SYSTEM.iter().any(|dir| home == Path::new(dir)));
        let hidden: Vec<_> =
            order.hidden.iter().cloned().filter_map(there).chain([root]).chain(user_home).collect();
        if let Some(all) = hidden.iter().find(|path| path.parent().is_none() || task_dir == **path) {
            return Err(Failure::refused(
                "there is no sandbox for this task",
                format!("{} cannot be hidden", all.display()),
            ));
        }
        let hidden = outermost(hidden);
        let (shown, writable) = (outermost(shown), outermost(writable));
        Ok(Self { task, private, home, hidden, shown, writable })
    }

    /// Everything that is named, for what must not be covered by something else.
    pub(super) fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.hidden.iter().chain(&self.shown).chain(&self.writable)
    }
}

fn resolve(path: &Path) -> Result<PathBuf> {
    if !path.is_absolute() {
        return Err(Failure::refused(
            "there is no such sandbox",
            format!("{} is not an absolute path", path.display()),
        ));
    }
    std::fs::canonicalize(path).doing(path.display())
}

fn there(path: PathBuf) -> Option<PathBuf> {
    if !path.is_absolute() {
        return None;
    }
    let found: io::Result<PathBuf> = std::fs::canonicalize(path);
    found.ok()
}

/// Without what lies in another one.
fn outermost(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort();
    paths.dedup_by(|later, earlier| later.starts_with(earlier));
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_places_in_each_other_the_outer_one_stays() {
        let paths = ["/a/b", "/a/bc", "/a/b/c", "/d", "/d"].map(PathBuf::from).to_vec();
        assert_eq!(outermost(paths), ["/a/b", "/a/bc", "/d"].map(PathBuf::from));
    }

    #[test]
    fn the_home_that_the_system_knows_is_hidden_too_unless_every_program_needs_it() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let at = |name: &str| dir.join(name);
        for made in ["root/task", "private", "named", "known"] {
            cofferdam_tests::files::mkdir(at(made));
        }
        let order = serde_json::json!({
            "taskDir": at("root/task"), "sandboxRoot": at("root"), "mode": "workspace-write",
            "privateParent": at("private"), "hidden": [at("named")],
        });
        let order: Order = serde_json::from_value(order).unwrap();
        let task = Rc::new(Task::hold(&order).unwrap());
        let hidden = |home: PathBuf| {
            let own = (at("private"), at("private"));
            Places::of(&order, task.clone(), (&own.0, &own.1), Some(home), false).unwrap().hidden
        };
        assert_eq!(hidden(at("known")), [at("known"), at("named"), at("root")]);
        for other in ["/", "/bin", "/usr/sbin", "/nonexistent"] {
            assert_eq!(hidden(other.into()), [at("named"), at("root")], "{other}");
        }
    }

    #[test]
    fn a_home_that_is_everything_is_not_hidden() {
        let hidden = default_hidden("/s".as_ref(), "/r".as_ref(), Some("/".as_ref()), 1);
        assert_eq!(hidden, ["/s", "/r", "/run/user/1"].map(PathBuf::from));
    }
}
