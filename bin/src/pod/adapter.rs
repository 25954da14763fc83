//! The sidecar's life: reads, translates, and ends in time.
