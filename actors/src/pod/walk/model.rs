//! What the contract says, as plainly as it can be written: a list of tasks in the order of their reservation.

use std::collections::BTreeMap;

use cofferdam_protocol::pod::PodErrorCode::{self as Code, *};
use cofferdam_protocol::pod::TaskStatus::{self, *};
use cofferdam_protocol::pod::{INTERRUPTED, Probe, TaskSummary};

use super::operation::{Answer, Op};

const LEASE_LIFE: i64 = 30_000;
const GRACE: i64 = 10_000;
const FIRST_TURN: i64 = 60_000;
const CANCELLATION: i64 = 30_000;
const LOST: i64 = 60_000;
/// Ended tasks above this number are pruned at a start.
pub(super) const MAX_TASKS: usize = 40;

/// All there is. Times are milliseconds.
#[derive(Clone)]
pub(super) struct Model {
    pub(super) tasks: Vec<Task>,
    /// Who holds each task, and when he was heard of last.
    leases: BTreeMap<String, (&'static str, i64)>,
    pub(super) now: i64,
    max: usize,
    queueing: bool,
    strict: bool,
    /// How many tasks were ever reserved.
    pub(super) reserved: usize,
    /// Since [`Model::take_told`].
    told: Told,
    /// Tasks whose lease was taken in vain.
    given_back: Vec<String>,
}

/// What has to be told besides changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) dispatched: Vec<String>,
    pub(super) expired: Vec<(String, u64)>,
}

#[derive(Clone)]
pub(super) struct Task {
    pub(super) id: String,
    pub(super) status: TaskStatus,
    pub(super) last_turn: Option<u64>,
    open_turn: Option<u64>,
    turns: i64,
    timeout: i64,
    created_at: i64,
    queued_at: i64,
    started_at: i64,
    ended_at: i64,
    turn_deadline: i64,
    last_text: String,
    /// `None`: some text, not an empty one.
    error: Option<String>,
    tools: usize,
    probe: &'static str,
    cancelling: bool,
    /// What it was before it was reattached.
    former: Option<TaskStatus>,
    timers: Vec<(Timer, i64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    Turn(u64),
    Grace(u64),
    FirstTurn,
    Cancellation,
    Heartbeat,
}

/// What is compared of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct View {
    id: String,
    status: TaskStatus,
    position: usize,
    turns: i64,
    /// Created, queued, started, ended, out of time.
    times: [i64; 5],
    last_text: String,
    error: Option<String>,
    tools: usize,
    probe: String,
}

impl Model {
    pub(super) fn new(now: i64) -> Self {
        let (tasks, leases, told) = (Vec::new(), BTreeMap::new(), Told::default());
        Self {
            tasks,
            leases,
            now,
            max: 3,
            queueing: true,
            strict: true,
            reserved: 0,
            told,
            given_back: Vec::new(),
        }
    }

    /// Where a task is in the list.
    pub(super) fn find(&self, id: &str) -> Result<usize, Code> {
        self.tasks.iter().position(|task| task.id == id).ok_or(TaskNotFound)
    }

