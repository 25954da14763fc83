//! Going back, and going forth again.

use std::os::unix::fs::PermissionsExt;

use cofferdam_protocol::host::WayBack::{self, Rewind, Undo};
use cofferdam_protocol::pod::PodErrorCode;
use cofferdam_tests::files;
use cofferdam_tests::mount::Mount;

use super::bench::{Bench, Seen};

/// Three turns. What there was before each, and after the last.
async fn three_turns(bench: &Bench) -> Vec<Seen> {
    let mut seen = vec![bench.see().await];
    for (turn, text) in [(1, "one"), (2, "two"), (3, "three")] {
        assert_eq!(bench.turn(turn, text).await, [""; 0]);
        seen.push(bench.see().await);
    }
    seen
}

#[actix::test]
async fn files_home_and_conversation_go_back_together_and_come_back() {
    let bench = Bench::new().await;
    let seen = three_turns(&bench).await;
    assert_eq!(
        seen[2].said,
        ["user: ask one", "assistant: answer one", "user: ask two", "assistant: answer two"]
    );
    let done = bench.rewind(2).await.unwrap();
    assert!(done.turn == 2 && done.changed >= 3 && done.notes.is_empty(), "{done:?}");
    assert_eq!(bench.see().await, seen[1]);
    // Undone, and that undone.
    for at in [3, 1, 3] {
        assert_eq!(bench.undo().await.unwrap().turn, 2);
        assert_eq!(bench.see().await, seen[at]);
    }
    // Rewound again and again, in whatever direction.
    for (turn, at) in [(3, 2), (1, 0), (2, 1), (2, 1), (3, 2)] {
        bench.rewind(turn).await.unwrap();
        assert_eq!(bench.see().await, seen[at], "{turn}");
    }
    let undone = bench.undo().await.unwrap();
    assert_eq!((undone.turn, bench.see().await), (3, seen[1].clone()));
}

#[actix::test]
async fn an_agent_that_was_brought_back_knows_no_more_than_it_knew_then() {
    let bench = Bench::new().await;
    three_turns(&bench).await;
    bench.rewind(2).await.unwrap();
    let begun = bench.begin(4, "more").await.unwrap();
    assert_eq!(begun.conversation.unwrap().messages.len(), 2);
    bench.end(crate::host::memory::Heard::new(4, Some("more"))).await;
    bench.rewind(1).await.unwrap();
    assert!(bench.begin(5, "more").await.unwrap().conversation.is_none());
    assert!(!bench.agent("conversation.json").exists());
}

#[actix::test]
async fn numbers_only_grow_and_work_that_was_done_since_is_not_lost_by_an_undo() {
    let bench = Bench::new().await;
    let seen = three_turns(&bench).await;
    bench.rewind(2).await.unwrap();
    bench.turn(4, "four").await;
    let later = bench.see().await;
    assert_eq!(later.said.last().unwrap(), "assistant: answer four");
    bench.undo().await.unwrap();
    assert_eq!(bench.see().await, seen[3]);
    bench.undo().await.unwrap();
    assert_eq!(bench.see().await, later);
    bench.rewind(4).await.unwrap();
    assert_eq!(bench.see().await, seen[1]);
    let turns = bench.turns().await;
    let rows: Vec<_> = turns.turns.iter().map(|row| (row.turn, row.asked.as_str(), row.checkpoint)).collect();
    assert_eq!(
        rows,
        [(1, "ask one", true), (2, "ask two", true), (3, "ask three", true), (4, "ask four", true)]
    );
    assert_eq!(turns.undo.map(|undo| undo.turn), Some(4));
}

/// Which turns stand, what can be undone, and which turns come back then and which are taken back.
async fn known(bench: &Bench) -> (Vec<u64>, Option<(WayBack, u64)>, [Vec<u64>; 2]) {
    let list = bench.turns().await;
    let stand = list.turns.iter().filter(|row| row.stands).map(|row| row.turn).collect();
    let undo = list.undo.as_ref().map(|undo| (undo.of, undo.turn));
    assert!(list.undo.iter().all(|undo| undo.at > 0), "{list:?}");
    (stand, undo, list.undo.map(|undo| [undo.brings, undo.takes]).unwrap_or_default())
}

