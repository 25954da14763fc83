//! The lock of one session: held by whoever writes or removes it.
