//! Which snapshots clean-up removes. Pure: a list and a rule in, names out.

use cofferdam_protocol::ckpt::{CleanupRetention, SnapshotId};
use cofferdam_storage::ckpt::Snapshot;
use cofferdam_storage::clock::WallTime;

/// What Cleanup keeps if it is not told, as the existing daemon does.
pub(crate) const DEFAULT_KEEP: u32 = 20;

/// The snapshots that go, oldest first. `snapshots` are in the order in which they were taken, and that order counts,
/// not the wall clock's, which may have been set back. Pinned ones neither count nor go.
pub(crate) fn surplus(snapshots: &[Snapshot], keep: &CleanupRetention, now: WallTime) -> Vec<SnapshotId> {
    let unpinned: Vec<&Snapshot> = snapshots.iter().filter(|snapshot| !snapshot.pinned).collect();
    let going: Vec<&Snapshot> = match keep {
        CleanupRetention::Count(keep) => {
            let surplus = unpinned.len().saturating_sub(*keep as usize);
            unpinned.into_iter().take(surplus).collect()
        }
        CleanupRetention::Age(age) => {
            let oldest_kept = now.0.saturating_sub(age.seconds().saturating_mul(1_000_000_000));
            unpinned.into_iter().filter(|snapshot| snapshot.created_at.0 <= oldest_kept).collect()
        }
    };
    going.into_iter().map(|snapshot| snapshot.id.clone()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ckpt::testing::snapshot;

    fn keep(text: &str) -> CleanupRetention {
        text.parse().unwrap()
    }

    /// Snapshots `0`, `1`, … taken at these seconds, pinned where the flag says so.
    fn taken(at: &[(i64, bool)]) -> Vec<Snapshot> {
        let number = |(n, (seconds, pinned)): (usize, &(i64, bool))| Snapshot {
            pinned: *pinned,
            created_at: WallTime(seconds * 1_000_000_000),
            ..snapshot(&n.to_string())
        };
        at.iter().enumerate().map(number).collect()
    }

    #[track_caller]
    fn check(at: &[(i64, bool)], rule: &str, now: i64, expected: &[&str]) {
        let going = surplus(&taken(at), &keep(rule), WallTime(now * 1_000_000_000));
        assert_eq!(going.iter().map(SnapshotId::as_str).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_oldest_beyond_the_number_go() {
        let five = [(1, false), (2, false), (3, false), (4, false), (5, false)];
        check(&five, "2", 9, &["0", "1", "2"]);
        check(&five, "5", 9, &[]);
        check(&five, "4294967295", 9, &[]);
        check(&five, "0", 9, &["0", "1", "2", "3", "4"]);
        check(&[], "0", 9, &[]);
    }

    #[test]
    fn pinned_snapshots_neither_count_nor_go() {
        check(&[(1, true), (2, false), (3, true), (4, false), (5, false)], "2", 9, &["1"]);
        check(&[(1, true), (2, true)], "0", 9, &[]);
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_make_the_newest_snapshot_the_oldest() {
        check(&[(100, false), (200, false), (50, false)], "1", 60, &["0", "1"]);
        check(&[(100, false), (200, false), (50, false)], "10s", 60, &["2"]);
        check(&[(100, false)], "0s", 60, &[]);
    }

    #[test]
    fn an_age_removes_what_has_reached_it() {
        check(&[(0, false), (40, false), (50, true), (60, false)], "1m", 100, &["0", "1"]);
        check(&[(0, false)], "9223372036854775807s", i64::MAX / 1_000_000_000, &[]);
    }

    proptest! {
        #[test]
        fn whatever_the_clock_did_the_newest_unpinned_ones_and_all_pinned_ones_stay(
            at in prop::collection::vec((-5i64..5, any::<bool>()), 0..40),
            count in 0u32..45,
        ) {
            let all = taken(&at);
            let going = surplus(&all, &CleanupRetention::Count(count), WallTime(0));
            let unpinned: Vec<&SnapshotId> = all.iter().filter(|s| !s.pinned).map(|s| &s.id).collect();
            let stay = unpinned.len().min(count as usize);
            let (gone, kept) = unpinned.split_at(unpinned.len() - stay);
            prop_assert_eq!(going.iter().collect::<Vec<_>>(), gone.to_vec());
            prop_assert!(kept.iter().all(|id| !going.contains(id)));
        }

        #[test]
        fn a_second_clean_up_finds_nothing_and_a_stricter_rule_removes_the_same_and_more(
            at in prop::collection::vec((-5i64..5, any::<bool>()), 0..40),
            count in 0u32..45,
            age in 0i64..10,
        ) {
            let (all, now) = (taken(&at), WallTime(5_000_000_000));
            let rules = [
                (CleanupRetention::Count(count), CleanupRetention::Count(count.saturating_sub(1))),
                (keep(&format!("{}s", age + 1)), keep(&format!("{age}s"))),
            ];
            for (rule, stricter) in rules {
                let going = surplus(&all, &rule, now);
                let left: Vec<Snapshot> = all.iter().filter(|s| !going.contains(&s.id)).cloned().collect();
                prop_assert_eq!(surplus(&left, &rule, now), vec![]);
                let more = surplus(&all, &stricter, now);
                prop_assert!(going.iter().all(|id| more.contains(id)));
                // Oldest first, none twice.
                let place = |id: &SnapshotId| all.iter().position(|s| s.id == *id);
                prop_assert!(more.iter().map(place).is_sorted_by(|one, other| one < other));
            }
        }

        #[test]
        fn an_age_never_removes_a_younger_or_a_pinned_one(
            at in prop::collection::vec((-5i64..5, any::<bool>()), 0..40),
            age in 0i64..10,
            now in -5i64..5,
        ) {
            let all = taken(&at);
            let going = surplus(&all, &keep(&format!("{age}s")), WallTime(now * 1_000_000_000));
            for (snapshot, (seconds, pinned)) in all.iter().zip(&at) {
                prop_assert_eq!(going.contains(&snapshot.id), !pinned && now - seconds >= age);
            }
        }
    }
}