    /// Who holds a task.
    pub(super) fn holder(&self, id: &str) -> Option<&'static str> {
        self.leases.get(id).map(|(holder, _)| *holder)
    }

    fn active(&self) -> usize {
        self.tasks.iter().filter(|task| task.status.is_active()).count()
    }

    fn anybody_waits(&self) -> bool {
        self.tasks.iter().any(|task| task.status == Queued)
    }

    /// Everything to be compared, in the order of reservation.
    pub(super) fn views(&self) -> Vec<View> {
        (0..self.tasks.len()).map(|at| self.view(at)).collect()
    }

    fn view(&self, at: usize) -> View {
        let task = &self.tasks[at];
        let ahead = self.tasks[..at].iter().filter(|task| task.status == Queued).count();
        View {
            id: task.id.clone(),
            status: task.status,
            position: if task.status == Queued { ahead + 1 } else { 0 },
            turns: task.turns,
            times: [task.created_at, task.queued_at, task.started_at, task.ended_at, task.turn_deadline],
            last_text: task.last_text.clone(),
            error: task.error.clone(),
            tools: task.tools,
            probe: task.probe.to_owned(),
        }
    }

    /// Whether an answer is the one to be given.
    pub(super) fn agrees(&self, expected: &Answered, answer: &super::operation::Answered) -> bool {
        match (expected, answer) {
            (Ok(Shown::Task(view)), Ok(Answer::Task(task))) => view.is_of(task),
            (Ok(Shown::Nothing), Ok(Answer::Nothing)) => true,
            (Ok(Shown::Gone(ids)), Ok(Answer::Gone(gone))) => ids == gone,
            (Ok(Shown::Limit(limit)), Ok(Answer::Limit(said))) => limit == said,
            (Err(code), Err(said)) => code == said,
            _ => false,
        }
    }

    /// What has to be told since the last time.
    pub(super) fn take_told(&mut self) -> Told {
        std::mem::take(&mut self.told)
    }

    /// Carries a request out.
    pub(super) fn apply(&mut self, op: &Op) -> Answered {
        let subject = op.subject().map(str::to_owned);
        let answer = self.carry_out(op);
        self.fill_slots();
        // Positions are those after it.
        match (answer?, subject) {
            (Shown::Nothing, Some(id)) if !matches!(op, Op::BySession { .. }) => {
                Ok(Shown::Task(self.view(self.find(&id)?)))
            }
            (shown, _) => Ok(shown),
        }
    }

    /// Carries a request out that will be lost, with everything after it. Leases are not durable, and so not lost: what
    /// a request took is given back, but whoever asked was heard of.
    pub(super) fn carry_out_in_vain(&mut self, op: &Op) {
        let before = self.leases.clone();
        let done = self.carry_out(op).is_ok();
        self.fill_slots();
        match op {
            Op::Delete { .. } | Op::BulkCleanup { .. } => self.leases = before,
            Op::Reserve { task, .. } if done => self.given_back.push(task.clone()),
            Op::Reattach { task, lease }
                if done && before.get(task).is_none_or(|(held, _)| held != lease) =>
            {
                self.given_back.push(task.clone());
            }
            _ => {}
        }
    }

    /// What is left when everything was lost that made `vain` of this.
    pub(super) fn take_leases(&mut self, vain: Self) {
        self.leases = vain.leases;
        self.leases.retain(|id, _| !vain.given_back.contains(id));
    }

    fn carry_out(&mut self, op: &Op) -> Answered {
        match op {
            Op::Reserve { task, lease, timeout } => return self.reserve(task, lease, *timeout),
            Op::Reattach { task, lease } => self.reattach(task, lease)?,
            Op::MarkStarting { task, lease } => {
                self.ready(task, lease)?;
            }
            Op::MarkRunning { task, lease } => self.ready(task, lease)?.status = Running,
            Op::TurnStarted { task, lease, turn } => self.turn_started(task, lease, *turn)?,
            Op::TurnEnded { task, lease, turn, reason, timed_out } => {
                self.turn_ended(task, lease, *turn, reason, *timed_out)?;
            }
            Op::SetLastText { task, lease, text } => self.held(task, lease)?.last_text = text.clone(),
            Op::SetTools { task, lease, tools } => self.held(task, lease)?.tools = *tools,
            Op::SetCheck { task, lease, probe } => self.checked(task, lease, *probe)?,
            Op::SetError { task, lease, message } => {
                let now = self.now;
                let task = self.held(task, lease)?;
                if !task.status.is_terminal() {
                    task.end(Failed, now);
                }
                task.error = Some(message.clone());
            }
            Op::Heartbeat { task, lease } => {
                self.held(task, lease)?;
            }
            Op::Cancel { task } => self.cancel(task)?,
            Op::Delete { task } => {
                let at = self.find(task)?;
                if self.tasks[at].status.is_active() {
                    return Err(TaskRunning);
                }
                self.tasks.remove(at);
                self.leases.remove(task);
                return Ok(Shown::Gone(vec![task.clone()]));
            }
            Op::BulkCleanup { status } => {
                let mut gone: Vec<_> =
                    self.tasks.iter().filter(|task| task.status == *status).cloned().collect();
                gone.sort_by_key(Task::age);
                self.tasks.retain(|task| task.status != *status);
                self.leases.retain(|id, _| gone.iter().all(|task| task.id != *id));
                return Ok(Shown::Gone(gone.into_iter().map(|task| task.id).collect()));
            }
            Op::Prepare { task } => {
                if self.tasks[self.find(task)?].status.is_terminal() {
                    return Err(TaskNotResumable);
                }
            }
            Op::Get { task } => {
                self.find(task)?;
            }
            Op::BySession { task } => {
                return Ok(self.find(task).map_or(Shown::Nothing, |at| Shown::Task(self.view(at))));
            }
            Op::Configure { max, queueing, strict } => {
                (self.max, self.queueing, self.strict) = (*max, *queueing, *strict);
                return Ok(Shown::Limit(*max));
            }
        }
        Ok(Shown::Nothing)
    }

    fn reserve(&mut self, id: &str, lease: &'static str, timeout: i64) -> Answered {
        if self.find(id).is_ok() {
            return Err(TaskBusy);
        }
        let (free, waiting) = (self.active() < self.max, self.anybody_waits());
        if !free && !waiting && !self.queueing {
            return Err(TaskBusy);
        }
        let starts = free && !waiting;
        self.reserved += usize::from(id == format!("t{}", self.reserved));
        self.tasks.push(Task {
            id: id.to_owned(),
            status: if starts { Starting } else { Queued },
            last_turn: None,
            open_turn: None,
            turns: 0,
            timeout,
            created_at: self.now,
            queued_at: if starts { 0 } else { self.now },
            started_at: 0,
            ended_at: 0,
            turn_deadline: 0,
            last_text: String::new(),
            error: Some(String::new()),
            tools: 0,
            probe: "",
            cancelling: false,
            former: None,
            timers: if starts { vec![(Timer::Heartbeat, self.now + LOST)] } else { Vec::new() },
        });
        self.leases.insert(id.to_owned(), (lease, self.now));
        Ok(Shown::Task(self.view(self.tasks.len() - 1)))
    }

    /// A task that somebody holds; that he asks is a heartbeat.
    fn held(&mut self, id: &str, lease: &'static str) -> Result<&mut Task, Code> {
        let at = self.find(id)?;
        if self.holder(id) != Some(lease) {
            return Err(StaleLease);
        }
        self.leases.insert(id.to_owned(), (lease, self.now));
        Ok(&mut self.tasks[at])
    }

    /// A held task that has a slot.
    fn ready(&mut self, id: &str, lease: &'static str) -> Result<&mut Task, Code> {
        let task = self.held(id, lease)?;
        match task.status {
            Starting | Running => Ok(task),
            Queued => Err(TaskBusy),
            _ => Err(TaskNotResumable),
        }
    }

    fn reattach(&mut self, id: &str, lease: &'static str) -> Result<(), Code> {
        let now = self.now;
        let at = self.find(id)?;
        let held = self.leases.get(id);
        let is_live = held.is_some_and(|(holder, heard)| *holder != lease && now - heard < LEASE_LIFE);
        if self.tasks[at].status == Queued || is_live {
            return Err(TaskBusy);
        }
        let is_same = self.holder(id) == Some(lease);
        self.leases.insert(id.to_owned(), (lease, now));
        let task = &mut self.tasks[at];
        if task.status.is_active() && is_same {
            return Ok(());
        }
        // Whoever takes it over from a holder that is gone loses the turn that was open.
        let before = if task.status.is_active() { Interrupted } else { task.status };
        task.former.get_or_insert(before);
        task.close_turn();
        if task.status != Starting {
            task.arm(Timer::Heartbeat, now + LOST);
        }
        task.status = Starting;
        task.arm(Timer::FirstTurn, now + FIRST_TURN);
        Ok(())
    }

    fn turn_started(&mut self, id: &str, lease: &'static str, turn: u64) -> Result<(), Code> {
        let now = self.now;
        let task = self.held(id, lease)?;
        if task.status == Queued {
            return Err(TaskBusy);
        }
        if task.open_turn == Some(turn) {
            return Ok(());
        }
        task.begin_turn(turn, now);
        Ok(())
    }

    fn turn_ended(
        &mut self,
        id: &str,
        lease: &'static str,
        turn: u64,
        reason: &str,
        timed_out: bool,
    ) -> Result<(), Code> {
        let now = self.now;
        let task = self.held(id, lease)?;
        let is_old = match task.open_turn {
            Some(open) => turn < open,
            None => task.last_turn.is_some_and(|last| turn <= last),
        };
        match task.status {
            Queued => return Err(BadRequest),
            Starting | Running if !is_old => {}
            _ => return Ok(()),
        }
        let mut late = task.timers.iter().any(|(timer, _)| matches!(timer, Timer::Grace(_)));
        if task.open_turn != Some(turn) {
            // That it began was missed.
            late = false;
            task.begin_turn(turn, now);
        }
        let status = match reason {
            _ if timed_out || late => Timeout,
            "completed" | "max-tokens" | "forked" => Completed,
            "aborted" => Cancelled,
            "interrupted" => Interrupted,
            _ => Failed,
        };
        task.end(status, now);
        if matches!(status, Failed | Timeout) && task.error.as_deref() == Some("") {
            task.error = None;
        }
        Ok(())
    }

    fn checked(&mut self, id: &str, lease: &'static str, probe: Probe) -> Result<(), Code> {
        let (now, strict) = (self.now, self.strict);
        let task = self.held(id, lease)?;
        task.probe = probe.as_str();
        let fails = match probe {
            Probe::Denied | Probe::SkippedNoParent => false,
            Probe::Ambiguous | Probe::Failed => strict,
            Probe::Allowed => true,
        };
        if fails && !task.status.is_terminal() {
            task.end(Failed, now);
            task.error = None;
        }
        Ok(())
    }

    fn cancel(&mut self, id: &str) -> Result<(), Code> {
        let now = self.now;
        let at = self.find(id)?;
        let task = &mut self.tasks[at];
        match task.status {
            Queued => task.end(Cancelled, now),
            Starting | Running if task.former.is_some() => drop(task.expire(Timer::FirstTurn, now, None)),
            Starting | Running if !task.cancelling => {
                task.cancelling = true;
                task.arm(Timer::Cancellation, now + CANCELLATION);
            }
            _ => {}
        }
        Ok(())
    }

    /// Nobody waits while a slot is free.
    fn fill_slots(&mut self) {
        while self.active() < self.max {
            let now = self.now;
            let Some(task) = self.tasks.iter_mut().find(|task| task.status == Queued) else { return };
            task.status = Starting;
            task.arm(Timer::Heartbeat, now + LOST);
            self.told.dispatched.push(task.id.clone());
        }
    }

    /// A look at the deadlines: what is up, by the time at which it was.
    pub(super) fn tick(&mut self, now: i64) {
        self.now = now;
        let mut due: Vec<_> = Vec::new();
        for task in &mut self.tasks {
            due.extend(task.timers.iter().filter(|(_, at)| *at <= now).map(|due| (task.id.clone(), *due)));
        }
        due.sort_by_key(|(_, (_, at))| *at);
        for (id, (timer, at)) in due {
            let heard = self.leases.get(&id).map(|(_, heard)| *heard);
            let task = self.find(&id).map(|at| &mut self.tasks[at]).unwrap();
            // An earlier one may have ended it.
            if let Some(open) = task.timers.iter().position(|open| *open == (timer, at)) {
                task.timers.remove(open);
                let expired = task.expire(timer, now, heard);
                self.told.expired.extend(expired.map(|turn| (id, turn)));
                self.fill_slots();
            }
        }
    }

    /// A new process: nothing goes on, nobody holds anything, and what is old and too much is gone.
    pub(super) fn restart(&mut self, now: i64) {
        self.now = now;
        self.leases.clear();
        for task in &mut self.tasks {
            if !task.status.is_terminal() {
                let ended_at = task.ended_at;
                task.end(Interrupted, if ended_at == 0 { now } else { ended_at });
                task.error = Some(INTERRUPTED.to_owned());
            }
        }
        let mut ages: Vec<_> = self.tasks.iter().map(|task| (task.age(), task.id.clone())).collect();
        ages.sort_by_key(|(age, _)| *age);
        for (_, id) in ages.iter().take(ages.len().saturating_sub(MAX_TASKS)) {
            self.tasks.retain(|task| task.id != *id);
        }
    }
}

