//! What an export could not remove when it should have.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

use super::faults::temporary;
use super::*;
use crate::disk::{FaultHook, Op};

/// A disk on which one kind of operation fails, and nothing can be removed from then on.
#[derive(Debug)]
struct Stuck(Op, AtomicBool);

impl FaultHook for Stuck {
    fn before(&self, op: Op) -> io::Result<()> {
        match self.1.fetch_or(op == self.0, Ordering::Relaxed) {
            false if op == self.0 => Err(Errno::NOSPC.into()),
            true if op == Op::Unlink => Err(Errno::IO.into()),
            _ => Ok(()),
        }
    }

    fn step(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

/// An export that failed, with a copy left.
fn stuck(op: Op) -> Lab {
    let mut lab = Lab::new();
    lab.task(&[("x", "new"), ("y", "new")]);
    lab.target(&[("y", "old")]);
    // So that it is backed up by a copy.
    files::hard_link(lab.at("target/y"), lab.at("other"));
    let request = lab.request(&["x", "y"]);
    let record = lab.run_on(&Disk::with_faults(Arc::new(Stuck(op, false.into()))), request).unwrap();
    assert_eq!(record.status, ExportStatus::Failed, "{op:?}");
    lab
}

#[test]
fn a_copy_that_could_not_be_removed_goes_at_the_next_start() {
    for op in [Op::Write, Op::SetMeta, Op::Syncfs] {
        let mut lab = stuck(op);
        let name = temporary(&lab).unwrap();
        let said = lab.store.record.as_ref().unwrap().items[0].message.clone();
        assert!(said.contains(name.trim_start_matches('/')), "{said}");
        assert!(!is_settled(&lab.kept()), "{op:?}");
        let before = lab.store.record.clone();
        lab.reconcile();
        assert!(is_settled(&lab.kept()), "{op:?}");
        assert_eq!(lab.store.record, before, "the record says the same");
        assert_eq!(temporary(&lab), None, "{op:?}");
        assert!(lab.undo().conflicts.is_empty(), "{op:?}");
        assert_eq!(lab.texts(), pairs(&[("/y", "old")]), "{op:?}");
    }
}

#[test]
fn an_undo_and_the_removal_of_the_record_take_it_along() {
    let mut lab = stuck(Op::Write);
    lab.undo();
    assert_eq!(temporary(&lab), None);
    let lab = stuck(Op::Write);
    check_discard(&lab.kept()).unwrap();
    discard(&Disk::default(), &lab.kept()).unwrap();
    assert_eq!(lab.texts(), pairs(&[("/y", "new")]));
}

#[test]
fn somebody_elses_file_of_that_name_stays() {
    let mut lab = stuck(Op::Write);
    let path = lab.at("target").join(temporary(&lab).unwrap().trim_start_matches('/'));
    files::write(lab.at("target/mine"), "mine");
    files::rename(lab.at("target/mine"), &path);
    lab.reconcile();
    assert!(is_settled(&lab.kept()));
    assert_eq!(files::read(&path), b"mine");
}
