//! `cofferdam main`: main sessions, to which tasks can be returned.

use std::collections::HashSet;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use cofferdam_protocol::host::{HostEvent, MainMessage};
use jiff::tz::Offset;

use super::again::Again;
use super::failure::Failure;
use super::task::moment;
use super::{Run, paths};
use crate::client::arguments::{Connection, Shown};
use crate::client::moment::local_offset;
use crate::client::shown::{lines, one_line};
use crate::control::{ControlError, Heard, Listener};

/// What `cofferdam main` is followed by.
#[derive(Args, Debug)]
pub(crate) struct Main {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Stay attached to a main session, and print what is returned to it, each message once, until Ctrl-C
    Attach(Attach),
}

#[derive(Args, Debug)]
pub(super) struct Attach {
    /// The main session's id
    session: String,
    /// Where it works
    #[arg(long, value_name = "DIR", default_value = ".", hide_default_value = true)]
    cwd: String,
    #[command(flatten)]
    shown: Shown,
}

impl Main {
    /// Carries the verb out.
    pub(crate) fn run(&self) -> ExitCode {
        super::run(&self.connection, |run| self.verb.run(run))
    }
}

impl Verb {
    pub(super) fn run(&self, run: &mut Run) -> Result<(), Failure> {
        match self {
            Self::Attach(verb) => verb.run(run),
        }
    }
}

impl Attach {
    fn run(&self, run: &mut Run) -> Result<(), Failure> {
        if self.session.trim().is_empty() {
            return Err(Failure::Said("a main session has an id; it is empty".to_owned()));
        }
        let cwd = paths::absolute(&self.cwd)?;
        let json = self.shown.as_json(&mut run.terminal);
        let mut listener = Listener::open(&run.control, Some((&self.session, &cwd)))?;
        run.terminal.say(format_args!("Attached: {}; Ctrl-C ends it.", one_line(&self.session)));
        let (mut printed, mut again) = (HashSet::new(), Again::default());
        loop {
            match listener.hear() {
                Heard::Interrupted => return Ok(()),
                Heard::Event(HostEvent::MainMessage(message)) => {
                    // A message that is delivered again has the same id.
                    if printed.insert(message.id.clone()) {
                        print(run, &message, json)?;
                    }
                }
                Heard::Event(HostEvent::Lost) => {
                    run.terminal
                        .warn("Warning: something the daemon said was lost; a message may be missing");
                }
                Heard::Event(_) => {}
                Heard::Ended => {
                    if !self.attach_again(run, &mut listener, &mut again)? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Attaches again as soon as a daemon is there; `false` if somebody wants this to end.
    fn attach_again(
        &self,
        run: &mut Run,
        listener: &mut Listener,
        again: &mut Again,
    ) -> Result<bool, Failure> {
        if listener.has_heard() {
            again.reset();
        }
        if again.tries() == 0 {
            run.terminal.say("The daemon is gone; looking for it.");
        }
        loop {
            if !listener.pause(again.delay()) {
                return Ok(false);
            }
            match listener.reopen() {
                Ok(()) => break,
                Err(refused @ ControlError::Refused { .. }) => return Err(refused.into()),
                Err(_) => {}
            }
        }
        run.terminal.say(format_args!("Attached again: {}", one_line(&self.session)));
        Ok(true)
    }
}

fn print(run: &mut Run, message: &MainMessage, json: bool) -> Result<(), Failure> {
    match json {
        true => Ok(run.terminal.print_json_line(message)?),
        false => Ok(run.terminal.print(as_text(message, local_offset()))?),
    }
}

fn as_text(message: &MainMessage, offset: Offset) -> String {
    let (at, id) = (moment(message.at, offset), one_line(&message.id));
    format!("[{at}  {id}]\n{}\n", lines(message.text.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_its_time_its_id_and_its_text_which_steers_nothing() {
        let message = MainMessage {
            session_id: "s".to_owned(),
            id: "ipp-ret-1".to_owned(),
            text: "done:\n\tall\x1b[2J\n".to_owned(),
            at: 1_767_323_045_000,
        };
        let text = "[2026-01-02 03:04:05  ipp-ret-1]\ndone:\n\tall\\u{1b}[2J\n";
        assert_eq!(as_text(&message, Offset::UTC), text);
    }
}
