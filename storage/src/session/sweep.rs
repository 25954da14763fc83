//! Temporary files of writers that died.
