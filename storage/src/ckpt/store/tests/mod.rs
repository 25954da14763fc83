//! What the store promises, tried out on small trees.

mod checkpoint;
mod fixture;
mod init;
mod open;
