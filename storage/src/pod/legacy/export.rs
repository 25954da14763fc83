//! An export of the predecessor's file as one of ours.

use cofferdam_protocol::pod::{
    ConflictMode, ExportItem, ExportItemStatus, ExportMode, ExportRecord, ExportStatus, cut,
};
use serde_json::value::RawValue;

use super::raw::{self, last_elements, number, object, word};
use super::{Notes, path, text};

/// The most files of a record.
const MAX_ITEMS: usize = 5000;
/// The longest id, in UTF-16 units.
const MAX_ID: usize = 256;

/// Reads an export. The error says why it is left out.
pub(super) fn read(raw: &RawValue, place: &str, notes: &mut Notes) -> Result<ExportRecord, String> {
    let names = ["id", "taskId", "label", "at", "targetDir", "mode", "conflict", "undoneAt", "items"];
    let Ok(Some(export)) = object(raw.get(), &names) else {
        return Err("is not an object".to_owned());
    };
    let get = |name| export.get(name);
    let id =
        get("id").filter(|id| id.get().starts_with('"')).map(|id| raw::text(Some(id))).unwrap_or_default();
    if id.is_empty() || cut(&id, MAX_ID).len() < id.len() {
        return Err("has no usable id".to_owned());
    }
    let items = items_of(get("items"), place, notes);
    let done = |item: &ExportItem| item.status != ExportItemStatus::Fail;
    Ok(ExportRecord {
        id,
        task_id: text(get("taskId")),
        label: text(get("label")),
        at: number(get("at")),
        target_dir: path(get("targetDir")),
        mode: word(get("mode")).unwrap_or(ExportMode::Copy),
        conflict: word(get("conflict")).unwrap_or(ConflictMode::Overwrite),
        status: if items.iter().any(done) { ExportStatus::Completed } else { ExportStatus::Failed },
        undone_at: number(get("undoneAt")),
        legacy: true,
        items,
        items_total: None,
        items_truncated: false,
    })
}

fn items_of(raw: Option<&RawValue>, place: &str, notes: &mut Notes) -> Vec<ExportItem> {
    let Some(raw) = raw else { return Vec::new() };
    let Some(array) = last_elements(raw, MAX_ITEMS) else {
        notes.say(place, "its items are not an array; ignored");
        return Vec::new();
    };
    let all = array.left_out + array.elements.len();
    let items: Vec<_> = array.elements.into_iter().filter_map(item).collect();
    if items.len() < all {
        notes.say(
            place,
            &format!("{} of its items are not objects, or too many; left out", all - items.len()),
        );
    }
    items
}

fn item(raw: &RawValue) -> Option<ExportItem> {
    let item = object(raw.get(), &["status", "src", "dst", "message"]).ok()??;
    let get = |name| item.get(name);
    Some(ExportItem {
        status: match word(get("status")) {
            Some(status @ (ExportItemStatus::Ok | ExportItemStatus::Skip)) => status,
            _ => ExportItemStatus::Fail,
        },
        src: path(get("src")),
        dst: path(get("dst")),
        bytes: 0,
        hash: String::new(),
        existed: false,
        backup_path: String::new(),
        message: text(get("message")),
    })
}
