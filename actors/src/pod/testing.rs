//! What the tests of these actors share.
