//! How the stat cache's file is divided: a head with a checksum, then a body.

use std::io::{self, Read};

use super::boot::BootId;
use crate::ckpt::format::ObjectId;
use crate::path::RelPath;

/// Which directory a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PathHash([u8; 16]);

impl PathHash {
    /// The hash of a directory's path below the root.
    pub(super) fn of(path: &RelPath) -> Self {
        Self(leading_bytes(&blake3::hash(path.as_bytes())))
    }
}

/// What a frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum FrameKind {
    /// The record of a directory.
    Record = b'R',
    /// A directory has no record any more.
    Gone = b'G',
    /// All frames before it hold.
    Commit = b'C',
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// What the frame says.
    pub(super) kind: FrameKind,
    /// About what; nothing for a commit.
    pub(super) path: PathHash,
    /// Bytes behind the head.
    pub(super) body: u32,
    /// Of head and body.
    sum: [u8; 8],
}

impl Head {
    /// Bytes of a head.
    pub(super) const LEN: usize = 1 + 16 + 4 + 8;
    /// A body is not longer.
    const LONGEST: u32 = u32::MAX - Self::LEN as u32;

    /// The head for a body; `None` if that is too long for any frame.
    pub(super) fn new(kind: FrameKind, path: PathHash, body: &[u8]) -> Option<Self> {
        u32::try_from(body.len()).ok().filter(|len| *len <= Self::LONGEST)?;
        Some(Self::of(kind, path, body))
    }

    /// The head for a body that is known to be short.
    pub(super) fn of(kind: FrameKind, path: PathHash, body: &[u8]) -> Self {
        let mut head = Self { kind, path, body: body.len() as u32, sum: [0; 8] };
        head.sum = head.sum_with(body);
        head
    }

    /// Bytes of the whole frame.
    pub(super) fn len(&self) -> u32 {
        self.body + Self::LEN as u32
    }

    /// Whether the body is the one the head was made for.
    pub(super) fn covers(&self, body: &[u8]) -> bool {
        self.sum == self.sum_with(body)
    }

    /// Appends the head.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.kind as u8);
        out.extend_from_slice(&self.path.0);
        out.extend_from_slice(&self.body.to_le_bytes());
        out.extend_from_slice(&self.sum);
    }

    /// Reads a head from its bytes.
    pub(super) fn decode(bytes: &[u8; Self::LEN]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (path, rest) = rest.split_first_chunk()?;
        let (body, rest) = rest.split_first_chunk()?;
        let head = Self {
            kind: match *kind {
                b'R' => FrameKind::Record,
                b'G' => FrameKind::Gone,
                b'C' => FrameKind::Commit,
                _ => return None,
            },
            path: PathHash(*path),
            body: u32::from_le_bytes(*body),
            sum: rest.try_into().ok()?,
        };
        (head.body <= Self::LONGEST).then_some(head)
    }

    /// Reads the next head; `None` if there is none that makes sense.
    pub(super) fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let mut bytes = [0; Self::LEN];
        from.read_exact(&mut bytes)?;
        Ok(Self::decode(&bytes))
    }

    /// Takes a frame from its bytes, with what is behind its head.
    pub(super) fn split(frame: &[u8]) -> Option<(Self, &[u8])> {
        let (head, body) = frame.split_first_chunk()?;
        Some((Self::decode(head)?, body))
    }

    /// The digest of all frames up to and including this one.
    pub(super) fn chained(&self, before: u64) -> u64 {
        before.rotate_left(1) ^ u64::from_le_bytes(self.sum)
    }

    fn sum_with(&self, body: &[u8]) -> [u8; 8] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&[self.kind as u8]).update(&self.path.0).update(&self.body.to_le_bytes()).update(body);
        leading_bytes(&hasher.finalize())
    }
}

/// What a commit says: which manifest the records belong to, in which boot that was, and the digest of all frames before
/// it, so that a frame that was lost on the way is missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Commit {
    /// The manifest.
    pub(super) base: ObjectId,
    /// The boot.
    pub(super) boot: BootId,
    /// See [`Head::chained`].
    pub(super) chain: u64,
}

impl Commit {
    /// Bytes of the body.
    pub(super) const LEN: usize = 56;
    /// What a commit's head has for a path.
    pub(super) const PATH: PathHash = PathHash([0; 16]);

    /// The body.
    pub(super) fn encode(&self) -> [u8; Self::LEN] {
        let mut body = [0; Self::LEN];
        body[..32].copy_from_slice(&self.base.0);
        body[32..48].copy_from_slice(&self.boot.0);
        body[48..].copy_from_slice(&self.chain.to_le_bytes());
        body
    }

    /// Reads the body.
    pub(super) fn decode(body: &[u8; Self::LEN]) -> Option<Self> {
        let (base, rest) = body.split_first_chunk()?;
        let (boot, chain) = rest.split_first_chunk()?;
        Some(Self {
            base: ObjectId(*base),
            boot: BootId(*boot),
            chain: u64::from_le_bytes(chain.try_into().ok()?),
        })
    }
}

fn leading_bytes<const N: usize>(hash: &blake3::Hash) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&hash.as_bytes()[..N]);
    bytes
}
