//! Power loss before every operation: on a filesystem that writes nothing of its own accord, its image at that moment
//! holds what was synced and nothing else.
//!
//! Once with names as far as they were synced; once with all names, but with the content of files only as far as that
//! was synced, as when something else has the filesystem write its journal.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::Mutex;

use cofferdam_tests::mount::{Mount, lacking};
use cofferdam_tests::{effort, skip, user};

use super::{MayBe, Operation, operations};
use crate::disk::{Disk, FaultHook, Op};

/// What a power loss leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    /// Names and contents that were synced.
    AllUnsynced,
    /// All names, and the contents that were synced.
    UnsyncedContents,
    /// The store on a disk of its own, so that nothing it syncs has names of the workspace written: of both disks what
    /// was synced.
    OnTwoDisks,
}

/// Copies the images before each operation.
#[derive(Debug)]
struct Imaging {
    images: Vec<PathBuf>,
    /// A file that nobody else has to do with; synced, it has all names written.
    bystander: Option<File>,
    /// How many copies there are, once it has begun.
    copies: Mutex<Option<u64>>,
}

impl Imaging {
    fn take(&self) {
        let mut copies = self.copies.lock().unwrap();
        let Some(nth) = *copies else { return };
        if let Some(file) = &self.bystander {
            file.write_all_at(&nth.to_le_bytes(), 0).unwrap();
            file.sync_all().unwrap();
        }
        for image in &self.images {
            let copied = Command::new("cp").arg("--sparse=always").args([image, &copy(image, nth)]).status();
            assert!(copied.unwrap().success());
        }
        *copies = Some(nth + 1);
    }
}

impl FaultHook for Imaging {
    fn before(&self, _: Op) -> io::Result<()> {
        self.take();
        Ok(())
    }

    fn step(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

fn copy(image: &Path, nth: u64) -> PathBuf {
    image.with_extension(nth.to_string())
}

/// Loses power before every `stride`th operation, and after the last.
fn lose_power(operation: &Operation, filesystem: &str, loss: Loss, stride: u64) {
    let dir = tempfile::tempdir().unwrap();
    let mut places = vec![dir.path().join("disk")];
    if loss == Loss::OnTwoDisks {
        places.push(dir.path().join("store"));
    }
    let disks: Vec<_> = places.iter().map(|at| Mount::idle(filesystem, at)).collect();
    let scene = operation.prepare(&places[0], places.get(1).map(PathBuf::as_path));
    let bystander =
        (loss == Loss::UnsyncedContents).then(|| File::create(places[0].join("bystander")).unwrap());
    for at in &places {
        rustix::fs::syncfs(File::open(at).unwrap()).unwrap();
    }
    let images: Vec<_> = places.iter().map(|at| at.with_extension("img")).collect();
    let hook = Arc::new(Imaging { images: images.clone(), bystander, copies: Mutex::new(None) });
    let begin = || *hook.copies.lock().unwrap() = Some(0);
    let (store, result) = operation.attempt(&scene, Disk::with_faults(hook.clone()), begin);
    result.unwrap();
    hook.take();
    let last = hook.copies.lock().unwrap().take().unwrap() - 1;
    // An open file would keep it mounted.
    drop((store, hook, disks));
    let mount = |nth: Option<u64>| -> Vec<Mount> {
        let image = |image: &PathBuf| nth.map_or_else(|| image.clone(), |nth| copy(image, nth));
        images.iter().zip(&places).map(|(one, at)| Mount::of_image(&image(one), at)).collect()
    };
    for nth in (0..last).step_by(stride as usize).chain([last]) {
        let disks = mount(Some(nth));
        let what = format!("{}, {loss:?} before operation {nth} of {last} on {filesystem}", operation.name);
        // What was acknowledged is durable.
        let may_be = if nth == last { MayBe::New } else { MayBe::Either };
        operation.ends_well(&scene, scene.place.open(), may_be, &what);
        drop(disks);
        images.iter().for_each(|image| remove(&copy(image, nth)));
    }
    let count = last.div_ceil(stride);
    let line = format!(
        "faults covered: {}: {count} of {last} power losses on {filesystem}, {loss:?}\n",
        operation.name
    );
    io::stderr().write_all(line.as_bytes()).unwrap();
    // What is left of the place is on the images.
    let _disks = mount(None);
    drop(scene);
}

#[allow(clippy::disallowed_methods, reason = "a copy of an image")]
fn remove(image: &Path) {
    std::fs::remove_file(image).unwrap();
}

/// On both filesystems, every kind of loss, before every `stride`th operation; before every one in the long mode.
fn lose_power_everywhere(operation: Operation, stride: u64) {
    if !user::is_root() {
        skip!("needs root to mount");
    }
    let stride = stride.div_ceil(effort::rounds(1));
    for filesystem in ["ext4", "btrfs"] {
        if let Some(why) = lacking(filesystem) {
            cofferdam_tests::skipped(format_args!("{why}"));
            continue;
        }
        for loss in [Loss::AllUnsynced, Loss::UnsyncedContents, Loss::OnTwoDisks] {
            lose_power(&operation, filesystem, loss, stride);
        }
    }
}

#[test]
fn a_power_loss_in_a_first_checkpoint_leaves_nothing_or_all_of_it() {
    lose_power_everywhere(operations::first_checkpoint(), 1);
}

#[test]
fn a_power_loss_in_a_checkpoint_leaves_nothing_or_all_of_it() {
    lose_power_everywhere(operations::later_checkpoint(), 1);
}

#[test]
fn a_power_loss_in_a_rollback_leaves_the_old_or_the_new_tree() {
    lose_power_everywhere(operations::rollback(), 8);
}

#[test]
fn a_power_loss_in_an_undo_leaves_the_old_or_the_new_tree() {
    lose_power_everywhere(operations::an_undo_of_one(), 16);
}

#[test]
fn a_power_loss_in_a_recovery_leaves_the_new_tree() {
    lose_power_everywhere(operations::finishing(), 8);
}

#[test]
fn a_power_loss_in_a_removal_leaves_all_or_nothing_of_it() {
    lose_power_everywhere(operations::removal(), 1);
    lose_power_everywhere(operations::forgetting(), 1);
}

#[test]
fn a_power_loss_in_a_collection_loses_nothing_that_is_needed() {
    lose_power_everywhere(operations::collection(), 3);
}
