//! The table from a method's name to its message. Both surfaces read it: the contract's, and the control API.

use std::future::Future;
use std::pin::Pin;

use actix_web::web::Bytes;
use cofferdam_actors::Carries;
use cofferdam_actors::host::{Ask, Host, HostFailure, HostRefusal};
use cofferdam_protocol::host::*;

/// A method, and how it is asked.
pub(crate) struct Entry {
    /// Its name on the wire.
    pub(crate) name: &'static str,
    /// Asks the host.
    pub(crate) ask: fn(Host, Args<'_>) -> Asking,
}

/// Where a method's args are.
#[derive(Clone, Copy)]
pub(crate) enum Args<'a> {
    /// Within a request of the contract.
    Within(&'a ApiRequest),
    /// They are the whole body.
    Body(&'a [u8]),
}

/// Resolves to the body of the success.
pub(crate) type Asking = Pin<Box<dyn Future<Output = Result<Bytes, HostFailure>>>>;

macro_rules! table {
    ($name:ident $($method:ident)+) => {
        const $name: &[Entry] = &[$(Entry { name: $method::NAME, ask: ask::<$method> }),+];
    };
}

table! { CONTRACT
    GetState SetConfig StartTask OpenTask ResumeTask CancelTask Cleanup BulkCleanup ListFiles ReadSandboxFile PreviewReturn
    ReturnToMain ExportEntries ListExports UndoExport GetDiagnostics RestartCore GetLegacyTask
}

table! { OWN FollowUp GetTranscript ListTurns RewindTask UndoRewind }

/// A method of the contract.
pub(crate) fn of_contract(name: &str) -> Option<&'static Entry> {
    CONTRACT.iter().find(|entry| entry.name == name)
}

/// Every method: the contract's, and ours.
pub(crate) fn all() -> impl Iterator<Item = &'static Entry> {
    CONTRACT.iter().chain(OWN)
}

fn ask<M: HostMethod>(host: Host, args: Args<'_>) -> Asking
where
    Host: Carries<Ask<M>>,
{
    let args = match args {
        Args::Within(request) => request.args::<M>(),
        Args::Body(body) => M::parse(body),
    };
    Box::pin(async move {
        let method = args.map_err(HostRefusal::BadRequest)?;
        Ok(host.ask(method).await?.body())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_exactly_the_methods_there_are() {
        let names = |entries: &[Entry]| entries.iter().map(|entry| entry.name).collect::<Vec<_>>();
        assert_eq!(names(CONTRACT), METHODS);
        assert_eq!(names(OWN), OWN_METHODS);
    }
}
