//! Rights on files. What is not granted is refused: reading everywhere but in what is hidden, writing in a few places.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath,
    RestrictionStatus, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fs::{FileType, Mode, OFlags};

use super::failure::{Doing, Failure, Result};
use super::namespaces::TERMINALS;
use super::task::Task;

/// The oldest that will do: before it a file that cannot be written can still be emptied.
const OLDEST: ABI = ABI::V3;
/// The newest whose rights are known here.
const NEWEST: ABI = ABI::V9;

/// Where devices are. Whoever is in the group of one can read keys as they are typed, or a whole disk.
const DEV: &str = "/dev";
/// What in it are files.
const DEV_FILES: &str = "/dev/shm";
/// Devices that programs write to and that keep nothing.
const DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx", "/dev/random", "/dev/urandom"];

/// What is granted. Paths are absolute, without links.
#[derive(Debug)]
pub(super) struct Access<'a> {
    /// The task's directory; its path, among the others, means what is held.
    pub(super) task: &'a Task,
    /// Whether files are seen in a view of the sandbox's own: nothing is there that is not for it, and no terminal but its own.
    pub(super) own_view: bool,
    /// What cannot be read; nothing in a view of its own.
    pub(super) hidden: Vec<PathBuf>,
    /// What can be read though it lies in something hidden.
    pub(super) shown: Vec<PathBuf>,
    /// What can be written, and read.
    pub(super) writable: Vec<PathBuf>,
    /// Whether signals and abstract sockets stay inside, where the kernel can do that.
    pub(super) scopes: bool,
}

/// What has been enforced.
#[derive(Clone, Copy, Debug)]
pub(super) struct Enforced {
    /// The version of Landlock.
    pub(super) abi: u32,
    /// Whether signals and abstract sockets stay inside.
    pub(super) scopes: bool,
}

/// Collects the rights. Still with the rights of whoever sets the sandbox up, who can see more.
pub(super) fn collect(access: &Access<'_>) -> Result<RulesetCreated> {
    build(access).map_err(io::Error::other).doing(
        "Landlock cannot confine a program here; it needs Linux 6.2 or newer with Landlock among its security modules",
    )
}

fn build(access: &Access<'_>) -> std::result::Result<RulesetCreated, landlock::RulesetError> {
    let read = AccessFs::from_read(NEWEST);
    let never = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev | AccessFs::ResolveUnix;
    let write = AccessFs::from_write(NEWEST) & !never;
    let device = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(OLDEST))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?;
    if access.scopes {
        rules = rules.scope(Scope::from_all(NEWEST))?;
    }
    let mut rules = rules.create()?;
    let mut readable = Vec::new();
    collect_readable(Path::new("/"), &access.hidden, &access.shown, &mut readable);
    let terminals = access.own_view.then_some(TERMINALS);
    let devices = DEVICES.iter().copied().chain(terminals).map(PathBuf::from);
    let grants = readable.into_iter().map(|path| (path, read));
    let grants = grants.chain(access.shown.iter().map(|path| (path.clone(), read)));
    let grants = grants.chain(access.writable.iter().map(|path| (path.clone(), read | write)));
    // The way to what is hidden is not listed; here there is none.
    let listed = access.own_view.then(|| (PathBuf::from("/"), AccessFs::ReadDir.into()));
    for (path, rights) in grants.chain(devices.map(|path| (path, device | read))).chain(listed) {
        rules = match path == access.task.path() {
            true => rules.add_rule(PathBeneath::new(access.task.as_fd(), rights))?,
            false => grant(rules, &path, rights)?,
        };
    }
    Ok(rules)
}

/// Grants rights on a path and what lies below it. What cannot be looked at cannot be used either: no rule is needed.
fn grant(
    rules: RulesetCreated,
    path: &Path,
    rights: BitFlags<AccessFs>,
) -> std::result::Result<RulesetCreated, landlock::RulesetError> {
    let Some((held, kind)) = hold(path) else { return Ok(rules) };
    let rights = match kind {
        FileType::Directory => rights,
        FileType::Symlink => return Ok(rules),
        _ => rights & AccessFs::from_file(NEWEST),
    };
    rules.add_rule(PathBeneath::new(held, rights))
}

fn hold(path: &Path) -> Option<(OwnedFd, FileType)> {
    let held =
        rustix::fs::open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&held).ok()?.st_mode);
    Some((held, kind))
}

/// The largest things at or below `at` in which nothing is hidden, and which are files. A directory on the way to something
/// hidden is not among them, so it cannot be listed; what comes to be in it later cannot be read.
fn collect_readable(at: &Path, hidden: &[PathBuf], shown: &[PathBuf], found: &mut Vec<PathBuf>) {
    if hidden.iter().any(|path| path == at) {
        let inside = shown.iter().filter(|path| path.starts_with(at));
        found.extend(inside.cloned());
        return;
    }
    if at == Path::new(DEV) {
        return collect_readable(Path::new(DEV_FILES), hidden, shown, found);
    }
    if !hidden.iter().map(PathBuf::as_path).chain([Path::new(DEV)]).any(|path| path.starts_with(at)) {
        found.push(at.to_owned());
        return;
    }
    let Ok(entries) = std::fs::read_dir(at) else { return };
    for entry in entries.flatten() {
        // What a link leads to is granted where it is, if it is.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            collect_readable(&entry.path(), hidden, shown, found);
        }
    }
}

/// Puts them on this thread and all it starts.
pub(super) fn enforce(rules: RulesetCreated, scopes: bool) -> Result<Enforced> {
    let status = rules.restrict_self().map_err(io::Error::other).doing("Landlock cannot be put on")?;
    match status {
        RestrictionStatus {
            ruleset: RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced,
            no_new_privs: true,
            landlock: LandlockStatus::Available { effective_abi, kernel_abi },
            ..
        } if effective_abi >= OLDEST => Ok(Enforced {
            abi: kernel_abi.unwrap_or(effective_abi as i32) as u32,
            scopes: scopes && effective_abi >= ABI::V6,
        }),
        other => Err(Failure::refused("Landlock does not confine this process", format!("{other:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_tests::files::{mkdir, symlink, write};

    use super::*;

    #[test]
    fn what_is_readable_leaves_out_what_is_hidden_and_every_way_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        for made in ["a/secret/shown", "a/open", "b"] {
            mkdir(at(made));
        }
        write(at("a/file"), "");
        symlink(at("a/secret"), at("a/way"));
        let mut found = Vec::new();
        collect_readable(dir.path(), &[at("a/secret")], &[at("a/secret/shown")], &mut found);
        found.sort();
        assert_eq!(found, [at("a/file"), at("a/open"), at("a/secret/shown"), at("b")]);
    }

    #[test]
    fn no_device_is_readable_but_those_that_are_named() {
        for hidden in [&[][..], &["/dev/shm/secret".into()]] {
            let mut found = Vec::new();
            collect_readable(Path::new("/"), hidden, &[], &mut found);
            assert!(found.iter().any(|path| path == Path::new("/usr")), "{found:?}");
            let mut devices =
                found.iter().filter(|path| Path::new(DEV).starts_with(path) || path.starts_with(DEV));
            assert!(devices.all(|path| path.starts_with(DEV_FILES)), "{found:?}");
        }
    }
}
