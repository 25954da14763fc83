//! The store on real directories.

mod clearing;
mod directories;
mod faults;
mod health;
mod listing;
mod recorded;
mod site;
mod talk;
mod writers;
mod writing;
