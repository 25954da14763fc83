//! The turns of a task, and going back to what was before one.

use actix::prelude::{Context, Handler};
use cofferdam_protocol::host::{ListTurns, RewindTask, Rewound, TurnList, UndoRewind, WayBack};
use cofferdam_protocol::pod::{TaskStatus, TaskSummary};

use super::file_work::FileWork;
use super::{Answering, HostActor, after, at_once};
use crate::host::failure::{HostFailure, HostRefusal};
use crate::host::live_task::Noted;
use crate::host::memory::{ListKeptTurns, RewindTo, UndoLastRewind, WentBack, Whose};
use crate::host::messages::Ask;
use crate::mailbox::Carries;

impl HostActor {
    /// A task of which something is kept.
    fn kept_task(&self, id: &str) -> Result<(TaskSummary, Whose), HostFailure> {
        let task = self.known_task(id)?;
        let none = || HostRefusal::BadRequest("nothing is kept of that task's turns".to_owned());
        Ok((task.clone(), Whose::of(task).ok_or_else(none)?))
    }

    /// The same, if nothing works on it. Until [`HostActor::rewound`] nothing will.
    fn admit_rewind(&mut self, id: &str) -> Result<(TaskSummary, Whose), HostFailure> {
        let (task, whose) = self.kept_task(id)?;
        let running = "the task has not ended its turn; wait for its end, or cancel it";
        self.if_nothing_works_on_files(id)?;
        self.if_no_neighbour_works(&task)?;
        let busy = match self.live.get(id) {
            // It was resumed, and its agent waits to be told something. A turn that begins now comes before this or after it.
            Some(entry) if entry.agent && task.status == TaskStatus::Starting => None,
            _ if task.status.is_active() => Some(HostRefusal::TaskRunning(running.to_owned())),
            Some(entry) if !entry.begun => Some(HostRefusal::TaskBusy(
                "the task waits for its agent, or its agent is being made ready; try again later".to_owned(),
            )),
            _ => None,
        };
        if let Some(busy) = busy {
            return Err(busy.into());
        }
        self.file_works.begin(id, FileWork::Rewind);
        Ok((task, whose))
    }

    /// It was gone back, or not.
    fn rewound(
        &mut self,
        task: &TaskSummary,
        done: Result<WentBack, HostFailure>,
    ) -> Result<Rewound, HostFailure> {
        self.file_works.end(&task.id, FileWork::Rewind);
        // Files are not what they were.
        self.shown.forget();
        let WentBack { turn, undid, changed, notes } = done?;
        if let Some(entry) = self.live.get(&task.id) {
            entry.addr.recipient().do_send(Noted(told(turn, undid)));
        }
        self.tell_task(&task.id);
        Ok(Rewound { task: self.newest_row(task), turn, undid, changed, notes })
    }
}

/// What the transcript says of it.
fn told(turn: u64, undid: Option<WayBack>) -> String {
    let what = match undid {
        None => format!("what they were before turn {turn}"),
        Some(WayBack::Rewind) => format!("what they were just before the rewind to before turn {turn}"),
        Some(WayBack::Undo) => {
            format!("what they were just before the rewind to before turn {turn} was undone")
        }
    };
    format!("files and conversation were brought back to {what}")
}

impl Handler<Ask<ListTurns>> for HostActor {
    type Result = Answering<TurnList>;

    fn handle(&mut self, Ask(request): Ask<ListTurns>, _: &mut Context<Self>) -> Self::Result {
        let whose = match self.kept_task(&request.task_id) {
            Ok((_, whose)) => whose,
            Err(refusal) => return at_once(Err(refusal)),
        };
        let listed = self.memory.recipient().send(ListKeptTurns(whose));
        let listed = async move { listed.await.unwrap_or_else(|_| Err(HostRefusal::Unavailable.into())) };
        after(listed, |_, listed, _| listed)
    }
}

impl Handler<Ask<RewindTask>> for HostActor {
    type Result = Answering<Rewound>;

    fn handle(&mut self, Ask(request): Ask<RewindTask>, _: &mut Context<Self>) -> Self::Result {
        let RewindTask { task_id, turn } = request;
        let (task, whose) = match self.admit_rewind(&task_id) {
            Ok(task) => task,
            Err(refusal) => return at_once(Err(refusal)),
        };
        let rewound = self.memory.recipient().send(RewindTo { whose, turn });
        let rewound = async move { rewound.await.unwrap_or_else(|_| Err(HostRefusal::Unavailable.into())) };
        after(rewound, move |actor, done, _| actor.rewound(&task, done))
    }
}

impl Handler<Ask<UndoRewind>> for HostActor {
    type Result = Answering<Rewound>;

    fn handle(&mut self, Ask(request): Ask<UndoRewind>, _: &mut Context<Self>) -> Self::Result {
        let (task, whose) = match self.admit_rewind(&request.task_id) {
            Ok(task) => task,
            Err(refusal) => return at_once(Err(refusal)),
        };
        let undone = self.memory.recipient().send(UndoLastRewind { whose });
        let undone = async move { undone.await.unwrap_or_else(|_| Err(HostRefusal::Unavailable.into())) };
        after(undone, move |actor, done, _| actor.rewound(&task, done))
    }
}