#[actix::test]
async fn it_is_known_which_turns_stand_and_what_an_undo_brings_back_and_takes() {
    let bench = Bench::new().await;
    three_turns(&bench).await;
    assert_eq!(known(&bench).await, (vec![1, 2, 3], None, [vec![], vec![]]));
    assert_eq!(bench.rewind(2).await.unwrap().undid, None);
    assert_eq!(known(&bench).await, (vec![1], Some((Rewind, 2)), [vec![2, 3], vec![]]));
    assert_eq!(bench.undo().await.unwrap().undid, Some(Rewind));
    assert_eq!(known(&bench).await, (vec![1, 2, 3], Some((Undo, 2)), [vec![], vec![2, 3]]));
    assert_eq!(bench.undo().await.unwrap().undid, Some(Undo));
    assert_eq!(known(&bench).await, (vec![1], Some((Rewind, 2)), [vec![2, 3], vec![]]));
    // What was done since goes with an undo, and comes back with the undoing of it.
    bench.turn(4, "four").await;
    assert_eq!(known(&bench).await, (vec![1, 4], Some((Rewind, 2)), [vec![2, 3], vec![4]]));
    bench.undo().await.unwrap();
    assert_eq!(known(&bench).await, (vec![1, 2, 3], Some((Undo, 2)), [vec![4], vec![2, 3]]));
    // To before a turn that does not stand.
    bench.rewind(4).await.unwrap();
    assert_eq!(known(&bench).await, (vec![1], Some((Rewind, 4)), [vec![2, 3], vec![]]));
    bench.rewind(3).await.unwrap();
    assert_eq!(known(&bench).await, (vec![1, 2], Some((Rewind, 3)), [vec![], vec![2]]));
    // A turn that came to nothing, and the one in its place.
    bench.begin(5, "in vain").await.unwrap();
    bench.end(crate::host::memory::Heard::new(5, None)).await;
    bench.turn(5, "five").await;
    assert_eq!(known(&bench).await, (vec![1, 2, 5], Some((Rewind, 3)), [vec![], vec![2, 5]]));
}

#[actix::test]
async fn of_turns_from_before_it_was_written_down_what_stands_is_as_good_as_known() {
    let bench = Bench::new().await;
    three_turns(&bench).await;
    let path = bench.state("pod/turns/t.json");
    let mut turns: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    turns.as_object_mut().unwrap().remove("last").unwrap();
    for turn in turns["turns"].as_array_mut().unwrap() {
        turn.as_object_mut().unwrap().remove("after").unwrap();
    }
    std::fs::write(&path, turns.to_string()).unwrap();
    assert_eq!(known(&bench).await, (vec![1, 2, 3], None, [vec![], vec![]]));
    bench.rewind(2).await.unwrap();
    assert_eq!(known(&bench).await, (vec![1], Some((Rewind, 2)), [vec![2, 3], vec![]]));
    bench.turn(4, "four").await;
    assert_eq!(known(&bench).await.0, [1, 4]);
}

#[actix::test]
async fn of_what_could_not_be_kept_whole_that_is_known() {
    let bench = Bench::new().await;
    bench.turn(1, "one").await;
    let closed = bench.file("closed");
    // Root reads whatever it wants to.
    let (_mounted, incomplete) = match rustix::process::geteuid().is_root() {
        true => (Some(Mount::tmpfs(&closed, 64)), "closed is a mount, and what is in it was left out"),
        false => {
            std::fs::write(&closed, "x").unwrap();
            std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
            (None, "closed could not be read")
        }
    };
    let notes = bench.turn(2, "two").await;
    assert_eq!(notes, [format!("the checkpoint from before this turn is not whole: {incomplete}")]);
    let rows = bench.turns().await.turns;
    assert_eq!([rows[0].incomplete.as_str(), &rows[1].incomplete], ["", incomplete]);
    let done = bench.rewind(2).await.unwrap();
    assert!(done.notes.iter().any(|note| note.ends_with(incomplete)), "{done:?}");
    assert_eq!(bench.turns().await.undo.unwrap().incomplete, incomplete);
}

#[actix::test]
async fn a_turn_that_came_to_nothing_is_kept_before_anew() {
    let bench = Bench::new().await;
    three_turns(&bench).await;
    bench.begin(4, "in vain").await.unwrap();
    bench.end(crate::host::memory::Heard::new(4, None)).await;
    std::fs::write(bench.file("same"), "changed since").unwrap();
    bench.turn(4, "four").await;
    bench.rewind(4).await.unwrap();
    assert_eq!(bench.see().await.files["same"], "changed since");
    assert_eq!(bench.turns().await.turns.len(), 4);
}

#[actix::test]
async fn what_cannot_be_gone_back_to_is_refused_and_says_why() {
    let bench = Bench::new().await;
    let refused = bench.undo().await.unwrap_err();
    assert_eq!(refused.code, PodErrorCode::BadRequest.into());
    let refused = bench.rewind(1).await.unwrap_err();
    assert_eq!(refused.code, PodErrorCode::BadRequest.into());
    bench.begin(1, "one").await.unwrap();
    let refused = bench.rewind(1).await.unwrap_err();
    assert_eq!(refused.code, PodErrorCode::TaskRunning.into());
    let refused = bench.undo().await.unwrap_err();
    assert_eq!(refused.code, PodErrorCode::TaskRunning.into());
    bench.end(crate::host::memory::Heard::new(1, Some("one"))).await;
    bench.rewind(1).await.unwrap();
}

