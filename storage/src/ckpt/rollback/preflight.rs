//! Whether a plan can be carried out completely. Finds every obstacle before anything is written.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Access, AtFlags};
use rustix::io::Errno;
use rustix::path::Arg;

use super::journal::DirState;
use super::places::{Places, under};
use super::plan::{MOUNTED, Plan, not_in_snapshot};
use super::rights::Rights;
use crate::ckpt::FileKind;
use crate::ckpt::error::{Context, Error, Obstacle, Result};
use crate::ckpt::format::{
    Content, Entry, EntryKind, Extent, Extents, ObjectId, ObjectKind, ObjectSource, Tree,
};
use crate::fs::{FileIdentity, Stat, stat_fd};
use crate::path::{Name, RelPath};

/// What the checks found out on the way.
pub(super) struct Ready {
    /// The staging directories, the root's first.
    pub(super) staging: Vec<RelPath>,
    /// Which staging directory each directory's names go through.
    pub(super) staging_of: HashMap<RelPath, usize>,
    /// Every directory that stays and is touched, or moves and has to be writable for that.
    pub(super) dirs: Vec<DirState>,
    /// Files and directories to make.
    pub(super) to_make: u64,
    /// What is inside directories that come or go whole.
    pub(super) inside: u64,
}

/// Checks everything a plan needs.
pub(super) fn check(
    plan: &Plan,
    places: &Places<'_>,
    source: &dyn ObjectSource,
    rights: &Rights,
    staging_name: &Name,
) -> Result<Ready> {
    let ready =
        Ready { staging: Vec::new(), staging_of: HashMap::new(), dirs: Vec::new(), to_make: 0, inside: 0 };
    let mut check = Check {
        plan,
        places,
        source,
        rights,
        ready,
        obstacles: plan.obstacles.clone(),
        domains: HashMap::new(),
        bytes: 0,
        missing: Vec::new(),
    };
    check.directories(staging_name)?;
    check.victims()?;
    check.objects()?;
    let full = check.space()?;
    let Check { ready, mut obstacles, missing, .. } = check;
    if let Some(first) = missing.first() {
        let count = missing.len();
        return Err(Error::Corrupt(format!("the content of {count} files is gone, {first} is the first")));
    }
    match full {
        Some(what) if obstacles.is_empty() => return Err(Error::NoSpace { what }),
        Some(why) => obstacles.push(Obstacle { path: RelPath::ROOT, why }),
        None => {}
    }
    obstacles.sort_by(|one, other| one.path.cmp(&other.path));
    obstacles.dedup();
    if obstacles.is_empty() { Ok(ready) } else { Err(Error::Preflight(obstacles)) }
}

struct Check<'a> {
    plan: &'a Plan,
    places: &'a Places<'a>,
    source: &'a dyn ObjectSource,
    rights: &'a Rights,
    ready: Ready,
    obstacles: Vec<Obstacle>,
    /// The staging directory of each filesystem beneath the one mount.
    domains: HashMap<(u32, u32), usize>,
    /// Bytes to write, holes not counted.
    bytes: u64,
    /// Files whose content the store does not have.
    missing: Vec<RelPath>,
}

const GONE: &str = "it was replaced while the rollback was being prepared; try again";
const READ_ONLY: &str = "it is read-only: its filesystem, or the subvolume that it is in";
const IMMUTABLE: &str = "it is marked immutable or append-only; chattr -i -a takes that away";

