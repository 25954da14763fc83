//! A whole server on loopback TCP: the contract's paths, the control API for whoever is let in, and the console. But for the
//! status, it is for programs of this process's own user and of root, whatever they show.

use std::any::Any;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::Server;
use actix_web::middleware::from_fn;
use actix_web::rt::net::TcpStream;
use actix_web::web::{self, Data};
use actix_web::{App, HttpServer};

use crate::access::{Access, admit, guard, introduce};
use crate::api::{Services, scope};
use crate::console::{Console, page};
use crate::host;

/// What clients may take of the server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Open connections; the next ones wait in the kernel's backlog.
    pub connections: usize,
    /// For the head of a request.
    pub head: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// For what is sent to be read, or for room to send more.
    pub unread: Duration,
    /// For requests in flight when the server stops, in seconds.
    pub drain: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            head: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            unread: Duration::from_secs(60),
            drain: 10,
        }
    }
}

/// Serves until its handle is told to stop. The console is whom `access` asks about browsers, too.
pub fn serve(
    listener: TcpListener,
    services: Services,
    access: Access,
    console: Arc<Console>,
    limits: Limits,
) -> std::io::Result<Server> {
    let (access, console) = (Data::new(access), Data::from(console));
    let app = move || {
        let services = services.clone();
        let contract = services.host.clone().map(|host| host::scope(host, access.clone()));
        let app = App::new()
            .app_data(access.clone())
            .app_data(console.clone())
            .wrap(from_fn(guard))
            .service(scope(services).wrap(from_fn(admit)))
            .default_service(web::to(page));
        match contract {
            Some(contract) => app.service(contract),
            None => app,
        }
    };
    let server = HttpServer::new(app)
        .on_connect(move |connection, data| {
            introduce(connection, data);
            limit_unread(connection, limits.unread);
        })
        .workers(1)
        .max_connections(limits.connections)
        .client_request_timeout(limits.head)
        .keep_alive(limits.idle)
        .shutdown_timeout(limits.drain)
        // A client that hangs up has lost interest; what waits for its answer then ends.
        .h1_allow_half_closed(false)
        .disable_signals()
        .listen(listener)?;
    Ok(server.run())
}

/// Has the kernel end a connection whose other side does not read, or is not there any more.
fn limit_unread(connection: &dyn Any, limit: Duration) {
    if let Some(stream) = connection.downcast_ref::<TcpStream>() {
        let limit = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
        // A kernel without it waits for the other side, as it does by default.
        let _ = rustix::net::sockopt::set_tcp_user_timeout(stream, limit);
    }
}

#[cfg(test)]
mod tests;
