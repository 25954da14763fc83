//! Checks an export before its first byte is written.

use std::collections::HashSet;
use std::io;
use std::path::{Component, Path, PathBuf};

use cofferdam_protocol::pod::{
    ConflictMode, ExportItem, ExportItemStatus, ExportMode, ExportRecord, ExportStatus,
};

use super::ExportRequest;
use super::backup;
use super::content::in_words;
use super::forbidden::Forbidden;
use super::ground::Ground;
use super::names::{MOST_TRIES, Names, UNDO_DIR, below, numbered};
use super::notes::{Dirs, Notes};
use super::source::{Found, Selection, entries};
use crate::disk::Disk;
use crate::fs::Root;
use crate::path::{Name, RelPath, escape};
use crate::pod::error::{Error, Result};
use crate::pod::place::TaskPlace;
use crate::pod::sandbox::Resolved;

/// What the message of an item says until the item is settled.
pub(super) const NOT_WRITTEN: &str = "not written yet";

/// What it says while nobody can look.
pub(super) const AWAY: &str =
    "not written yet, as far as can be told: its target was not there after the sidecar had ended midway";

/// An export of which everything was checked and nothing written.
#[derive(Debug)]
pub struct ExportPlan {
    pub(super) record: ExportRecord,
    /// The files to be written, in order.
    pub(super) files: Vec<PlannedFile>,
    /// The directories that a move empties, each before those in it.
    pub(super) emptied: Vec<RelPath>,
    pub(super) notes: Notes,
    pub(super) names: Names,
    pub(super) source: Root,
    /// The innermost directory on the way to the target that is there.
    pub(super) base: Root,
    /// Where the target is beneath it.
    pub(super) target: RelPath,
    pub(super) forbidden: Forbidden,
}

/// A file that is to be written.
#[derive(Clone, Debug)]
pub(super) struct PlannedFile {
    /// Its place among the items.
    pub item: usize,
    /// Below the task's directory.
    pub from: RelPath,
    /// The directory it goes to, beneath the base.
    pub dir: RelPath,
    /// What it is to be called.
    pub name: Name,
    /// The number that its name gets; it may get a higher one.
    pub number: u32,
    /// What to do about a file in the way.
    pub conflict: ConflictMode,
    pub size: u64,
}

/// Checks a request: entries, target, caps.
pub fn plan(disk: &Disk, request: ExportRequest) -> Result<ExportPlan> {
    // What makes no sense is said first, then what is wrong with the target, then what is wrong with the entries.
    shapes(&request.entries)?;
    let target = Target::new(&request)?;
    let place = request.place.as_ref();
    let gone =
        || Error::FileNotFound("the task's directory is not there; nothing can be exported".to_owned());
    let place = place.ok_or_else(gone)?;
    let entries = entries(&request.entries)?;
    let source = place.open()?.ok_or_else(gone)?;
    let selection = Selection::new(&source, &entries)?;

    let mut notes = Notes {
        base: text(&target.base)?,
        root: place.root.as_deref().map(text).transpose()?,
        task_dir: text(&place.dir)?,
        ..Notes::default()
    };
    // Whoever has put a link into its path since it was looked at leads nowhere.
    let base = Root::open_without_links(&target.base)
        .map_err(|error| Error::BadRequest(format!("the target cannot be opened: {}", in_words(&error))))?;
    target.forbidden.enter(&base).map_err(|error| Error::TargetInsideSandbox(error.to_string()))?;
    let target_dir = match target.below.is_root() {
        true => text(&target.base)?,
        false => text(&target.base.join(target.below.as_path()))?,
    };
    let names = Names::of(&request.id);
    names.backups().map_err(|_| Error::BadRequest("the export has an impossible id".to_owned()))?;

    let mut layout = Layout::new(&request, &target);
    for found in &selection.found {
        layout.add(found, &place.dir, Path::new(&target_dir));
    }
    let Layout { items, files, .. } = layout;

    let mut ground =
        Ground::new(disk, Root::held(&base).map_err(held)?, target.base, Dirs::new(), Forbidden::default());
    let mut dirs = HashSet::new();
    let mut known = HashSet::new();
    for file in &files {
        let overwrites = file.conflict == ConflictMode::Overwrite;
        if !known.insert((&file.dir, overwrites)) {
            continue;
        }
        dirs.insert(file.dir.clone());
        if overwrites {
            let backup = backup::place(&names, &target.below, &file.dir.join(&file.name));
            dirs.extend(backup.and_then(|path| Some(path.split()?.0)));
        }
    }
    dirs.iter().for_each(|dir| ground.foresee(dir));
    notes.target = ground.dirs;

    let record = ExportRecord {
        id: request.id,
        task_id: request.task,
        label: request.label,
        at: request.at,
        target_dir,
        mode: request.mode,
        conflict: request.conflict,
        status: ExportStatus::Running,
        undone_at: 0,
        legacy: false,
        items,
        items_total: None,
        items_truncated: false,
    };
    let emptied = if request.mode == ExportMode::Move { selection.dirs } else { Vec::new() };
    let forbidden = target.forbidden;
    Ok(ExportPlan { record, files, emptied, notes, names, source, base, target: target.below, forbidden })
}

