//! Turns, with a provider, a tool and a store whose every step a test decides.

mod approvals;
mod bench;
mod interrupts;
mod keeping;
mod lines;
mod rounds;