impl Check<'_> {
    /// Every directory in which names change, or which gets other metadata.
    fn directories(&mut self, staging_name: &Name) -> Result<()> {
        let plan = self.plan;
        let changing: HashSet<RelPath> = plan
            .changes
            .keys()
            .chain(plan.emptied.keys())
            .filter_map(|path| path.split().map(|(parent, _)| parent))
            .chain([RelPath::ROOT])
            .collect();
        let gets_meta = |path: &RelPath| plan.dirs.get(path).is_some_and(|meta| meta.old != meta.new);
        let touched: BTreeMap<&RelPath, bool> =
            plan.dirs.keys().chain(plan.emptied.keys()).map(|path| (path, changing.contains(path))).collect();
        for (path, changes) in touched {
            let what = || format!("look at {path}");
            let dir = match self.places.dir(path) {
                Ok(Some(dir)) => dir,
                Ok(None) => {
                    self.obstacle(path, GONE);
                    continue;
                }
                // A directory that cannot be opened has no changes inside, only its own metadata.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !changes => {
                    self.unreadable_directory(path)?;
                    continue;
                }
                Err(error) => return Err(Error::io(what(), error)),
            };
            let stat = stat_fd(&dir).context(what)?;
            let owned = self.rights.owns(stat.uid);
            if !owned && (changes || gets_meta(path)) {
                self.obstacle(path, &format!("the directory belongs to user {}; only its owner can give it its times and mode back", stat.uid));
            }
            let mut widen = false;
            if changes {
                widen = self.is_to_widen(path, &dir, owned)?;
                self.domain(path, &stat, &dir, staging_name)?;
            }
            if !changes && gets_meta(path) && is_read_only(&dir, c".") {
                self.obstacle(path, READ_ONLY);
            }
            self.flags(path, &stat, changes || gets_meta(path));
            let identity = FileIdentity::of(&dir).context(what)?;
            let (mode, mtime) = (stat.mode, stat.mtime);
            self.ready.dirs.push(DirState { path: path.clone(), identity, mode, mtime, widen });
        }
        Ok(())
    }

    /// A directory we may not open and whose mode changes.
    fn unreadable_directory(&mut self, path: &RelPath) -> Result<()> {
        let what = || format!("look at {path}");
        let Some((parent, name)) = path.split() else { return Ok(()) };
        let found = match self.places.dir(&parent).context(what)? {
            Some(dir) => self.places.stat(&*dir, &name).context(what)?,
            None => None,
        };
        match found {
            Some(stat) if stat.kind == FileKind::Directory && self.rights.owns(stat.uid) => {}
            Some(_) => self.obstacle(path, "we may not change its metadata"),
            None => self.obstacle(path, GONE),
        }
        Ok(())
    }

    /// Whether a directory of our own has to be made writable; an obstacle if it cannot be.
    fn is_to_widen(&mut self, path: &RelPath, dir: &OwnedFd, owned: bool) -> Result<bool> {
        match rustix::fs::accessat(dir, c".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS) {
            Ok(()) => Ok(false),
            Err(Errno::ACCESS) if owned => Ok(true),
            Err(Errno::ACCESS) => {
                self.obstacle(path, "the directory may not be written to");
                Ok(false)
            }
            Err(Errno::ROFS) => {
                self.obstacle(path, READ_ONLY);
                Ok(false)
            }
            // Write to an immutable directory: its flags are reported by themselves.
            Err(Errno::PERM) => Ok(false),
            Err(errno) => Err(Error::io(format!("look at {path}"), errno.into())),
        }
    }

    fn flags(&mut self, path: &RelPath, stat: &Stat, changes: bool) {
        if changes && (stat.attributes.immutable || stat.attributes.append) {
            self.obstacle(path, IMMUTABLE);
        }
    }

    /// Finds the staging directory for what changes in a directory. A rename cannot leave a filesystem, and one mount
    /// may hold several (btrfs subvolumes): each gets a staging directory, beside the first change in it.
    fn domain(&mut self, path: &RelPath, stat: &Stat, dir: &OwnedFd, staging_name: &Name) -> Result<()> {
        let next = self.ready.staging.len();
        let index = *self.domains.entry(stat.dev).or_insert(next);
        if index == next {
            let staging = path.join(staging_name);
            if self.places.stat(dir, staging_name).context(|| format!("look at {staging}"))?.is_some() {
                self.obstacle(&staging, "the name of the staging directory is taken; remove it");
            }
            self.ready.staging.push(staging);
        }
        self.ready.staging_of.insert(path.clone(), index);
        Ok(())
    }

    /// Everything that is moved out of the way, or gets other metadata in place.
    fn victims(&mut self) -> Result<()> {
        let plan = self.plan;
        for path in plan.changes.keys().chain(plan.emptied.keys()) {
            let Some((dir, stat, directory)) = self.find(path)? else { continue };
            self.flags(path, &stat, true);
            if directory.mode & 0o1000 != 0 && !self.rights.owns(directory.uid) && !self.rights.owns(stat.uid)
            {
                self.obstacle(path, "it belongs to somebody else and its directory is sticky");
            }
            let goes_whole = !plan.emptied.contains_key(path);
            if stat.kind == FileKind::Directory && goes_whole {
                self.moved_directory(path, &dir, &stat)?;
            }
        }
        for path in plan.metas.keys() {
            if let Some((dir, stat, _)) = self.find(path)? {
                self.flags(path, &stat, true);
                if path.split().is_some_and(|(_, name)| is_read_only(&dir, name.as_bytes())) {
                    self.obstacle(path, READ_ONLY);
                }
            }
        }
        Ok(())
    }

    /// What stands at a path, in which directory, and what that is like.
    fn find(&mut self, path: &RelPath) -> Result<Option<(std::rc::Rc<OwnedFd>, Stat, Stat)>> {
        let what = || format!("look at {path}");
        let Some((parent, name)) = path.split() else { return Ok(None) };
        let Some(dir) = self.places.dir(&parent).context(what)? else {
            self.obstacle(&parent, GONE);
            return Ok(None);
        };
        let Some(stat) = self.places.stat(&*dir, &name).context(what)? else { return Ok(None) };
        if stat.kind == FileKind::MountPoint {
            self.obstacle(path, MOUNTED);
            return Ok(None);
        }
        let directory = stat_fd(&dir).context(what)?;
        Ok(Some((dir, stat, directory)))
    }

    /// A directory that is moved out whole must be movable, and everything in it removable later.
    fn moved_directory(&mut self, path: &RelPath, parent: &OwnedFd, stat: &Stat) -> Result<()> {
        let what = || format!("look at {path}");
        let Some((_, name)) = path.split() else { return Ok(()) };
        let dir = crate::fs::open_for_reading(parent, name.as_bytes()).context(what)?;
        // Moving a directory touches its time on some filesystems, so it is put on record in any case.
        let widen = self.is_to_widen(path, &dir, self.rights.owns(stat.uid))?;
        let identity = FileIdentity::of(&dir).context(what)?;
        let (mode, mtime) = (stat.mode, stat.mtime);
        self.ready.dirs.push(DirState { path: path.clone(), identity, mode, mtime, widen });
        let (mut inside, mut found) = (0, Vec::new());
        let (rights, top) = (self.rights, stat.dev);
        self.places.walk(path, &mut |below, dir, name, stat| {
            inside += 1;
            let mut obstacle = |why: String| found.push(Obstacle { path: under(path, below), why });
            if stat.attributes.immutable || stat.attributes.append {
                obstacle(IMMUTABLE.to_owned());
            }
            match stat.kind {
                FileKind::MountPoint => obstacle(MOUNTED.to_owned()),
                // Only subvolumes can differ in that from what is around them.
                FileKind::Directory if stat.dev != top && is_read_only(dir, name.as_bytes()) => {
                    obstacle(READ_ONLY.to_owned());
                }
                FileKind::Directory if !rights.owns(stat.uid) => {
                    obstacle(format!("the directory belongs to user {} and could not be emptied", stat.uid));
                }
                _ => {}
            }
            Ok(true)
        })?;
        self.ready.inside += inside;
        self.obstacles.extend(found);
        Ok(())
    }

    /// Everything that has to be made: whether its objects are there, and how much it is.
    fn objects(&mut self) -> Result<()> {
        let mut ahead: Vec<(RelPath, EntryKind)> = Vec::new();
        let mut counted = HashSet::new();
        for (path, pair) in &self.plan.changes {
            let Some(new) = &pair.new else { continue };
            ahead.push((path.clone(), new.kind.clone()));
            while let Some((path, kind)) = ahead.pop() {
                self.ready.to_make += 1;
                if let Some(group) = self.plan.links.group(&path)
                    && (!counted.insert(group) || self.plan.links.kept[group].is_some())
                {
                    continue;
                }
                match kind {
                    EntryKind::Directory(Some(node)) => {
                        for entry in Tree::new(self.source, node).entries() {
                            let Entry { name, kind, .. } = self.rights.view.show(entry?);
                            if not_in_snapshot(&kind).is_none() {
                                self.ready.inside += 1;
                                ahead.push((path.join(&name), kind));
                            }
                        }
                    }
                    EntryKind::File { size, content } => {
                        if matches!(content, Content::Whole(_)) {
                            self.bytes += size;
                        }
                        self.content(&path, content)?;
                    }
                    EntryKind::CharDevice(..) | EntryKind::BlockDevice(..) if !self.rights.all() => {
                        self.obstacle(&path, "only root can make device nodes");
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn content(&mut self, path: &RelPath, content: Content) -> Result<()> {
        match content {
            Content::Empty | Content::Unread => Ok(()),
            Content::Whole(id) => self.data(path, &id),
            Content::Extents(id) => {
                if !self.source.has(&id)? {
                    self.missing.push(path.clone());
                    return Ok(());
                }
                let extents = self.source.get(ObjectKind::Extents, &id)?;
                let extents = Extents::decode(&extents)
                    .map_err(|malformed| Error::Corrupt(format!("content of {path}: {malformed}")))?;
                for extent in extents.0 {
                    if let Extent::Data(len, id) = extent {
                        self.bytes += len;
                        self.data(path, &id)?;
                    }
                }
                Ok(())
            }
        }
    }

    fn data(&mut self, path: &RelPath, id: &ObjectId) -> Result<()> {
        if !self.source.has(id)? && self.missing.last() != Some(path) {
            self.missing.push(path.clone());
        }
        Ok(())
    }

    /// What is lacking on the filesystem for everything that has to be made, if anything is.
    fn space(&self) -> Result<Option<String>> {
        if self.ready.to_make == 0 {
            return Ok(None);
        }
        let found = rustix::fs::fstatvfs(self.places.root).context(|| "ask for free space".to_owned())?;
        // Some filesystems do not say what they have; these answer with zeros.
        let (blocks, files) =
            if self.rights.all() { (found.f_bfree, found.f_ffree) } else { (found.f_bavail, found.f_favail) };
        let free = blocks.saturating_mul(found.f_frsize);
        if found.f_blocks > 0 && self.bytes > free {
            return Ok(Some(format!("the rollback needs {} bytes and {free} are free", self.bytes)));
        }
        if found.f_files > 0 && self.ready.to_make > files {
            let needed = self.ready.to_make;
            return Ok(Some(format!("the rollback needs {needed} new files and there is room for {files}")));
        }
        Ok(None)
    }

    fn obstacle(&mut self, path: &RelPath, why: &str) {
        self.obstacles.push(Obstacle { path: path.clone(), why: why.to_owned() });
    }
}

/// Whether nothing at all can be written to what stands at a name.
fn is_read_only(dir: impl AsFd, name: impl Arg) -> bool {
    let flags = AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW;
    rustix::fs::accessat(dir, name, Access::WRITE_OK, flags) == Err(Errno::ROFS)
}
