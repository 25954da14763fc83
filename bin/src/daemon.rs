//! The daemon: opens the store, starts the actors, listens, and stops when it is told to.

use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::{fmt, io};

use actix_web::dev::{Server, ServerHandle};
use clap::Args;
use cofferdam_actors::ckpt::{Ckpt, ConfigFile, Installation};
use cofferdam_actors::host::Host;
use cofferdam_actors::session::Sessions;
use cofferdam_actors::{Cofferdam, StartError};
use cofferdam_storage::ckpt::config::{BackendKind, Config};
use cofferdam_storage::ckpt::{Store, StoreOptions};
use cofferdam_storage::{clock, fault};
use cofferdam_web::{EventStreams, LinkPlace, Services};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::hosting::HostingOptions;
use crate::http::{Http, HttpError};
use crate::paths::{self, Environment, NoHome};
use crate::socket::{self, Audience, BindError, Limits, Place, SocketFile};
use crate::terminal::Terminal;
use crate::{control, logging, session, signals};

/// What the command line says about a daemon, whatever program it is started by.
#[derive(Args, Debug)]
pub(crate) struct DaemonOptions {
    /// Where to keep the state [default: $COFFERDAM_STATE_DIR, /var/lib/cofferdam for root, else
    /// $XDG_STATE_HOME/cofferdam, else ~/.local/state/cofferdam]
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    /// Where to listen [default: $WS_CKPT_SOCKET, /run/ws-ckpt/ws-ckpt.sock for root, else
    /// $XDG_RUNTIME_DIR/ws-ckpt/ws-ckpt.sock, else run/ws-ckpt.sock in the state directory]
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// The configuration file [default: /etc/ws-ckpt/config.toml for root, else ws-ckpt/config.toml in
    /// $XDG_CONFIG_HOME or ~/.config]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// What to log: error, warn, info, debug, trace or off
    #[arg(long, value_name = "LEVEL", default_value = logging::DEFAULT_LEVEL, value_parser = logging::parse_level)]
    pub(crate) log_level: String,
}

/// The engines that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum BackendChoice {
    /// Whatever suits this machine
    Auto,
    /// The one that works on any filesystem
    Store,
    /// Kernel snapshots of btrfs
    #[value(alias = "btrfs-base", alias = "btrfs-loop")]
    Btrfs,
}

