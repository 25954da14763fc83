//! The bytes of one fixed example of each type. The format is frozen: these never change.
