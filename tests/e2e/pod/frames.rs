//! Lines and frames: what is a request, what is none, and how each is answered.
