//! Which snapshots Cleanup and the schedule remove, and that the space comes back.

use cofferdam_protocol::ckpt::WsCkptResponse;
use cofferdam_tests::files;
use cofferdam_tests::project::noise;
use cofferdam_tests::site::{Daemon, Site};
use cofferdam_tests::wire::{PATIENCE, ask};

use crate::site;

/// A workspace with these snapshots; those that end in `!` are pinned.
fn with_snapshots(site: &Site, daemon: &Daemon, ids: &[&str]) -> std::path::PathBuf {
    let ws = site.workspace("project");
    for id in ids {
        daemon.call(&ask::checkpoint_with(&ws, id, None, None, id.ends_with('!')));
    }
    ws
}

#[test]
fn cleanup_removes_the_oldest_that_are_not_pinned_and_says_which() {
    let cases: &[(&[&str], Option<u32>, &[&str])] = &[
        (&["a", "b", "c"], Some(3), &[]),
        (&["a", "b", "c"], Some(9), &[]),
        (&["a", "b", "c"], Some(1), &["a", "b"]),
        (&["a", "b", "c"], Some(0), &["a", "b", "c"]),
        (&["a!", "b", "c!", "d", "e"], Some(1), &["b", "d"]),
        (&["a!", "b!"], Some(0), &[]),
        (&["a", "b", "c"], None, &[]),
    ];
    for (ids, keep, expected) in cases {
        let site = site();
        let daemon = site.start();
        let ws = with_snapshots(&site, &daemon, ids);
        let removed: Vec<_> = expected.iter().map(|id| (*id).to_owned()).collect();
        let answer = daemon.call(&ask::cleanup(&ws, *keep));
        assert_eq!(answer, WsCkptResponse::CleanupOk { removed }, "{ids:?}, keep {keep:?}");
        let left: Vec<_> =
            ids.iter().filter(|id| !expected.contains(id)).map(|id| (*id).to_owned()).collect();
        assert_eq!(daemon.ids(&ws), left, "{ids:?}, keep {keep:?}");
        assert_eq!(site.check(), left.len() as u64);
    }
}

#[test]
fn cleanup_keeps_twenty_where_nothing_is_said() {
    let site = site();
    let daemon = site.start();
    let ids: Vec<_> = (0..23).map(|n| format!("s{n:02}")).collect();
    let ws = with_snapshots(&site, &daemon, &ids.iter().map(String::as_str).collect::<Vec<_>>());
    let removed = vec!["s00".to_owned(), "s01".to_owned(), "s02".to_owned()];
    assert_eq!(daemon.call(&ask::cleanup(&ws, None)), WsCkptResponse::CleanupOk { removed });
    assert_eq!(daemon.ids(&ws), ids[3..]);
}

#[test]
fn the_schedule_removes_what_the_configuration_does_not_keep() {
    let site = site();
    files::write(
        site.config(),
        "auto_cleanup = true\nauto_cleanup_keep = 2\nauto_cleanup_interval_secs = 1\n",
    );
    let daemon = site.start();
    let ws = with_snapshots(&site, &daemon, &["a!", "b", "c", "d", "e"]);
    // It comes round within a second; asking is how a client waits for it.
    let asked = std::time::Instant::now();
    while daemon.ids(&ws) != ["a!", "d", "e"] {
        assert!(asked.elapsed() < PATIENCE, "still there: {:?}", daemon.ids(&ws));
    }
    assert_eq!(site.check(), 3);
}

#[test]
fn what_is_left_after_a_removal_is_whole_although_it_shared_content() {
    let site = site();
    let daemon = site.start();
    let ws = site.path("project");
    for n in 0..8 {
        // Each shares most with the one before.
        files::write(ws.join("shared"), noise(200_000));
        files::write(ws.join(format!("part-{n}")), noise(30_000 + n));
        files::remove(ws.join(format!("part-{}", n.wrapping_sub(3))));
        daemon.checkpoint(&ws, &format!("v{n}"));
    }
    for gone in ["v0", "v3", "v4", "v6"] {
        daemon.call(&ask::delete(&ws, gone, false));
    }
    assert_eq!(site.check(), 4);
    for (n, parts) in [(1, [0, 1].as_slice()), (2, &[0, 1, 2]), (5, &[3, 4, 5]), (7, &[5, 6, 7])] {
        daemon.rollback(&ws, &format!("v{n}"));
        assert_eq!(files::read(ws.join("shared")), noise(200_000));
        for part in parts {
            assert_eq!(files::read(ws.join(format!("part-{part}"))), noise(30_000 + part), "v{n}");
        }
        assert_eq!(std::fs::read_dir(&ws).unwrap().count(), parts.len() + 1, "v{n}");
    }
    daemon.kill();
    let daemon = site.start();
    assert_eq!(daemon.ids(&ws), ["v1", "v2", "v5", "v7"]);
    assert_eq!(site.check(), 4);
}
