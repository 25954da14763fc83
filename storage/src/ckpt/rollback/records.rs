//! The records of a journal's file: sound, torn by a crash while they were being written, or damaged since.

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Begin = 1,
    Switch = 2,
    Done = 3,
    Back = 4,
}

/// What a record has beside its content.
pub(super) const FRAME: usize = LEN + 1 + blake3::OUT_LEN;
const LEN: usize = size_of::<u64>();

/// A disk writes as many bytes at once, aligned in the file: a crash leaves each such piece new, or cut off, or zero.
const SECTOR: usize = 512;
/// Fewer zeros than these may as well be what was written.
const TELLING: usize = 16;

/// Length, kind, content, hash of kind and content.
pub(super) fn record(kind: Kind, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(content.len() + FRAME);
    bytes.extend_from_slice(&(content.len() as u64).to_le_bytes());
    bytes.push(kind as u8);
    bytes.extend_from_slice(content);
    let hash = blake3::hash(&bytes[LEN..]);
    bytes.extend_from_slice(hash.as_bytes());
    bytes
}

/// What stands at some place in a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    /// A record with this content, and where it ends.
    Sound(Kind, &'a [u8], usize),
    /// None, or one whose writing was cut short: it was never durable.
    Torn,
    /// One that was whole once.
    Damaged,
}

/// Looks for a record, behind which there may be more, or room for one.
pub(super) fn find(file: &[u8], at: usize) -> Found<'_> {
    let rest = file.get(at..).unwrap_or_default();
    let said = rest.first_chunk().and_then(|len| usize::try_from(u64::from_le_bytes(*len)).ok());
    let from_end = |behind: usize| rest.len().checked_sub(FRAME + behind);
    // The hash does not prove the length. Of the last record the file's own length says it as well.
    for len in [said, from_end(0), from_end(FRAME)].into_iter().flatten() {
        if let Some((kind, content)) = sound(rest, len) {
            return Found::Sound(kind, content, at + len + FRAME);
        }
    }
    let end = said.and_then(|len| len.checked_add(at)?.checked_add(FRAME)).unwrap_or(usize::MAX);
    match is_torn(file, at, end) {
        true => Found::Torn,
        false => Found::Damaged,
    }
}

/// The content of a record of this length.
fn sound(bytes: &[u8], len: usize) -> Option<(Kind, &[u8])> {
    let (hashed, rest) = bytes.get(LEN..)?.split_at_checked(len.checked_add(1)?)?;
    if blake3::hash(hashed).as_bytes() != rest.first_chunk::<{ blake3::OUT_LEN }>()? {
        return None;
    }
    let (kind, content) = hashed.split_first()?;
    let kinds = [Kind::Begin, Kind::Switch, Kind::Done, Kind::Back];
    Some((kinds.into_iter().find(|known| *known as u8 == *kind)?, content))
}

/// Whether the record at `at` that should end at `end` may never have been whole.
fn is_torn(file: &[u8], at: usize, end: usize) -> bool {
    let tail = file.get(at..).and_then(<[u8]>::last_chunk::<FRAME>);
    if tail.is_some_and(|tail| [Kind::Done, Kind::Back].iter().any(|kind| record(*kind, &[]) == tail)) {
        // It was durable before that was written.
        return false;
    }
    let has_room = tail.is_some_and(|tail| is_zero(tail));
    if end > file.len() && !has_room {
        return true;
    }
    // The room behind the last record was zero from the beginning, and is no part of this one.
    let told = if has_room && end != file.len() { file.len() - FRAME } else { file.len() };
    sectors(at, end.min(told)).any(|(from, to)| to - from >= TELLING && is_zero(&file[from..to]))
}

/// Looks for a verdict, which is written over zeros, or over the other one.
pub(super) fn verdict(file: &[u8], at: usize) -> Found<'_> {
    let mut room = [0; FRAME];
    let there = file.get(at..).unwrap_or_default();
    room.iter_mut().zip(there).for_each(|(to, from)| *to = *from);
    let [done, back] = [Kind::Done, Kind::Back].map(|kind| record(kind, &[]));
    if room == *done {
        return Found::Sound(Kind::Done, &[], at + FRAME);
    }
    if room == *back {
        return Found::Sound(Kind::Back, &[], at + FRAME);
    }
    let written = |from: usize, to: usize| {
        let (part, of) = (&room[from - at..to - at], from - at..to - at);
        is_zero(part) || *part == done[of.clone()] || *part == back[of]
    };
    match sectors(at, at + FRAME).all(|(from, to)| written(from, to)) {
        true => Found::Torn,
        false => Found::Damaged,
    }
}

/// The parts of a range that are written at once.
fn sectors(from: usize, to: usize) -> impl Iterator<Item = (usize, usize)> {
    (from / SECTOR..to.div_ceil(SECTOR))
        .map(move |nth| (from.max(nth * SECTOR), to.min((nth + 1) * SECTOR)))
        .filter(|(from, to)| from < to)
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}
