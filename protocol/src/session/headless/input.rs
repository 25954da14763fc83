//! What a client sends: one JSON object a line.
