//! SIGKILL in the middle of work, and at each step of a start: what was acknowledged is there, what was going on is
//! interrupted, and the database is sound.

use std::collections::BTreeMap;
use std::path::Path;

use cofferdam_protocol::pod::INTERRUPTED;
use cofferdam_tests::dice::Dice;
use cofferdam_tests::files;
use cofferdam_tests::pod::{PodSite, Sidecar, ended, held, reserve, turn, with};
use diesel::prelude::*;
use diesel::sql_types::Text;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::site;

/// How often the sidecar is killed.
const KILLS: usize = 50;
/// How many requests are sent before each.
const BURST: usize = 40;
/// How many tasks run at once.
const SLOTS: usize = 3;

/// All of it over one database: tasks whose turns begin and end, that wait, that are cancelled and deleted, that talk.
#[test]
fn killed_at_any_moment_it_keeps_what_it_acknowledged_and_interrupts_what_went_on() {
    let site = site();
    site.start_with(json!({"maxConcurrent": SLOTS, "maxTasks": 5000})).kill();
    let mut dice = Dice::new(1);
    let mut known = Known::default();
    for kill in 0..KILLS {
        let mut pod = site.start();
        let mut states = vec![known.clone()];
        for n in 0..BURST {
            let (method, params) = known.next(&mut dice, kill * BURST + n);
            pod.send(method, params);
            states.push(known.clone());
        }
        let seen = dice.below(BURST as u64) as usize;
        (0..seen).for_each(|_| drop(pod.await_line(is_answer)));
        let rest = pod.kill_and_hear();
        let acknowledged = seen + rest.iter().filter(|line| is_answer(line)).count();

        is_sound(&site);
        let mut pod = site.start();
        let found = pod.tasks();
        for task in &found {
            assert_eq!(task["queuedPosition"], 0);
            assert_eq!(task["turnDeadline"], 0);
            assert!(task["endedAt"].as_i64().unwrap() > 0);
        }
        // Later requests may have become durable, but only in their order, and without a gap.
        let possible = (acknowledged..=BURST).map(|sent| states[sent].interrupted());
        let found = seen_of(&found);
        let fits = possible.into_iter().position(|state| state == found);
        let Some(more) = fits else {
            let expected = states[acknowledged].interrupted();
            panic!("kill {kill}, {acknowledged} acknowledged\nfound {found:#?}\nexpected {expected:#?}");
        };
        known = states[acknowledged + more].after_restart();
        // Nobody holds anything.
        if let Some(task) = known.tasks.keys().next() {
            pod.refused("STALE_LEASE", "task.heartbeat", held(task));
        }
        let report = pod.ok("diagnostics.get", json!({}));
        assert_eq!(report["counts"]["leases"], 0);
        assert_eq!(report["queue"], json!({"length": 0, "running": 0, "max": SLOTS}));
        pod.kill();
    }
}

fn is_answer(line: &Value) -> bool {
    match line.get("id") {
        Some(_) => {
            assert!(line.get("error").is_none(), "{line}");
            true
        }
        None => false,
    }
}

/// What the host knows of the tasks if everything it sent has happened.
#[derive(Clone, Debug, Default)]
struct Known {
    tasks: BTreeMap<String, Task>,
    queue: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Task {
    status: &'static str,
    error: String,
    turns: u64,
    text: String,
    /// Of this life of the sidecar: somebody holds it.
    held: bool,
}

impl Known {
    /// What a host may ask for next. `n` is in it where there is room for it.
    fn next(&mut self, dice: &mut Dice, n: usize) -> (&'static str, Value) {
        let of = |wanted: &dyn Fn(&Task) -> bool| -> Vec<String> {
            self.tasks.iter().filter(|(_, task)| wanted(task)).map(|(id, _)| id.clone()).collect()
        };
        let held_ones = of(&|task| task.held);
        let active = of(&|task| matches!(task.status, "starting" | "running"));
        let idle = of(&|task| !matches!(task.status, "starting" | "running"));
        match dice.below(10) {
            0..3 if !active.is_empty() => {
                let id = dice.pick(&active).unwrap().clone();
                let task = self.task(&id);
                match task.status {
                    "starting" => {
                        (task.status, task.turns, task.error) = ("running", task.turns + 1, String::new());
                        ("task.turnStarted", turn(&id, task.turns))
                    }
                    _ => {
                        task.status = "completed";
                        let params = ended(&id, task.turns, "completed");
                        self.dispatch();
                        ("task.turnEnded", params)
                    }
                }
            }
            3..6 if !held_ones.is_empty() => {
                let id = dice.pick(&held_ones).unwrap().clone();
                self.task(&id).text = format!("text {n}");
                ("task.setLastText", with(&held(&id), json!({"text": format!("text {n}")})))
            }
            6 if !self.queue.is_empty() => {
                let id = self.queue.remove(dice.below(self.queue.len() as u64) as usize);
                self.task(&id).status = "cancelled";
                ("task.cancel", json!({"taskId": id}))
            }
            7 if idle.len() > 20 => {
                let id = dice.pick(&idle).unwrap().clone();
                self.queue.retain(|queued| *queued != id);
                self.tasks.remove(&id);
                ("task.delete", json!({"taskId": id}))
            }
            _ => {
                let id = format!("t{n}");
                self.tasks.insert(
                    id.clone(),
                    Task {
                        status: "queued",
                        error: String::new(),
                        turns: 0,
                        text: String::new(),
                        held: true,
                    },
                );
                self.queue.push(id.clone());
                self.dispatch();
                ("task.reserve", reserve(&id))
            }
        }
    }