/// Why a daemon did not start, or ended by itself.
#[derive(Debug, thiserror::Error)]
enum DaemonError {
    #[error(
        "the btrfs backend is not available yet; use --backend store, or type = \"auto\" under [backend] in the configuration file"
    )]
    NoBtrfs,
    #[error(transparent)]
    NoHome(#[from] NoHome),
    #[error(transparent)]
    Store(#[from] cofferdam_storage::ckpt::Error),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("the daemon cannot be set up: {0}")]
    Io(#[from] io::Error),
    #[error("the actors ended unexpectedly; the log says more")]
    ActorsGone,
}

/// Runs a daemon in the foreground until a signal ends it.
/// `notices` are warnings about the command line itself. Without `hosting` there are checkpoints and sessions alone.
pub(crate) fn run(
    options: DaemonOptions,
    backend: Option<BackendChoice>,
    notices: &[&str],
    hosting: Option<&HostingOptions>,
) -> ExitCode {
    logging::start(&options.log_level);
    match serve(options, backend, notices, hosting) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            Terminal::of_process().complain(format_args!("Error: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn serve(
    options: DaemonOptions,
    backend: Option<BackendChoice>,
    notices: &[&str],
    hosting: Option<&HostingOptions>,
) -> Result<(), DaemonError> {
    let environment = Environment::of_process();
    let state_dir = std::path::absolute(options.state_dir.map_or_else(|| environment.state_dir(), Ok)?)?;
    let config = options.config.or_else(|| environment.config_file());
    refuse_btrfs(backend, config.as_deref())?;
    let place = environment.daemon_socket(options.socket.as_deref(), &state_dir);

    // Before the store, which may outgrow a limit on the size of files as it opens, and before there is a socket that a
    // signal would leave behind.
    let stopping = CancellationToken::new();
    signals::listen(stopping.clone())?;
    let (store, recovery) =
        Store::open(StoreOptions { disk: fault::disk_from_env(), ..StoreOptions::new(&state_dir) })?;
    for notice in notices {
        tracing::warn!("{notice}");
    }
    for line in recovery.lines {
        tracing::warn!("recovery: {line}");
    }
    // Clients may connect from here on; they wait until somebody accepts.
    let (ckpt_listener, ckpt_file) = bind(&store, &place, "--socket")?;
    let (control_listener, control_file) = bind(&store, &paths::control_socket(&state_dir), "--state-dir")?;
    let http = match hosting {
        Some(hosting) => Http::bind(hosting.http(), clock::from_env().0, &state_dir)?,
        None => None,
    };
    let socket = std::path::absolute(&place.path)?;
    // Not worth failing for: only clients that know nothing but the state directory need it.
    let note = socket::note(&socket, &paths::socket_note(&state_dir))
        .inspect_err(|error| tracing::warn!(%error, "cannot say in the state directory where the socket is"))
        .ok();

    tracing::info!(version = env!("CARGO_PKG_VERSION"), state_dir = %state_dir.display(), "starting");
    let pods = hosting.map(|hosting| hosting.pods(&state_dir, &socket)).transpose()?;
    let builder = Cofferdam::builder()
        .backend(Arc::new(store))
        .config(ConfigFile(config))
        .installation(Installation { state_dir, socket, log_level: options.log_level })
        .sessions(session::parts());
    let builder = match pods {
        Some(pods) => builder.pods(pods),
        None => builder,
    };
    let cofferdam = builder.start()?;
    let adapters = Adapters {
        ckpt: (ckpt_listener, ckpt_file),
        control: (control_listener, control_file),
        http,
        note,
        audience: place.audience,
        sessions: cofferdam.sessions(),
        host: cofferdam.host(),
    };
    let served = cofferdam.run(move |ckpt| adapters.serve(ckpt, stopping)).blocking_recv();
    cofferdam.stop();
    served.unwrap_or(Err(DaemonError::ActorsGone))
}

/// Listens at a place. A disk that is full, perhaps of snapshots, is no reason not to be there to remove them: a new
/// name may need space, too.
fn bind(store: &Store, place: &Place, option: &'static str) -> Result<(UnixListener, SocketFile), BindError> {
    match socket::bind(place, option) {
        Err(error) if error.is_no_space() && store.give_up_spare() => socket::bind(place, option),
        bound => bound,
    }
}

/// Another engine than the one asked for would not find the snapshots the user means.
fn refuse_btrfs(choice: Option<BackendChoice>, config: Option<&Path>) -> Result<(), DaemonError> {
    match choice {
        Some(BackendChoice::Btrfs) => Err(DaemonError::NoBtrfs),
        Some(BackendChoice::Auto | BackendChoice::Store) => Ok(()),
        None => {
            // A file that cannot be used is reported when the actors read it.
            let kind = config.and_then(|file| Config::load(file).ok()).unwrap_or_default().backend.kind;
            match kind {
                BackendKind::Auto | BackendKind::Store => Ok(()),
                BackendKind::BtrfsBase | BackendKind::BtrfsLoop => Err(DaemonError::NoBtrfs),
            }
        }
    }
}

/// What listens.
struct Adapters {
    ckpt: (UnixListener, SocketFile),
    control: (UnixListener, SocketFile),
    http: Option<Http>,
    note: Option<SocketFile>,
    audience: Audience,
    sessions: Sessions,
    host: Option<Host>,
}

impl Adapters {
    /// Serves on the actors' thread until told to stop, and lets what runs then finish.
    async fn serve(self, ckpt: Ckpt, stopping: CancellationToken) -> Result<(), DaemonError> {
        let (ckpt_listener, ckpt_file) = self.ckpt;
        let (control_listener, control_file) = self.control;
        let listener = tokio::net::UnixListener::from_std(ckpt_listener)?;
        let console = self.http.as_ref().map(Http::console);
        let services = Services {
            ckpt: ckpt.clone(),
            sessions: self.sessions,
            host: self.host,
            streams: EventStreams::new(stopping.clone()),
            console: console.clone(),
        };
        let control = Running::new(control::serve(control_listener, services.clone())?);
        let http = self.http.map(|http| http.serve(services)).transpose()?.map(Running::new);
        let limits = Limits::of_process();
        let accept = actix::spawn(socket::accept(listener, self.audience, ckpt, limits, stopping.clone()));
        announce(format_args!("listening on {}", ckpt_file.path().display()));
        if let Some(console) = console {
            announce(format_args!("console: {}", console.login_url(LinkPlace::Named)));
        }

        stopping.cancelled().await;
        // New clients find no daemon; those in hand are served.
        drop((ckpt_file, control_file, self.note));
        // All drain at the same time. An error is a panic, which was logged.
        let _ = tokio::join!(accept, control.stop(), async {
            if let Some(http) = http {
                http.stop().await;
            }
        });
        Ok(())
    }
}

/// A server of HTTP, over whatever connections.
struct Running {
    handle: ServerHandle,
    server: JoinHandle<io::Result<()>>,
}

impl Running {
    fn new(server: Server) -> Self {
        Self { handle: server.handle(), server: actix::spawn(server) }
    }

    /// Accepts nobody any more, and returns when those in hand are served.
    async fn stop(self) {
        self.handle.stop(true).await;
        // An error is a panic, which was logged.
        let _ = self.server.await;
    }
}

/// Whoever started the daemon waits for the first of these lines.
fn announce(line: fmt::Arguments<'_>) {
    if let Err(error) = Terminal::of_process().print(line) {
        tracing::debug!(%error, "nobody reads standard output");
    }
}
