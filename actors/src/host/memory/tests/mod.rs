//! What is kept of tasks.

mod bench;
mod rewinding;
mod storing;
mod talk;
mod tidying;
