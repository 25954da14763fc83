//! Filesystems that cannot do what others can.

use std::process::Command;
use std::sync::Arc;

use cofferdam_tests::user::is_root;
use cofferdam_tests::{files, skip};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use rustix::io::Errno;

use super::*;

/// A filesystem that does not know how to exchange names, nor how to leave what stands at a name alone.
#[derive(Debug)]
struct Plain {
    renames: AtomicU64,
    operations: AtomicU64,
    dead_from: u64,
}

impl Plain {
    fn new(dead_from: u64) -> Arc<Self> {
        Arc::new(Self { renames: AtomicU64::new(0), operations: AtomicU64::new(0), dead_from })
    }
}

impl FaultHook for Plain {
    fn before(&self, op: Op) -> std::io::Result<()> {
        if self.operations.fetch_add(1, Ordering::Relaxed) >= self.dead_from {
            return Err(Errno::IO.into());
        }
        // Every rename is tried with flags first, then without.
        let with_flags = match op {
            Op::Exchange => true,
            Op::Rename => self.renames.fetch_add(1, Ordering::Relaxed).is_multiple_of(2),
            _ => false,
        };
        if with_flags { Err(Errno::INVAL.into()) } else { Ok(()) }
    }

    fn step(&self, _: &str) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn without_special_renames_every_death_is_recovered_from_too() {
    for dead_from in 0.. {
        let lab = Lab::new();
        files::write(lab.at("file"), "target");
        files::write(lab.at("turned/in"), "target");
        files::write(lab.at("back"), "target");
        basics::rest(&lab.ws(), 1_500_000_000);
        let (new, target) = (lab.tree(), lab.capture());
        files::write(lab.at("file"), "live");
        files::remove(lab.at("turned"));
        files::symlink("x", lab.at("turned"));
        files::remove(lab.at("back"));
        files::write(lab.at("extra/in"), "live");
        basics::rest(&lab.ws(), 1_600_000_000);
        let old = lab.tree();
        let hook = Plain::new(dead_from);
        let (result, _) = lab.attempt(&Disk::with_faults(hook.clone()), &target);
        let recovered = lab.recover(&Disk::with_faults(Plain::new(u64::MAX)));
        assert!(recovered.iter().all(|r| r.outcome.is_ok() && r.warnings.is_empty()), "{recovered:?}");
        lab.assert_nothing_left();
        let now = lab.tree();
        assert!(
            new.differences(&now).is_empty() || old.differences(&now).is_empty(),
            "dead from {dead_from}: {result:?}\n{:#?}\n{:#?}",
            old.differences(&now),
            new.differences(&now)
        );
        if hook.operations.load(Ordering::Relaxed) < dead_from {
            new.assert_same(&now, "rolled back");
            return;
        }
    }
}

/// A filesystem in a file, mounted at a directory; `None` if this machine cannot make one.
fn loop_mount(at: &Path, mkfs: &[&str], mib: u64, options: &str) -> Option<Unmount> {
    let image = at.with_extension("img");
    std::fs::File::create(&image).unwrap().set_len(mib << 20).unwrap();
    let succeeds = |command: &mut Command| command.output().is_ok_and(|done| done.status.success());
    let made = succeeds(Command::new(mkfs[0]).args(&mkfs[1..]).arg(&image));
    let mounted = made && succeeds(Command::new("mount").args(["-o", options]).arg(&image).arg(at));
    mounted.then(|| Unmount(at.to_owned()))
}

struct Unmount(PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = umount2(&self.0, MntFlags::MNT_DETACH);
    }
}

#[test]
fn a_subvolume_inside_is_rolled_back_through_a_staging_directory_of_its_own() {
    if !is_root() {
        skip!("only root mounts");
    }
    let lab = Lab::new();
    let Some(_mounted) = loop_mount(&lab.ws(), &["mkfs.btrfs", "-q"], 128, "loop") else {
        skip!("this machine makes no btrfs");
    };
    let volume = |name: &str| {
        let made = Command::new("btrfs").args(["subvolume", "create"]).arg(lab.at(name)).output().unwrap();
        assert!(made.status.success(), "{made:?}");
    };
    volume("vol");
    volume("vol/inner");
    for name in ["vol/file", "vol/sub/file", "vol/inner/file", "file"] {
        files::write(lab.at(name), "target");
    }
    basics::rest(&lab.ws(), 1_500_000_000);
    let (new, target) = (lab.tree(), lab.capture());
    for name in ["vol/file", "vol/inner/file", "file", "vol/extra/file"] {
        files::write(lab.at(name), "live");
    }
    files::remove(lab.at("vol/sub"));
    volume("vol/whole");
    files::write(lab.at("vol/whole/file"), "live");
    let (old, undo) = (lab.tree(), lab.capture());
    let dying = Disk::with_faults(Arc::new(faults::Faults::once(70)));
    assert!(lab.attempt(&dying, &target).0.is_err());
    old.assert_same(&lab.tree(), "taken back");
    lab.roll_back(&target);
    new.assert_same(&lab.tree(), "rolled back");
    lab.roll_back(&undo);
    old.assert_same(&lab.tree(), "undone");
}

