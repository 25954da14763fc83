//! What waits to be printed: its order, its bounds, and what is left out of it.