    fn task(&mut self, id: &str) -> &mut Task {
        self.tasks.get_mut(id).unwrap()
    }

    fn dispatch(&mut self) {
        let active = |task: &&Task| matches!(task.status, "starting" | "running");
        while self.tasks.values().filter(active).count() < SLOTS && !self.queue.is_empty() {
            let id = self.queue.remove(0);
            self.task(&id).status = "starting";
        }
    }

    /// The tasks as the next life of the sidecar shows them.
    fn interrupted(&self) -> BTreeMap<String, Task> {
        self.after_restart().tasks
    }

    fn after_restart(&self) -> Self {
        let mut tasks = self.tasks.clone();
        for task in tasks.values_mut() {
            task.held = false;
            if matches!(task.status, "queued" | "starting" | "running") {
                (task.status, task.error) = ("interrupted", INTERRUPTED.to_owned());
            }
        }
        Self { tasks, queue: Vec::new() }
    }
}

/// The same of a list.
fn seen_of(tasks: &[Value]) -> BTreeMap<String, Task> {
    const STATUSES: [&str; 3] = ["interrupted", "completed", "cancelled"];
    let text = |task: &Value, key: &str| task[key].as_str().unwrap().to_owned();
    let seen = |task: &Value| Task {
        status: STATUSES.into_iter().find(|status| task["status"] == *status).unwrap(),
        error: text(task, "error"),
        turns: task["turns"].as_u64().unwrap(),
        text: text(task, "lastText"),
        held: false,
    };
    tasks.iter().map(|task| (text(task, "id"), seen(task))).collect()
}

#[derive(QueryableByName)]
struct Verdict {
    #[diesel(sql_type = Text)]
    integrity_check: String,
}

/// Looks at a copy of the database, as it was left: looking would tidy it up.
fn is_sound(site: &PodSite) {
    let copy = tempfile::tempdir().unwrap();
    files::copy_tree(&site.path("db"), &copy.path().join("db"), None);
    let file = copy.path().join("db/pod.db");
    let mut database = SqliteConnection::establish(file.to_str().unwrap()).unwrap();
    let verdict: Verdict = diesel::sql_query("PRAGMA integrity_check").get_result(&mut database).unwrap();
    assert_eq!(verdict.integrity_check, "ok");
}

/// A place that a sidecar left in the middle of everything, and in which one of the predecessor's files has appeared.
fn left_behind() -> PodSite {
    let site = site();
    let mut pod = site.start_with(json!({"maxConcurrent": 1, "maxTasks": 8}));
    pod.finish("done");
    pod.run("running");
    pod.reserve("queued");
    pod.kill();
    files::write(
        site.legacy(),
        include_str!("../../../storage/src/pod/legacy/vectors/legacy-isolation-pod-v0.1.3.json"),
    );
    site
}

/// Everything a host is told at the start, without the times of this run.
fn told(pod: &mut Sidecar) -> Value {
    let mut tasks = pod.tasks();
    for task in &mut tasks {
        // The predecessor's have times of their own, but for one that had not ended.
        let own: &[_] = match task["legacy"] == false {
            true => &["createdAt", "queuedAt", "startedAt", "endedAt", "taskDir", "sandboxRoot"],
            false => &["endedAt"],
        };
        own.iter().for_each(|key| task[*key] = Value::Null);
    }
    let mut config = pod.ok("config.get", json!({}))["config"].clone();
    config["sandboxRoot"] = Value::Null;
    json!({"tasks": tasks, "exports": pod.ok("export.list", json!({})), "config": config})
}

#[test]
fn killed_at_any_step_of_a_start_the_next_one_ends_in_the_same_state() {
    let whole = told(&mut left_behind().start());
    assert_eq!(whole["tasks"].as_array().unwrap().len(), 8);
    for step in ["opened", "interrupted", "imported", "pruned"] {
        let site = left_behind();
        let fault = format!("pod.start.{step}=kill");
        let mut pod = Sidecar::spawn(site.command().env("COFFERDAM_FAULT", fault));
        pod.send("initialize", site.initialize());
        let (code, stderr) = pod.wait();
        assert_eq!(code, -(Signal::SIGKILL as i32), "{step}: {stderr}");
        is_sound(&site);
        assert_eq!(told(&mut site.start()), whole, "{step}");
    }
}

/// A database that was just being made.
#[test]
fn killed_at_any_step_of_the_very_first_start_the_next_one_begins_with_nothing() {
    for step in ["opened", "interrupted", "imported", "pruned"] {
        let site = site();
        let fault = format!("pod.start.{step}=kill");
        let mut pod = Sidecar::spawn(site.command().env("COFFERDAM_FAULT", fault));
        pod.send("initialize", site.initialize());
        let (code, stderr) = pod.wait();
        assert_eq!(code, -(Signal::SIGKILL as i32), "{step}: {stderr}");
        assert!(Path::new(&site.db()).exists());
        let mut pod = site.start_rooted();
        assert_eq!(pod.tasks(), Vec::<Value>::new(), "{step}");
        pod.finish("a");
    }
}
