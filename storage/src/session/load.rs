//! Reading one conversation whole.

use cofferdam_protocol::session::{Envelope, SessionId};

use super::{Error, SessionStore};

impl SessionStore {
    /// The conversation, to be resumed or shown: without secrets. From the flat directory if the workspace's own has no
    /// file of that name.
    pub fn load(&self, id: &SessionId) -> Result<Envelope, Error> {
        todo!("{id}")
    }
}