#[actix::test]
async fn a_host_that_dies_at_any_moment_of_a_rewind_leaves_all_or_nothing_of_it() {
    let mut bench = Bench::new().await;
    let seen = three_turns(&bench).await;
    let mut finished = 0;
    for moment in 1.. {
        bench.fuse.set(moment);
        let rewound = bench.rewind(2).await;
        let died = bench.fuse.is_blown();
        assert!(died || rewound.is_ok(), "{moment}: {rewound:?}");
        bench.restart();
        let turns = bench.turns().await;
        let now = bench.see().await;
        assert!(!bench.state("pod/rewinds/t.json").exists(), "{moment}");
        assert!(now == seen[3] || now == seen[1], "{moment}: {now:?}");
        // Whoever was told that it is done was told the truth.
        assert!(rewound.is_err() || now == seen[1], "{moment}");
        if now == seen[1] {
            finished += i32::from(died);
            let undo = turns.undo.unwrap();
            assert_eq!((undo.of, undo.turn, &undo.brings[..]), (Rewind, 2, &[2, 3][..]), "{moment}");
            bench.undo().await.unwrap();
            assert_eq!(bench.see().await, seen[3], "{moment}");
        }
        if !died {
            assert!(finished > 10, "{finished} of {moment}");
            return;
        }
    }
}

#[actix::test]
async fn a_rewind_that_is_unfinished_is_finished_by_the_next_turn() {
    let mut bench = Bench::new().await;
    let seen = three_turns(&bench).await;
    // The store takes nothing any more, so the conversation cannot follow the files.
    bench.store_fuse.set(0);
    let unfinished = bench.rewind(2).await.unwrap_err();
    assert!(unfinished.message.contains("not finished"), "{unfinished:?}");
    let refused = bench.begin(4, "more").await.unwrap_err();
    assert!(refused.message.contains("not finished"), "{refused:?}");
    bench.restart();
    bench.store_fuse.set(-1);
    let begun = bench.begin(4, "more").await.unwrap();
    assert_eq!(begun.conversation.unwrap().messages.len(), 2);
    assert_eq!(bench.see().await, seen[1]);
}

#[actix::test]
async fn what_another_program_went_on_with_comes_back_with_an_undo() {
    let bench = Bench::new().await;
    three_turns(&bench).await;
    bench.goes_on_elsewhere("from elsewhere").await;
    let before = bench.see().await;
    bench.rewind(2).await.unwrap();
    bench.undo().await.unwrap();
    assert_eq!(bench.see().await, before);
}

#[actix::test]
async fn where_the_conversation_cannot_be_kept_nothing_is_changed() {
    let bench = Bench::new().await;
    three_turns(&bench).await;
    bench.goes_on_elsewhere("from elsewhere").await;
    let before = bench.see().await;
    bench.fuse.set(1);
    let refused = bench.rewind(2).await.unwrap_err();
    assert!(
        refused.message.contains("nothing was changed, since the conversation cannot be kept"),
        "{refused:?}"
    );
    bench.fuse.set(-1);
    assert_eq!(bench.see().await, before);
}

#[actix::test]
async fn what_was_changed_while_the_host_was_down_is_never_lost() {
    for files in [false, true] {
        let mut bench = Bench::new().await;
        let seen = three_turns(&bench).await;
        bench.keep("rewind-1").await;
        if files {
            for (name, text) in &seen[1].files {
                std::fs::write(bench.file(name), text).unwrap();
            }
        }
        bench.begun("rewind-1", "turn-2", files);
        std::fs::write(bench.file("edited"), "while it was down").unwrap();
        let edited = bench.see().await;
        bench.restart();
        assert_eq!(bench.turns().await.undo.unwrap().turn, 2);
        let now = bench.see().await;
        assert_eq!((&now.home, &now.said), (&seen[1].home, &seen[1].said));
        match files {
            // They had been brought back before.
            true => assert_eq!(now.files, edited.files),
            false => {
                assert_eq!(now, seen[1]);
                bench.undo().await.unwrap();
                assert_eq!(bench.see().await, edited);
            }
        }
    }
}

#[actix::test]
async fn a_rewind_whose_files_are_back_stays_unfinished_until_all_is() {
    let mut bench = Bench::new().await;
    let seen = three_turns(&bench).await;
    bench.keep("rewind-1").await;
    let agent = bench.agent("");
    let aside = bench.state("aside");
    bench.begun("rewind-1", "turn-2", true);
    files::rename(&agent, &aside);
    std::fs::create_dir(&agent).unwrap();
    bench.restart();
    let refused = bench.begin(4, "more").await.unwrap_err();
    assert!(refused.message.contains("not finished"), "{refused:?}");
    assert!(bench.state("pod/rewinds/t.json").exists());
    std::fs::remove_dir(&agent).unwrap();
    files::rename(&aside, &agent);
    bench.begin(4, "more").await.unwrap();
    assert_eq!(bench.see().await.said, seen[1].said);
}

#[actix::test]
async fn a_copy_that_cannot_be_read_is_not_taken_for_an_empty_conversation() {
    let mut bench = Bench::new().await;
    let seen = three_turns(&bench).await;
    let copy = std::fs::read(bench.agent("conversation.json")).unwrap();
    std::fs::write(bench.agent("conversation.json"), "{").unwrap();
    bench.keep("broken").await;
    std::fs::write(bench.agent("conversation.json"), copy).unwrap();
    bench.keep("rewind-1").await;
    bench.begun("rewind-1", "broken", false);
    bench.restart();
    let refused = bench.begin(4, "more").await.unwrap_err();
    assert!(refused.message.contains("cannot be read"), "{refused:?}");
    assert_eq!(bench.said().await, seen[3].said);
}