#[test]
fn a_directory_that_ignores_case_loses_no_file() {
    if !is_root() {
        skip!("only root mounts");
    }
    let lab = Lab::new();
    let mkfs = ["mkfs.ext4", "-q", "-O", "casefold", "-E", "encoding=utf8"];
    let Some(_mounted) = loop_mount(&lab.ws(), &mkfs, 16, "loop") else {
        skip!("this machine makes no ext4 that ignores case");
    };
    files::mkdir(lab.at("folded"));
    if !Command::new("chattr")
        .arg("+F")
        .arg(lab.at("folded"))
        .output()
        .is_ok_and(|done| done.status.success())
    {
        skip!("this kernel ignores no case");
    }
    files::write(lab.at("folded/README"), "target");
    files::write(lab.at("folded/dir/file"), "target");
    let (new, target) = (lab.tree(), lab.capture());
    files::remove(lab.at("folded/README"));
    files::write(lab.at("folded/readme"), "live");
    files::rename(lab.at("folded/dir"), lab.at("folded/other"));
    files::rename(lab.at("folded/other"), lab.at("folded/DIR"));
    let (old, undo) = (lab.tree(), lab.capture());
    assert!(old.get("folded/readme").is_some() && old.get("folded/README").is_none());
    lab.roll_back(&target);
    new.assert_same(&lab.tree(), "rolled back");
    lab.roll_back(&undo);
    old.assert_same(&lab.tree(), "undone");
}

struct Overlay {
    _mounted: Unmount,
}

impl Overlay {
    /// Over what is at `at` a merged view with an upper layer in `scratch`; `None` if this machine makes none.
    fn over(at: &Path, scratch: &Path) -> Option<Self> {
        let (upper, work) = (scratch.join("upper"), scratch.join("work"));
        std::fs::create_dir(&upper).unwrap();
        std::fs::create_dir(&work).unwrap();
        let (lower, upper, work) = (at.display(), upper.display(), work.display());
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work},redirect_dir=off");
        let flags = MsFlags::empty();
        let mounted = mount(Some("overlay"), at, Some("overlay"), flags, Some(options.as_str()));
        mounted.is_ok().then(|| Self { _mounted: Unmount(at.to_owned()) })
    }
}

/// A workspace in the lower layer of an overlay, as the project in a container's image.
struct Lower {
    lab: Lab,
    target: Manifest,
    new: Tree,
    old: Tree,
    _overlay: Overlay,
    _scratch: tempfile::TempDir,
}

impl Lower {
    fn new() -> Option<Self> {
        let (lab, scratch) = (Lab::new(), tempfile::tempdir().unwrap());
        let target_dir = lab.dir.path().join("target");
        files::write(target_dir.join("file"), "target");
        files::write(target_dir.join("kept/deep/file"), "target");
        files::write(target_dir.join("turned"), "a file");
        basics::rest(&target_dir, 1_500_000_000);
        let (new, target) = (Tree::read(&target_dir), lab.capture_at(&target_dir));
        files::write(lab.at("file"), "live");
        files::write(lab.at("kept/deep/file"), "live");
        files::write(lab.at("turned/into/a/directory"), "live");
        files::write(lab.at("gone/one/two"), "live");
        files::mkdir(lab.at("gone/empty"));
        files::symlink("one", lab.at("gone/link"));
        files::chmod(lab.at("gone/one"), 0o550);
        basics::rest(&lab.ws(), 1_600_000_000);
        let overlay = Overlay::over(lab.dir.path(), scratch.path())?;
        lab.root().settle(&Disk::default()).unwrap();
        let old = lab.tree();
        Some(Self { lab, target, new, old, _overlay: overlay, _scratch: scratch })
    }
}

#[test]
fn directories_of_a_lower_layer_are_emptied_where_they_cannot_be_moved() {
    if !is_root() {
        skip!("only root mounts");
    }
    for nth in 0.. {
        let Some(scene) = Lower::new() else { skip!("overlay filesystems cannot be mounted") };
        let lab = &scene.lab;
        let faults = Arc::new(faults::Faults::once(nth));
        let (result, _) = lab.attempt(&Disk::with_faults(faults.clone()), &scene.target);
        let what = format!("operation {nth}: {result:?}");
        lab.recover(&Disk::default());
        lab.assert_nothing_left();
        match result {
            Ok(_) => scene.new.assert_same(&lab.tree(), &what),
            Err(_) => scene.old.assert_same(&lab.tree(), &what),
        }
        if faults.seen() <= nth {
            return;
        }
    }
}

#[test]
fn on_a_lower_layer_every_death_is_recovered_from_too() {
    if !is_root() {
        skip!("only root mounts");
    }
    for nth in 0.. {
        let Some(scene) = Lower::new() else { skip!("overlay filesystems cannot be mounted") };
        let lab = &scene.lab;
        let faults = Arc::new(faults::Faults::dying(nth));
        let (result, _) = lab.attempt(&Disk::with_faults(faults.clone()), &scene.target);
        let recovered = lab.recover(&Disk::default());
        let what = format!("dead at {nth}: {result:?}, {recovered:?}");
        assert!(recovered.iter().all(|r| r.outcome.is_ok() && r.warnings.is_empty()), "{what}");
        lab.assert_nothing_left();
        let now = lab.tree();
        if !scene.new.differences(&now).is_empty() {
            scene.old.assert_same(&now, &what);
        }
        if faults.seen() <= nth {
            return;
        }
    }
}
