//! Files that are replaced whole and survive power loss: temporary name, write, fsync, rename, fsync the directory.
