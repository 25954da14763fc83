//! The memory for large messages: what all connections together have of it, and of that each stranger a share.

use tokio::sync::{Semaphore, SemaphorePermit};

/// An amount of room.
pub(super) struct Space {
    /// Large requests.
    requests: Semaphore,
    /// Large answers, in MiB.
    answers: Semaphore,
}

impl Space {
    /// Room for so many large requests and so many MiB of large answers.
    pub(super) fn new(requests: usize, answers: usize) -> Self {
        Self { requests: Semaphore::new(requests), answers: Semaphore::new(answers) }
    }
}

/// What one connection may use.
#[derive(Clone, Copy)]
pub(super) struct Room<'a> {
    /// What all connections together have.
    pub(super) all: &'a Space,
    /// What all connections of its user may have of that; `None` where they may have everything.
    pub(super) share: Option<&'a Space>,
}

/// Room that is taken, until dropped.
pub(super) struct Held<'a> {
    _share: Option<SemaphorePermit<'a>>,
    _all: SemaphorePermit<'a>,
}

/// There is no room now.
#[derive(Debug)]
pub(super) struct NoRoom;

impl<'a> Room<'a> {
    /// Room for one large request, as soon as there is some. The user's share comes first: whoever waits for that
    /// must not stand in the queue of all.
    pub(super) async fn for_request(&self) -> Option<Held<'a>> {
        let share = match self.share {
            Some(share) => Some(share.requests.acquire().await.ok()?),
            None => None,
        };
        Some(Held { _share: share, _all: self.all.requests.acquire().await.ok()? })
    }

    /// Room for an answer of so many bytes, if there is some now.
    pub(super) fn for_answer(&self, bytes: usize) -> Result<Held<'a>, NoRoom> {
        let mib = u32::try_from(bytes.div_ceil(1 << 20)).unwrap_or(u32::MAX);
        let take = |space: &'a Space| space.answers.try_acquire_many(mib).map_err(|_| NoRoom);
        Ok(Held { _share: self.share.map(take).transpose()?, _all: take(self.all)? })
    }
}
