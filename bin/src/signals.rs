//! How a daemon is told to stop.

use std::io;
use std::thread;

use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// From now on SIGTERM or SIGINT cancels `stopping`, and a second one ends the process at once: what is on disk is
/// consistent at any instruction, and recovery does the rest. SIGHUP does nothing, so a terminal that closes does not
/// end a daemon. A thread of its own hears them, since the actors' thread may be waiting for a disk when it stops.
pub(crate) fn listen(stopping: CancellationToken) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let (mut terminate, mut interrupt) = {
        let _context = runtime.enter();
        // To have asked once is enough for the default, which is death, to be gone.
        drop(signal(SignalKind::hangup())?);
        // A file that outgrows the user's limit is an error to whoever asked, not the daemon's end.
        drop(signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?);
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            let name = either(&mut terminate, &mut interrupt).await;
            tracing::info!(signal = name, "stopping");
            stopping.cancel();
            either(&mut terminate, &mut interrupt).await;
            tracing::warn!("stopped by a second signal before everything was finished");
            std::process::exit(1);
        });
    })?;
    Ok(())
}

async fn either(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}
