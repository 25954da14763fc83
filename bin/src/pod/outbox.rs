//! Stdout: what waits to be printed, bounded, and the thread that prints it.
