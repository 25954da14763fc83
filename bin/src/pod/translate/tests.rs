//! Every method of the contract against the table.
