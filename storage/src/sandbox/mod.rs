//! The sandbox of an agent: layers that each stop something, and a supervisor that sets them up and ends what runs in them.
//!
//! A daemon [`launch`]es a supervisor, a process of the same program, and gives it an [`Order`] and the agent's standard
//! input, output and error. Nothing is set up in the daemon itself. The processes, each forked from the one before:
//!
//! 1. the **supervisor** ([`supervise`]), outside of everything: it makes the private home, has the sandbox made in the best
//!    way this machine allows, reports, and removes what is left;
//! 2. one that enters the namespaces and leaves at once;
//! 3. the **keeper**, the first process of the namespace of processes, outside of Landlock: it reaps, and its end is
//!    everybody's;
//! 4. first one that is confined and tries to get out (the *probe*), then the **agent**: confined, it becomes the program.
//!
//! A supervisor that is killed takes the keeper along, and a keeper its agent. Where processes have no namespace of their own,
//! both are subreapers, and end what descends from them: whichever is left kills everything.
//! ARCHITECTURE.md tells which layer stops what.

mod at_once;
mod confine;
mod copies;
mod credentials;
mod failure;
mod furnish;
mod hand_over;
mod home;
mod home_files;
mod keeper;
mod landlock;
mod launch;
mod limits;
mod link;
mod namespaces;
mod order;
mod outside;
mod places;
mod pods;
mod probe;
mod processes;
mod reopen;
mod seccomp;
mod supervise;
mod task;

pub use copies::take_copies_away;
pub use failure::Failure;
pub use home::sweep;
pub use home_files::{MAX_HOME_FILES, home_file, home_file_content};
pub use launch::{Launched, SUBCOMMAND, launch};
pub use link::Stdio;
pub use order::{
    CANCEL, HomeFile, Layer, LayerState, LeftOut, Limits, MAX_ORDER, Order, PodUser, ProbeOrder, ProbeReport,
    Program, Report,
};
pub use places::default_hidden;
pub use pods::{NOT_SERVED, Sandboxes, is_peer};
pub use probe::not_stopped;
pub use supervise::supervise;
