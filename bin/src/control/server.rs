//! The control API's server: one worker, on a unix socket that only this user and root can open.

use std::any::Any;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use actix_web::dev::{Extensions, Server};
use actix_web::rt::net::UnixStream;
use actix_web::{App, HttpServer};
use cofferdam_storage::peer::Peer;
use cofferdam_storage::sandbox;
use cofferdam_web::{Hangup, Sandboxed, Services};

use crate::socket::{self, trusted};

/// Serves until its handle is told to stop.
pub(crate) fn serve(listener: UnixListener, services: Services) -> std::io::Result<Server> {
    let server = HttpServer::new(move || App::new().service(cofferdam_web::scope(services.clone())))
        .on_connect(introduce)
        .workers(1)
        .max_connections(socket::connections(64, 16))
        .client_request_timeout(Duration::from_secs(10))
        .keep_alive(Duration::from_secs(60))
        .shutdown_timeout(10)
        // A client that hangs up has lost interest; what waits for its answer then ends.
        .h1_allow_half_closed(false)
        .disable_signals()
        .listen_uds(listener)?;
    Ok(server.run())
}

/// Tells the API who connected. Of anybody but this user and root it is told nothing, and the API refuses.
fn introduce(connection: &dyn Any, data: &mut Extensions) {
    let Some(stream) = connection.downcast_ref::<UnixStream>() else { return };
    // Who cannot be told is none that can be served.
    if sandbox::is_peer(stream).unwrap_or(true) {
        data.insert(Sandboxed);
        return;
    }
    match Peer::of_socket(stream) {
        Ok(peer) => match trusted(&peer) {
            Some(peer) => {
                data.insert(peer);
                // Without a descriptor to spare it is there for as long as it likes.
                if let Ok(hangup) = Hangup::of(stream) {
                    data.insert(hangup);
                }
            }
            None => tracing::warn!(uid = peer.uid, "a stranger reached the control socket"),
        },
        Err(error) => tracing::warn!(%error, "cannot tell who reached the control socket"),
    }
}
