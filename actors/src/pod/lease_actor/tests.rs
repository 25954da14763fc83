//! The leases, in virtual time.
