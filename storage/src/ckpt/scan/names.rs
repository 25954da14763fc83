//! The names in one directory, sorted, in two allocations however many there are.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::OwnedFd;

use rustix::fs::{FileType, RawDir, SeekFrom};

use crate::path::Name;

/// The names in a directory; kept between directories for its memory.
#[derive(Debug, Default)]
pub(super) struct Names {
    buffer: Box<[MaybeUninit<u8>]>,
    /// NUL-terminated names, one behind the other.
    bytes: Vec<u8>,
    spans: Vec<Span>,
    /// Names no snapshot can hold: longer than [`Name::MAX`].
    pub(super) unusable: usize,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    start: u32,
    /// Without the NUL.
    len: u16,
    is_directory: bool,
}

/// One name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listed<'a> {
    /// As system calls want it.
    pub(super) name: &'a CStr,
    /// Whether the listing says it is a directory.
    pub(super) is_directory: bool,
}

impl Names {
    pub(super) fn new() -> Self {
        Self { buffer: vec![MaybeUninit::uninit(); 64 << 10].into(), ..Self::default() }
    }

    /// Lists a directory from its start.
    pub(super) fn read(&mut self, dir: &OwnedFd) -> io::Result<()> {
        self.bytes.clear();
        self.spans.clear();
        self.unusable = 0;
        rustix::fs::seek(dir, SeekFrom::Start(0))?;
        let mut listing = RawDir::new(dir, &mut self.buffer);
        while let Some(entry) = listing.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            let Ok(start) = u32::try_from(self.bytes.len()) else {
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, "4 GiB of names in one directory"));
            };
            if name.is_empty() || name.len() > Name::MAX {
                self.unusable += 1;
                continue;
            }
            let is_directory = entry.file_type() == FileType::Directory;
            self.spans.push(Span { start, len: name.len() as u16, is_directory });
            self.bytes.extend_from_slice(entry.file_name().to_bytes_with_nul());
        }
        let bytes = &self.bytes;
        let name = |span: &Span| &bytes[span.start as usize..][..span.len.into()];
        self.spans.sort_unstable_by(|one, other| name(one).cmp(name(other)));
        // A directory that changes while it is listed can show a name twice.
        self.spans.dedup_by(|one, other| name(one) == name(other));
        Ok(())
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Some of the names, in order.
    pub(super) fn range(&self, range: Range<usize>) -> impl Iterator<Item = Listed<'_>> {
        self.spans.get(range).unwrap_or_default().iter().filter_map(|span| {
            let bytes = &self.bytes[span.start as usize..][..usize::from(span.len) + 1];
            let name = CStr::from_bytes_with_nul(bytes).ok()?;
            Some(Listed { name, is_directory: span.is_directory })
        })
    }

    /// Gives back the memory of an uncommonly big directory.
    pub(super) fn shrink(&mut self) {
        self.bytes.shrink_to(256 << 10);
        self.spans.shrink_to(16 << 10);
    }
}