/// What can be said of the entries without looking at a disk, except where they lead.
fn shapes(texts: &[String]) -> Result<()> {
    match entries(texts) {
        Err(error @ Error::BadRequest(_)) => Err(error),
        _ => Ok(()),
    }
}

fn held(error: io::Error) -> Error {
    Error::io("hold the target", error)
}

fn text(path: &Path) -> Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Error::BadRequest("the target's path is not Unicode; choose another one".to_owned()))
}

/// Where an export goes.
struct Target {
    /// A directory that is there, without a link in its path.
    base: PathBuf,
    /// The target beneath it.
    below: RelPath,
    /// The sandboxes, beneath the base where they are: paths that no file may lie in.
    sandboxes: Vec<PathBuf>,
    forbidden: Forbidden,
}

impl Target {
    /// Checks where a request's target leads.
    fn new(request: &ExportRequest) -> Result<Self> {
        let path = &request.target_dir;
        let bad = |why: String| Error::BadRequest(format!("{path:?} cannot be the target: {why}"));
        if !path.is_absolute() {
            return Err(bad("it is not an absolute path".to_owned()));
        }
        let resolved = Resolved::new(path).map_err(|error| bad(error.to_string()))?;
        // What `..` means below a directory that is not there nobody can say.
        let is_up = |at: &Path| at.components().next_back() == Some(Component::ParentDir);
        if path.ancestors().any(|at| is_up(at) && !at.exists()) {
            return Err(bad("a directory before `..` is not there".to_owned()));
        }
        let names = resolved.missing.iter().map(|name| Name::new(name.as_encoded_bytes()));
        let names = names.collect::<std::result::Result<Vec<_>, _>>();
        let names = names.map_err(|_| bad("a name in it is too long".to_owned()))?;

        let sandboxes = sandboxes(request.place.as_ref(), request.current_root.as_deref());
        let forbidden = Forbidden::new(&sandboxes, &request.own_dirs, &request.own_files);
        let lies_in = |dir: &PathBuf| resolved.path().starts_with(dir) || path.starts_with(dir);
        if sandboxes.iter().any(lies_in) || resolved.existing.ancestors().any(|dir| forbidden.is(dir)) {
            return Err(Error::TargetInsideSandbox(format!(
                "{path:?} lies in a sandbox; choose a directory outside of it"
            )));
        }
        if resolved.existing.ancestors().any(|dir| forbidden.is_own(dir)) {
            return Err(bad("Cofferdam keeps its own files there; choose another directory".to_owned()));
        }
        Ok(Self { base: resolved.existing, below: names.iter().collect(), sandboxes, forbidden })
    }
}

