//! Which snapshot a client means: the one of exactly that name, else, unless it says that it gave a full name, the only one whose
//! name begins so.

use cofferdam_storage::ckpt::Snapshot;

use super::failure::RoutingError;

/// The snapshot that `reference` names, which is a full name if it is `exact`.
pub(crate) fn find<'a>(
    snapshots: &'a [Snapshot],
    reference: &str,
    exact: bool,
) -> Result<&'a Snapshot, RoutingError> {
    match *candidates(snapshots, reference, exact) {
        [] => Err(RoutingError::SnapshotNotFound(reference.to_owned())),
        [one] => Ok(one),
        ref several => {
            Err(RoutingError::AmbiguousPrefix { prefix: reference.to_owned(), matches: several.len() })
        }
    }
}

/// The snapshot of exactly that name, else all whose names begin so, or none if it is `exact`.
pub(crate) fn candidates<'a>(snapshots: &'a [Snapshot], reference: &str, exact: bool) -> Vec<&'a Snapshot> {
    match snapshots.iter().find(|snapshot| snapshot.id.as_str() == reference) {
        Some(named) => vec![named],
        None if exact => Vec::new(),
        None => snapshots.iter().filter(|snapshot| snapshot.id.as_str().starts_with(reference)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ckpt::testing::snapshot;

    #[track_caller]
    fn check(ids: &[&str], reference: &str, expected: Result<&str, &str>) {
        let snapshots: Vec<Snapshot> = ids.iter().map(|id| snapshot(id)).collect();
        let found = find(&snapshots, reference, false);
        let found = found.map(|snapshot| snapshot.id.as_str()).map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    #[test]
    fn an_exact_name_wins_over_longer_ones() {
        check(&["ab", "a", "abc"], "a", Ok("a"));
    }

    #[test]
    fn a_prefix_names_a_snapshot_only_if_it_is_the_only_one() {
        check(&["msg1-step0", "msg2-step0"], "msg2", Ok("msg2-step0"));
        check(&["msg1-step0", "msg2-step0"], "msg", Err("ambiguous snapshot prefix 'msg': 2 matches"));
        check(&["msg1-step0"], "step", Err("snapshot not found: step"));
    }

    #[test]
    fn a_full_name_names_no_other_snapshot() {
        let snapshots = ["step-10", "step-2"].map(snapshot);
        let found = |reference| find(&snapshots, reference, true).map(|snapshot| snapshot.id.as_str());
        assert_eq!(found("step-10").unwrap(), "step-10");
        assert_eq!(found("step-1").unwrap_err().to_string(), "snapshot not found: step-1");
        assert!(found("").is_err());
    }

    #[test]
    fn the_empty_text_begins_every_name() {
        check(&["only"], "", Ok("only"));
        check(&["one", "two"], "", Err("ambiguous snapshot prefix '': 2 matches"));
        check(&[], "", Err("snapshot not found: "));
    }
}
