//! What is answered: one compact JSON object a line.
