//! What ends a sidecar, and how soon.