/// The directories that nothing may be exported to, as they are called and as they are without links.
fn sandboxes(place: Option<&TaskPlace>, current: Option<&Path>) -> Vec<PathBuf> {
    let named = place.into_iter().flat_map(|place| [place.root.as_deref(), Some(place.dir.as_path())]);
    let named: Vec<&Path> = named.chain([current]).flatten().collect();
    let resolved = named.iter().filter_map(|path| Some(Resolved::new(path).ok()?.path()));
    resolved.chain(named.iter().map(|path| path.to_path_buf())).collect()
}

/// Which file goes where.
struct Layout<'a> {
    conflict: ConflictMode,
    target: &'a Target,
    /// Paths below the target that a file of this export takes.
    taken: HashSet<RelPath>,
    items: Vec<ExportItem>,
    files: Vec<PlannedFile>,
}

impl<'a> Layout<'a> {
    fn new(request: &ExportRequest, target: &'a Target) -> Self {
        let conflict = request.conflict;
        Self { conflict, target, taken: HashSet::new(), items: Vec::new(), files: Vec::new() }
    }

    fn add(&mut self, found: &Found, task_dir: &Path, target_dir: &Path) {
        let mut item = ExportItem {
            status: ExportItemStatus::Fail,
            src: shown(task_dir, &found.from),
            dst: shown(target_dir, &found.to),
            bytes: found.size,
            hash: String::new(),
            existed: false,
            backup_path: String::new(),
            message: NOT_WRITTEN.to_owned(),
        };
        match self.place(found) {
            Ok((to, number, conflict)) => {
                if number > 0 {
                    item.message = format!("{NOT_WRITTEN}; {RENAMED}");
                }
                let planned = below(&self.target.below, &to);
                if let (Some((dir, _)), Some((_, name))) = (planned.split(), found.to.split()) {
                    item.dst = shown(target_dir, &to);
                    let file = PlannedFile {
                        item: self.items.len(),
                        from: found.from.clone(),
                        dir,
                        name,
                        number,
                        conflict,
                        size: found.size,
                    };
                    self.files.push(file);
                    self.taken.insert(to);
                }
            }
            Err((status, message)) => {
                item.status = status;
                item.message = message;
            }
        }
        self.items.push(item);
    }

    /// Where a file goes below the target; or else why it does not.
    fn place(
        &self,
        found: &Found,
    ) -> std::result::Result<(RelPath, u32, ConflictMode), (ExportItemStatus, String)> {
        if let Some(left) = &found.left {
            return Err(left.clone());
        }
        // Anywhere: a directory below the target can have been the target of another export.
        let is_undo = |name: Name| name.as_bytes().eq_ignore_ascii_case(UNDO_DIR.as_bytes());
        if found.to.components().any(is_undo) {
            let why = format!("{UNDO_DIR} is where backups are kept");
            return Err((ExportItemStatus::Skip, why));
        }
        let path = self.target.base.join(below(&self.target.below, &found.to).as_path());
        if self.target.sandboxes.iter().any(|dir| path.starts_with(dir)) {
            return Err((ExportItemStatus::Fail, "it would lie in the sandbox".to_owned()));
        }
        if !self.taken.contains(&found.to) {
            return Ok((found.to.clone(), 0, self.conflict));
        }
        if self.conflict == ConflictMode::Skip {
            let why = "another file of this export has the same name".to_owned();
            return Err((ExportItemStatus::Skip, why));
        }
        let free = found.to.split().and_then(|(dir, name)| {
            (1..=MOST_TRIES).find_map(|number| {
                let to = dir.join(&numbered(&name, number).ok()?);
                (!self.taken.contains(&to)).then_some((to, number, ConflictMode::Rename))
            })
        });
        free.ok_or_else(|| (ExportItemStatus::Fail, "no name is free for it".to_owned()))
    }
}

/// What the message of an item says that got another name since two of the export had the same.
pub(super) const RENAMED: &str = "another file of this export has the same name, so it was renamed";

/// A path as an item shows it.
fn shown(dir: &Path, path: &RelPath) -> String {
    let text = match std::str::from_utf8(path.as_bytes()) {
        Ok(text) => text.to_owned(),
        Err(_) => escape(path.as_bytes()),
    };
    format!("{}/{text}", dir.to_string_lossy().trim_end_matches('/'))
}
