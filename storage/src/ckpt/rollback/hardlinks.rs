//! Which names are to be names of one file, and which live file serves for them.
//!
//! A file is kept for at most one group of the target, and a group keeps at most one file: the names of the group that
//! are others' become links to it, and whatever else shared it gets a file of its own.

use std::collections::{HashMap, HashSet};

use super::plan::{Plan, Planner, same_content};
use crate::ckpt::error::{Error, Result};
use crate::ckpt::format::{Entry, HardLinks, Manifest, ObjectKind, ObjectSource};
use crate::path::RelPath;

/// Groups of new names.
#[derive(Default)]
pub(super) struct Links {
    group_of: HashMap<RelPath, usize>,
    /// The live file that serves for each group; `None` if it gets a new one.
    pub(super) kept: Vec<Option<RelPath>>,
}

impl Links {
    /// The group a path of the target belongs to, if it has to be put together anew.
    pub(super) fn group(&self, path: &RelPath) -> Option<usize> {
        self.group_of.get(path).copied()
    }

    fn add(&mut self, group: &[RelPath], kept: Option<RelPath>) {
        self.group_of.extend(group.iter().map(|path| (path.clone(), self.kept.len())));
        self.kept.push(kept);
    }
}

/// Adds to a plan what hard links need beyond the difference of the trees.
pub(super) fn resolve(planner: &mut Planner<'_>) -> Result<()> {
    let trees = planner.trees;
    let live = groups(trees.source, trees.live)?;
    let target = groups(trees.source, trees.target)?;
    let live_set: HashSet<&Vec<RelPath>> = live.iter().collect();
    let (as_before, anew): (Vec<_>, Vec<_>) = target.iter().partition(|group| live_set.contains(group));
    for group in &as_before {
        whole(planner, group)?;
    }
    let as_before: HashSet<_> = as_before.into_iter().collect();
    let apart: Vec<_> = live.iter().filter(|class| !as_before.contains(class)).collect();
    regroup(planner, &apart, &anew)
}

/// A group that is one on both sides is replaced whole or not at all.
fn whole(planner: &mut Planner<'_>, group: &[RelPath]) -> Result<()> {
    let Plan { changes, metas, .. } = &planner.plan;
    let changes = |path| changes.contains_key(path) || (planner.piecemeal && metas.contains_key(path));
    if group.iter().any(changes) {
        for path in group {
            if let (Some(old), Some(new)) = planner.entries(path)? {
                planner.replace_unvisited(path, &old, &new)?;
            }
        }
        planner.plan.links.add(group, None);
    } else {
        one_meta(planner, group);
    }
    Ok(())
}

/// Names of one file need its metadata set once.
fn one_meta(planner: &mut Planner<'_>, names: &[RelPath]) {
    let mut with = names.iter().filter(|path| planner.plan.metas.contains_key(*path));
    with.next();
    for path in with.cloned().collect::<Vec<_>>() {
        planner.plan.metas.remove(&path);
    }
}

/// Groups that are put together anew, from live classes that come apart.
fn regroup(planner: &mut Planner<'_>, apart: &[&Vec<RelPath>], anew: &[&Vec<RelPath>]) -> Result<()> {
    let class_of: HashMap<&RelPath, usize> =
        apart.iter().enumerate().flat_map(|(class, paths)| paths.iter().map(move |p| (p, class))).collect();
    let mut taken = HashSet::new();
    let mut grouped = HashSet::new();
    for group in anew {
        let mut members = Vec::with_capacity(group.len());
        for path in *group {
            members.push((path, planner.entries(path)?));
        }
        grouped.extend(group.iter());
        let kept = members.iter().find(|(path, entries)| {
            reusable(planner, entries) && class_of.get(path).is_none_or(|class| !taken.contains(class))
        });
        let kept = kept.map(|(path, _)| *path);
        let class = kept.and_then(|path| class_of.get(path));
        taken.extend(class);
        let mut stay = Vec::new();
        for (path, entries) in &members {
            let is_kept = kept == Some(*path) || (class.is_some() && class_of.get(path) == class);
            match entries {
                _ if is_kept => stay.push((*path).clone()),
                (Some(old), Some(new)) => planner.replace_unvisited(path, old, new)?,
                // It is new there, or inside a directory that is.
                _ => {}
            }
        }
        one_meta(planner, &stay);
        planner.plan.links.add(group, kept.cloned());
    }
    for (class, paths) in apart.iter().enumerate() {
        for path in paths.iter().filter(|path| !grouped.contains(path)) {
            let found = planner.entries(path)?;
            if reusable(planner, &found) && taken.insert(class) {
                continue;
            }
            if let (Some(old), Some(new)) = found {
                planner.replace_unvisited(path, &old, &new)?;
            }
        }
    }
    Ok(())
}

type Entries = (Option<Entry>, Option<Entry>);

/// Whether the live file at a name can serve for the target's. Not on an overlay: there one name of a lower layer's file
/// gets a file of its own as soon as anything of it is changed or linked, and the other names do not follow.
fn reusable(planner: &Planner<'_>, entries: &Entries) -> bool {
    match entries {
        (Some(old), Some(new)) => {
            !planner.piecemeal && same_content(&old.kind, &new.kind) && planner.owns(old)
        }
        _ => false,
    }
}

fn groups(source: &dyn ObjectSource, manifest: &Manifest) -> Result<Vec<Vec<RelPath>>> {
    let Some(id) = &manifest.hard_links else { return Ok(Vec::new()) };
    let bytes = source.get(ObjectKind::HardLinks, id)?;
    let table =
        HardLinks::decode(&bytes).map_err(|malformed| Error::Corrupt(format!("{id}: {malformed}")))?;
    Ok(table.groups)
}
