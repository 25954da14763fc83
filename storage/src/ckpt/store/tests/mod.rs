//! What the store promises, tried out on small trees.

mod check;
mod checkpoint;
mod damage;
mod death;
mod diff;
mod exhaustion;
mod faults;
mod fixture;
mod full_disk;
mod init;
mod kept;
mod late;
mod look;
mod merging;
mod old_stores;
mod open;
mod random;
mod random_changes;
mod random_writer;
mod removal;
mod rollback;
mod trash;
