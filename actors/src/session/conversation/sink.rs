//! Where a conversation's lines are put.

use std::future::Future;
use std::pin::Pin;

use cofferdam_protocol::session::headless::Output;

/// Takes lines, in order.
pub trait OutputSink: Send + Sync + 'static {
    /// Takes a line, without waiting.
    fn put(&self, line: &Output);

    /// Waits until there is room for further lines. Whoever puts many asks between them.
    fn room(&self) -> Pin<Box<dyn Future<Output = ()> + '_>>;
}
