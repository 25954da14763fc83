//! A random walk over the real actors and a real database, beside a small model of what the contract says: whatever
//! hosts ask for, alone or several at once, whatever time does, whenever the process ends or a commit fails, both agree.
//!
//! `COFFERDAM_WALK_SEED` repeats one walk.

mod host;
mod model;
mod operation;
mod rig;

use std::collections::VecDeque;
use std::time::Duration;

use actix::System;
use cofferdam_protocol::pod::{PodErrorCode, PodEvent, TaskList, TaskSummary};
use serde_json::json;

use cofferdam_tests::dice::Dice;
use host::Host;
use model::{Model, View};
use operation::{Answered, Op};
use rig::{Heard, Place, Rig, TICK};

/// How many requests a walk makes at least.
const OPERATIONS: usize = 10_000;

#[test]
fn whatever_hosts_ask_and_whatever_fails_tasks_are_as_the_contract_says() {
    match std::env::var("COFFERDAM_WALK_SEED") {
        Ok(seed) => Walk::new(seed.parse().unwrap()).walk(),
        Err(_) => Walk::new(1).walk(),
    }
}

/// A walk under way.
struct Walk {
    seed: u64,
    dice: Dice,
    place: Place,
    model: Model,
    host: Host,
    done: usize,
    /// What was done last, for whoever reads of a failure.
    trail: VecDeque<String>,
}

impl Walk {
    fn new(seed: u64) -> Self {
        Self {
            seed,
            dice: Dice::new(seed),
            place: Place::new(),
            model: Model::new(1_000_000),
            host: Host::default(),
            done: 0,
            trail: VecDeque::new(),
        }
    }

    /// From one restart to the next, and so on.
    fn walk(mut self) {
        while self.done < OPERATIONS {
            let runtime = || {
                let mut runtime = tokio::runtime::Builder::new_current_thread();
                runtime.enable_all().start_paused(true).build().unwrap()
            };
            System::with_tokio_rt(runtime).block_on(self.life());
        }
    }

    /// One life of the process.
    async fn life(&mut self) {
        let (mut rig, initialized) = Rig::start(&self.place, self.model.now).await;
        self.note("start");
        self.model.restart(rig.now());
        self.compare(&initialized.tasks);
        self.host = Host::new(initialized.tasks, usize::try_from(initialized.config.max_concurrent).unwrap());
        if self.done == 0 {
            let root = self.place.root();
            let patch = json!({"sandboxRoot": root, "maxTasks": model::MAX_TASKS});
            let set = cofferdam_protocol::pod::ConfigSet { patch: patch.as_object().unwrap().clone() };
            assert_eq!(rig.pod.ask(set).await.unwrap().messages, Vec::<String>::new());
        }
        // Between ticks, so that it is certain what comes first.
        self.pass(&mut rig, 300).await;
        let until = self.done + 100 + self.dice.below(1500) as usize;
        while self.done < until && self.done < OPERATIONS {
            let at_once = if self.dice.percent(25) { 2 + self.dice.below(6) } else { 1 };
            let ops: Vec<_> = (0..at_once).map(|_| Op::any(&mut self.dice, &self.model)).collect();
            let breaks = self.dice.percent(4);
            self.ask(&mut rig, ops, breaks).await;
            let tasks = rig.pod.ask(TaskList {}).await.unwrap().tasks;
            self.compare(&tasks);
            self.compare_host(&tasks, false);
            let pause = match self.dice.below(40) {
                0 => 61_000,
                1 => 31_000,
                2..4 => 11_000,
                4..20 => 1_100,
                _ => 7,
            };
            let pause = pause + self.dice.below(50) as i64;
            self.pass(&mut rig, pause).await;
        }
        // A text may be told a little later; then everything was.
        self.pass(&mut rig, 300).await;
        let tasks = rig.pod.ask(TaskList {}).await.unwrap().tasks;
        self.compare_host(&tasks, true);
    }

