//! Giving a directory back a snapshot's tree: plan, pre-flight, journal, stage, switch, recovery.
