//! The store on real directories.

mod directories;
mod health;
mod listing;
mod recorded;
mod site;