    /// Makes requests at once, and compares what comes of them.
    async fn ask(&mut self, rig: &mut Rig, ops: Vec<Op>, breaks: bool) {
        self.note(format!("{} ms: {ops:?}{}", self.model.now, if breaks { ", a commit fails" } else { "" }));
        self.done += ops.len();
        if breaks {
            rig.break_commit();
        }
        let mut heard: VecDeque<_> = rig.ask(&ops).await.into();
        let broke = breaks && rig.mend();
        let (mut lost, mut vain) = (0, None);
        for (n, op) in ops.iter().enumerate() {
            let Some(Heard::Answer(answered, answer)) = heard.pop_front() else {
                panic!("told something before the answer to {op:?}");
            };
            assert_eq!(answered, n, "answered in another order");
            let mut events = Vec::new();
            while let Some(Heard::Event(event)) = heard.pop_front_if(|heard| matches!(heard, Heard::Event(_)))
            {
                events.push(event);
            }
            if broke && answer == Err(PodErrorCode::DbError) {
                assert_eq!(events, [], "{op:?} did not happen");
                vain.get_or_insert_with(|| self.model.clone()).carry_out_in_vain(op);
                lost += 1;
            } else {
                vain.take().into_iter().for_each(|vain| self.model.take_leases(vain));
                self.settled(op, answer, events);
            }
        }
        vain.into_iter().for_each(|vain| self.model.take_leases(vain));
        assert!(!broke || lost > 0, "a commit failed and nobody was told");
    }

    /// One request was answered and led to these events.
    fn settled(&mut self, op: &Op, answer: Answered, events: Vec<PodEvent>) {
        let before = self.model.clone();
        let expected = self.model.apply(op);
        assert!(
            self.model.agrees(&expected, &answer),
            "{op:?}\nanswered {answer:#?}\nexpected {expected:#?}"
        );
        if let Ok(answer) = &answer {
            self.host.answered(answer);
        }
        self.told(&before, events, op.subject());
    }

    /// Lets time pass, and compares what was told meanwhile.
    async fn pass(&mut self, rig: &mut Rig, ms: i64) {
        let tick = i64::try_from(TICK.as_millis()).unwrap();
        let (mut ms, born) = (ms, rig.born());
        // Never at a tick's very moment.
        if (self.model.now + ms - born) % tick == 0 {
            ms += 1;
        }
        let events = rig.pass(Duration::from_millis(u64::try_from(ms).unwrap())).await;
        let before = self.model.clone();
        let until = self.model.now + ms;
        assert_eq!(until, rig.now());
        let next = self.model.now - (self.model.now - born) % tick + tick;
        (next..=until).step_by(tick as usize).for_each(|at| self.model.tick(at));
        self.model.now = until;
        if ms > 1000 {
            self.note(format!("{ms} ms pass"));
        }
        self.told(&before, events, None);
    }

    /// Compares events with how the model has changed.
    fn told(&mut self, before: &Model, events: Vec<PodEvent>, subject: Option<&str>) {
        let told = self.host.heard(events, self.model.now);
        let due = self.model.take_told();
        assert_eq!(told.dispatched, due.dispatched);
        let sorted = |mut turns: Vec<_>| {
            turns.sort();
            turns
        };
        assert_eq!(sorted(told.expired), sorted(due.expired));
        let (before, after) = (before.views(), self.model.views());
        let changed: Vec<_> = after
            .iter()
            .filter(|view| match before.iter().find(|before| before.id() == view.id()) {
                Some(before) => view.differs_visibly(before),
                None => true,
            })
            .map(View::id)
            .collect();
        for id in &changed {
            assert!(told.changed.iter().any(|told| told == id), "nobody was told of {id}");
        }
        if let Some(subject) = subject
            && changed.contains(&subject)
        {
            assert_eq!(told.changed[0], subject, "the subject comes first");
        }
    }

    /// Compares all tasks, newest first, with the model's.
    fn compare(&self, tasks: &[TaskSummary]) {
        let views = self.model.views();
        assert_eq!(tasks.len(), views.len(), "{tasks:#?}\n{views:#?}");
        for (task, view) in tasks.iter().rev().zip(&views) {
            assert!(view.is_of(task), "{task:#?}\nexpected {view:#?}");
        }
    }

    /// Compares all tasks with what a host knows that only listens.
    fn compare_host(&self, tasks: &[TaskSummary], texts: bool) {
        let shown = |task: &TaskSummary| {
            let last_text = if texts { task.last_text.clone() } else { String::new() };
            TaskSummary { last_text, ..task.clone() }
        };
        assert_eq!(tasks.len(), self.host.tasks.len());
        for task in tasks {
            assert_eq!(shown(&self.host.tasks[&task.id]), shown(task), "events do not tell the whole story");
        }
    }

    fn note(&mut self, what: impl Into<String>) {
        if self.trail.len() == 30 {
            self.trail.pop_front();
        }
        self.trail.push_back(what.into());
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { seed, done, .. } = self;
            eprintln!("after {done} requests; again: COFFERDAM_WALK_SEED={seed}. What was done last:");
            self.trail.iter().for_each(|what| eprintln!("  {what}"));
        }
    }
}
