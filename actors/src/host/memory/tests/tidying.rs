//! What goes with a task, and what a host that died has left.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use super::bench::{Bench, whose};
use crate::host::memory::{BeginTurn, ForgetTask, Tidy};

impl Bench {
    async fn tidy(&self, all: Option<&[&str]>) {
        let all = all.map(|ids| ids.iter().map(|id| (*id).to_owned()).collect());
        let notes = self.ask(Tidy { tasks: vec![self.whose.clone()], all }).await;
        assert_eq!(notes, [""; 0]);
    }

    async fn forget(&self, record: bool) {
        let (task, dir) = ("t".to_owned(), self.whose.dir.clone());
        assert_eq!(self.ask(ForgetTask { task, dir, record, unless_used: false }).await, [""; 0]);
    }
}

#[actix::test]
async fn with_its_record_everything_goes_and_with_its_files_the_checkpoints() {
    let bench = Bench::new().await;
    bench.turn(1, "one").await;
    bench.rewind(1).await.unwrap();
    bench.forget(false).await;
    let turns = bench.turns().await;
    assert!(
        !turns.turns[0].checkpoint && turns.turns[0].note.contains("removed") && turns.undo.is_none(),
        "{turns:?}"
    );
    assert!(bench.rewind(1).await.is_err());
    bench.turn(2, "two").await;
    bench.rewind(2).await.unwrap();
    bench.forget(true).await;
    for left in ["pod/agents/t", "pod/turns/t.json", "pod/rewinds/t.json"] {
        assert!(!bench.state(left).exists(), "{left}");
    }
    assert!(bench.turns().await.turns.is_empty());
    // The files are not ours to remove.
    assert!(bench.whose.dir.is_dir());
}

#[actix::test]
async fn what_was_kept_of_tasks_that_are_no_more_goes_when_that_is_known() {
    let mut bench = Bench::new().await;
    bench.turn(1, "one").await;
    let other = whose("other", &bench.whose.root);
    std::fs::create_dir(&other.dir).unwrap();
    bench.ask(BeginTurn { whose: other, turn: 1, told: "x".to_owned() }).await.unwrap();
    let there = |bench: &Bench| ["t", "other"].map(|id| bench.state(&format!("pod/agents/{id}")).exists());
    // It was used since this host started.
    bench.tidy(Some(&["t"])).await;
    assert_eq!(there(&bench), [true, true]);
    bench.restart();
    // Nobody knows which tasks there are, or there are none at all.
    bench.tidy(None).await;
    bench.tidy(Some(&[])).await;
    assert_eq!(there(&bench), [true, true]);
    // Where it worked is there no more, either.
    std::fs::remove_dir(bench.whose.root.join("other")).unwrap();
    bench.tidy(Some(&["t"])).await;
    assert_eq!(there(&bench), [true, false]);
    assert!(!bench.state("pod/turns/other.json").exists());
    bench.rewind(1).await.unwrap();
}

#[actix::test]
async fn a_rewind_under_way_is_finished_when_the_host_comes_again() {
    let mut bench = Bench::new().await;
    let before = bench.see().await;
    bench.turn(1, "one").await;
    bench.store_fuse.set(0);
    bench.rewind(1).await.unwrap_err();
    bench.store_fuse.set(-1);
    bench.restart();
    bench.tidy(Some(&["t"])).await;
    assert_eq!(bench.see().await, before);
    assert!(!bench.state("pod/rewinds/t.json").exists());
}

/// What is said to a host that comes again, whose database knows another task only.
async fn swept(bench: &Bench) -> Vec<String> {
    bench.ask(Tidy { tasks: Vec::new(), all: Some(vec!["another".to_owned()]) }).await
}

#[actix::test]
async fn checkpoints_that_cannot_be_forgotten_are_forgotten_by_the_next_host() {
    let bench = Bench::new().await;
    bench.turn(1, "one").await;
    bench.forgets.store(false, Ordering::Relaxed);
    let forget = ForgetTask { task: "t".to_owned(), dir: PathBuf::new(), record: true, unless_used: false };
    let notes = bench.ask(forget).await;
    assert!(notes.len() == 2 && notes[0].contains("somebody is at it"), "{notes:?}");
    // Also if it is told again meanwhile.
    assert_eq!(swept(&bench).await.len(), 2);
    assert!(bench.state("pod/turns/t.json").exists());
    assert_eq!(bench.checkpoints(&bench.whose.dir).await, 1);
    bench.forgets.store(true, Ordering::Relaxed);
    assert_eq!(swept(&bench).await, [""; 0]);
    for dir in [&bench.whose.dir, &bench.agent("")] {
        assert_eq!(bench.checkpoints(dir).await, 0, "{}", dir.display());
    }
    for left in ["pod/agents/t", "pod/turns/t.json"] {
        assert!(!bench.state(left).exists(), "{left}");
    }
}

#[actix::test]
async fn a_task_that_an_older_database_does_not_know_keeps_everything_while_its_directory_is_there() {
    let mut bench = Bench::new().await;
    bench.turn(1, "one").await;
    let before = bench.see().await;
    bench.restart();
    let notes = swept(&bench).await;
    assert!(notes.len() == 1 && notes[0].contains(&bench.whose.dir.display().to_string()), "{notes:?}");
    assert_eq!(bench.see().await, before);
    // Nor is it known where it works.
    std::fs::write(bench.state("pod/turns/t.json"), "{").unwrap();
    let notes = swept(&bench).await;
    assert!(notes.len() == 1 && notes[0].contains("cannot be read"), "{notes:?}");
    assert!(bench.state("pod/agents/t").exists());
}

#[actix::test]
async fn nothing_is_known_any_more_of_a_task_whose_record_has_gone() {
    let bench = Bench::new().await;
    bench.turn(1, "one").await;
    let sweep =
        || ForgetTask { task: "t".to_owned(), dir: bench.whose.dir.clone(), record: true, unless_used: true };
    // It was used.
    bench.ask(sweep()).await;
    assert!(bench.state("pod/turns/t.json").exists());
    bench.forget(false).await;
    bench.ask(sweep()).await;
    assert!(bench.state("pod/turns/t.json").exists());
    bench.forget(true).await;
    // As if it had never been: what lies there is another's.
    std::fs::write(bench.state("pod/turns/t.json"), "{}").unwrap();
    bench.ask(sweep()).await;
    assert!(!bench.state("pod/turns/t.json").exists());
}