/// What a request is answered.
#[derive(Clone, Debug)]
pub(super) enum Shown {
    Task(View),
    Nothing,
    Gone(Vec<String>),
    Limit(usize),
}

pub(super) type Answered = Result<Shown, Code>;

impl Task {
    fn age(&self) -> i64 {
        if self.ended_at != 0 { self.ended_at } else { self.created_at }
    }

    fn arm(&mut self, timer: Timer, at: i64) {
        self.disarm(timer);
        self.timers.push((timer, at));
    }

    /// Takes timers of that kind back.
    fn disarm(&mut self, timer: Timer) {
        self.timers.retain(|(open, _)| std::mem::discriminant(open) != std::mem::discriminant(&timer));
    }

    fn begin_turn(&mut self, turn: u64, now: i64) {
        self.close_turn();
        self.status = Running;
        (self.open_turn, self.last_turn) = (Some(turn), Some(turn));
        self.turns += 1;
        self.started_at = now;
        self.turn_deadline = now + self.timeout;
        self.error = Some(String::new());
        self.former = None;
        self.disarm(Timer::FirstTurn);
        self.arm(Timer::Turn(turn), self.turn_deadline);
    }

    fn close_turn(&mut self) {
        self.open_turn = None;
        self.turn_deadline = 0;
        self.disarm(Timer::Turn(0));
        self.disarm(Timer::Grace(0));
    }

