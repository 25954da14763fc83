//! What the panel of the contract's first client offered, and what this one has beside it: a file for each page.
//!
//! | what it offered | where it is tried |
//! |---|---|
//! | sections, message for a moment, main session or that there is none, banners, polling, errors with a way out | `frame` |
//! | cards with status, times, last text, error, view, cancel and clean up | `board` |
//! | description, subdirectory, when a task cannot be started, and where one gets | `new_task` |
//! | chips, directory, error, notes, tools, conversation, stop, return, clean-up | `task` |
//! | files, preview, export in two steps, history, undo | `exports` |
//! | configuration | `settings` |
//! | what the predecessor left | `predecessor` |

mod board;
mod checkpoints;
mod dialogs;
mod exports;
mod frame;
mod new_task;
mod predecessor;
mod sessions;
mod settings;
mod task;

use std::fs;

use cofferdam_tests::files;
use cofferdam_tests::program::LineProgram;

use super::*;

/// The next line that a program prints.
fn next(program: &mut LineProgram) -> String {
    String::from_utf8(program.next_line().unwrap()).unwrap()
}

/// A client that stands for a main session which works there.
#[track_caller]
pub(super) fn attached(site: &HostSite, session: &str, cwd: &Path) -> LineProgram {
    let mut client = site.spawn(&["main", "attach", session, "--cwd", cwd.to_str().unwrap()]);
    assert!(next(&mut client).contains("Attached"));
    client
}

/// Has the page's answers to these requests be what `with` makes of them: an expression of `document`, the answer that came.
pub(super) fn alter(browser: &Browser, requests: &str, with: &str) {
    browser.script(&format!(
        "globalThis.real ??= globalThis.fetch;
         globalThis.fetch = async (...rest) => {{
             const answer = await real(...rest);
             if (!String(rest[1]?.body ?? rest[0]).includes({})) return answer;
             const document = await answer.json();
             return new Response(JSON.stringify({with}));
         }};",
        json!(requests)
    ));
}
