//! The flat directory of a workspace that was there before directories for each: message arrays, read and removed, never written.
