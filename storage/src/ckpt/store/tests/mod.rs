//! What the store promises, tried out on small trees.

mod fixture;
mod init;
mod open;
