//! What the programs share that speak over standard input and output: the descriptors, the lines, the signals and the
//! threads without which nothing works.

mod descriptor;
mod input;
mod signals;
mod thread;

pub(crate) use descriptor::{Inherited, wait};
pub(crate) use input::read_lines;
pub(crate) use signals::Signals;
pub(crate) use thread::spawn;
