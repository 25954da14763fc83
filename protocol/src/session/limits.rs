//! Every bound of the contract. Sizes are bytes of UTF-8 unless a name says otherwise.

/// The most of a request on stdin.
pub const REQUEST: usize = 1 << 20;
/// The most of a response, its newline included.
pub const RESPONSE: usize = 1 << 20;
/// The most of a session's file, read or written.
pub const SESSION_FILE: u64 = 32 << 20;
/// Rows of a list page if the request does not say.
pub const LIST_PAGE_DEFAULT: usize = 20;
/// The most rows of a list page.
pub const LIST_PAGE: usize = 100;
/// The most ids of a page of a clear-all plan.
pub const PLAN_PAGE: usize = 4096;
/// The most ids of a clear request; also the most protected ids.
pub const IDS: usize = 128;
/// The most of a model's name in a summary.
pub const MODEL: usize = 256;
/// The most of a workspace's path in a summary.
pub const WORKSPACE: usize = 4096;
/// The most of an error's message.
pub const MESSAGE: usize = 2048;
/// The most of an id that was skipped.
pub const SKIPPED_ID: usize = 128;
/// The most characters of a first prompt.
pub const PROMPT_CHARS: usize = 160;
/// The most of a compaction's summary that is used.
pub const COMPACTION_SUMMARY: usize = 32 << 10;
/// From what age on a temporary file was left by a writer that died.
pub const STALE_TEMPORARY: std::time::Duration = std::time::Duration::from_secs(3600);
