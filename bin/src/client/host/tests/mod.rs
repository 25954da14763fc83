//! Command lines against a socket on which the test plays the daemon.

mod exports;
mod follow;
mod main_session;
mod settings;
mod tasks;