    fn end(&mut self, status: TaskStatus, now: i64) {
        self.status = status;
        self.ended_at = now;
        self.close_turn();
        self.cancelling = false;
        self.former = None;
        self.timers.clear();
    }

    /// Time is up; `heard` is when its holder was heard of. Returns the turn of which the host has to be told.
    fn expire(&mut self, timer: Timer, now: i64, heard: Option<i64>) -> Option<u64> {
        match timer {
            Timer::Turn(turn) => {
                self.arm(Timer::Grace(turn), now + GRACE);
                return Some(turn);
            }
            Timer::Grace(_) => {
                self.end(Timeout, now);
                self.error = self.error.take().filter(|error| !error.is_empty());
            }
            Timer::Cancellation => self.end(Cancelled, now),
            Timer::FirstTurn => {
                let ended_at = if self.ended_at == 0 { now } else { self.ended_at };
                self.end(self.former.unwrap(), ended_at);
            }
            // An open turn and a reattached task have deadlines of their own.
            Timer::Heartbeat if self.open_turn.is_some() || self.former.is_some() => {}
            Timer::Heartbeat => {
                let lost_at = heard.map_or(now, |heard| heard + LOST);
                match now >= lost_at {
                    true => {
                        self.end(Interrupted, now);
                        self.error = None;
                    }
                    false => self.arm(Timer::Heartbeat, lost_at),
                }
            }
        }
        None
    }
}

impl View {
    /// Whether a task looks so.
    pub(super) fn is_of(&self, task: &TaskSummary) -> bool {
        let times = [task.created_at, task.queued_at, task.started_at, task.ended_at, task.turn_deadline];
        let error_fits = match &self.error {
            Some(text) => *text == task.error,
            None => !task.error.is_empty(),
        };
        error_fits
            && (&self.id, self.status, self.position) == (&task.id, task.status, task.queued_position)
            && (self.turns, self.times, self.tools) == (task.turns, times, task.available_tools.len())
            && (&self.last_text, &self.probe) == (&task.last_text, &task.sandbox_probe)
    }

    /// The task's id.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Whether two differ in more than the last text.
    pub(super) fn differs_visibly(&self, other: &Self) -> bool {
        Self { last_text: String::new(), ..self.clone() }
            != Self { last_text: String::new(), ..other.clone() }
    }
}
