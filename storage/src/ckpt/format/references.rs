//! What an object needs to be of use.

use super::ObjectSource;
use super::entry::{Content, EntryKind};
use super::extents::{Extent, Extents};
use super::id::{ObjectId, ObjectKind};
use super::manifest::Manifest;
use super::node::Node;
use crate::ckpt::error::Result;

/// Calls `each` for every object that an object refers to directly. Reads the object, unless its kind says that it
/// refers to none.
pub fn references(
    source: &dyn ObjectSource,
    kind: ObjectKind,
    id: &ObjectId,
    each: &mut dyn FnMut(ObjectKind, ObjectId),
) -> Result<()> {
    match kind {
        ObjectKind::Data | ObjectKind::HardLinks => {}
        ObjectKind::Extents => {
            for extent in Extents::load(source, id)?.0 {
                if let Extent::Data(_, data) = extent {
                    each(ObjectKind::Data, data);
                }
            }
        }
        ObjectKind::Node => match Node::load(source, id)? {
            Node::Inner(_, children) => {
                children.into_iter().for_each(|child| each(ObjectKind::Node, child.id));
            }
            Node::Leaf(entries) => {
                for entry in entries {
                    match entry.kind {
                        EntryKind::File { content: Content::Whole(id), .. } => each(ObjectKind::Data, id),
                        EntryKind::File { content: Content::Extents(id), .. } => {
                            each(ObjectKind::Extents, id)
                        }
                        EntryKind::Directory(Some(id)) => each(ObjectKind::Node, id),
                        EntryKind::File { content: Content::Empty | Content::Unread, .. }
                        | EntryKind::Directory(None)
                        | EntryKind::Symlink(_)
                        | EntryKind::Fifo
                        | EntryKind::Socket
                        | EntryKind::CharDevice(..)
                        | EntryKind::BlockDevice(..)
                        | EntryKind::MountPoint => {}
                    }
                }
            }
        },
        ObjectKind::Manifest => {
            let manifest = Manifest::load(source, id)?;
            each(ObjectKind::Node, manifest.root);
            manifest.hard_links.iter().for_each(|id| each(ObjectKind::HardLinks, *id));
        }
    }
    Ok(())
}
