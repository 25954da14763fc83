//! Looking at a task's files, and what could be told of it.

use actix::prelude::{Context, Handler};
use cofferdam_protocol::host::{GetLegacyTask, ListFiles, PreviewReturn, ReadSandboxFile, ReturnPreview};
use cofferdam_protocol::pod::{self, FileRows, FileText, LegacyLog};

use super::{Answering, HostActor, after, at_once};
use crate::host::core::PodCore;
use crate::host::failure::HostFailure;
use crate::host::messages::Ask;
use crate::host::preview::{self, FILE_CHARS};
use crate::mailbox::Carries;
use crate::pod::{Call, Pod};

/// The fewest and the most characters of a preview (spec §7).
const PREVIEW: std::ops::RangeInclusive<i64> = 200..=20_000;

impl HostActor {
    /// Asks the core, and hands on what it says.
    pub(super) fn pass_on<M: pod::Method>(&self, method: M) -> Answering<M::Result>
    where
        Pod: Carries<Call<M>>,
    {
        match self.core() {
            Ok(core) => after(ask(core, method), |_, answer, _| answer),
            Err(refusal) => at_once(Err(refusal)),
        }
    }
}

async fn ask<M: pod::Method>(core: PodCore, method: M) -> Result<M::Result, HostFailure>
where
    Pod: Carries<Call<M>>,
{
    Ok(core.pod.ask(method).await?)
}

impl Handler<Ask<ListFiles>> for HostActor {
    type Result = Answering<FileRows>;

    fn handle(&mut self, Ask(request): Ask<ListFiles>, _: &mut Context<Self>) -> Self::Result {
        self.pass_on(pod::FilesList { task_id: request.task_id })
    }
}

impl Handler<Ask<ReadSandboxFile>> for HostActor {
    type Result = Answering<FileText>;

    fn handle(&mut self, Ask(request): Ask<ReadSandboxFile>, _: &mut Context<Self>) -> Self::Result {
        let ReadSandboxFile { task_id, rel_path, max_chars } = request;
        let most = self.cache.config().map_or(*PREVIEW.end(), |config| config.preview_chars);
        let wanted = max_chars.unwrap_or(most).clamp(*PREVIEW.start(), *PREVIEW.end()).min(most);
        self.pass_on(pod::FilesRead { task_id, rel_path, max_chars: Some(wanted) })
    }
}

impl Handler<Ask<GetLegacyTask>> for HostActor {
    type Result = Answering<LegacyLog>;

    fn handle(&mut self, Ask(request): Ask<GetLegacyTask>, _: &mut Context<Self>) -> Self::Result {
        self.pass_on(pod::TaskLegacyLog { task_id: request.task_id })
    }
}

impl Handler<Ask<PreviewReturn>> for HostActor {
    type Result = Answering<ReturnPreview>;

    fn handle(&mut self, Ask(request): Ask<PreviewReturn>, _: &mut Context<Self>) -> Self::Result {
        let PreviewReturn { task_id, parts } = request;
        let task = match self.known_task(&task_id) {
            Ok(task) => task.clone(),
            Err(refusal) => return at_once(Err(refusal)),
        };
        let Some(file) = parts.file.clone() else {
            return at_once(Ok(preview::preview(&task, &parts, None)));
        };
        let core = match self.core() {
            Ok(core) => core,
            Err(refusal) => return at_once(Err(refusal)),
        };
        let read = pod::FilesRead { task_id, rel_path: file.rel_path, max_chars: Some(FILE_CHARS) };
        let read = async move { Ok(ask(core, read).await) };
        after(read, move |_, read, _| Ok(preview::preview(&task, &parts, Some(read?))))
    }
}
