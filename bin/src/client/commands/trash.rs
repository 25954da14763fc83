//! Show what is in the trash, and bring it back.

use clap::{Args, Subcommand};
use cofferdam_web::ckpt::{RestoreRequest, TrashedReport};
use jiff::tz::Offset;

use crate::client::arguments::Shown;
use crate::client::failure::Failure;
use crate::client::invocation::{Invocation, workspace};
use crate::client::moment::{local_offset, shown_moment, zone};
use crate::client::shown::{excerpt, one_line};
use crate::client::table::table;

#[derive(Args, Debug)]
pub(crate) struct Trash {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List what is in the trash: snapshots of recovered workspaces, those deleted with --force, and trees before
    /// rollbacks that undo does not reach any more
    List(List),
    /// Make something in the trash a snapshot again
    Restore(Restore),
}

#[derive(Args, Debug)]
struct List {
    #[command(flatten)]
    shown: Shown,
}

#[derive(Args, Debug)]
struct Restore {
    /// Its number, as the list shows it
    #[arg(value_parser = parse_item)]
    item: u64,
    /// The directory of which it becomes a snapshot, or the id of its workspace
    #[arg(short, long, value_name = "PATH")]
    workspace: String,
    /// What to call it [default: its own name]
    #[arg(short, long, value_name = "ID")]
    id: Option<String>,
    /// Keep it until it is deleted with --force
    #[arg(long)]
    pin: bool,
}

impl Trash {
    pub(crate) fn run(&self, invocation: &mut Invocation) -> Result<(), Failure> {
        match &self.what {
            What::List(list) => {
                let trash = invocation.control()?.trash()?;
                if list.shown.as_json(&mut invocation.terminal) {
                    return Ok(invocation.terminal.print_json(&trash.items)?);
                }
                Ok(invocation.terminal.print(as_table(&trash.items, local_offset()))?)
            }
            What::Restore(Restore { item, workspace: argument, id, pin }) => {
                let request = RestoreRequest {
                    workspace: workspace(argument)?,
                    item: *item,
                    id: id.clone(),
                    pin: *pin,
                };
                let back = invocation.control()?.restore(&request)?;
                Ok(invocation.terminal.print(format_args!("Restored: {}", one_line(&back.snapshot)))?)
            }
        }
    }
}

fn parse_item(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "write the number that trash list shows".to_owned())
}

fn as_table(items: &[TrashedReport], offset: Offset) -> String {
    if items.is_empty() {
        return "The trash is empty.".to_owned();
    }
    let zone = zone(offset);
    let heading = [
        "ITEM",
        "WORKSPACE",
        "SNAPSHOT",
        &format!("CREATED({zone})"),
        &format!("KEPT UNTIL({zone})"),
        "MESSAGE",
    ];
    let mut rows = vec![heading.map(str::to_owned)];
    rows.extend(items.iter().map(|item| {
        let mut name = one_line(item.snapshot.as_deref().unwrap_or("-"));
        if item.missing {
            name.push_str(" [MISSING]");
        }
        [
            item.item.to_string(),
            one_line(&item.path),
            name,
            shown_moment(&item.created_at, offset),
            shown_moment(&item.until, offset),
            excerpt(item.message.as_deref().unwrap_or_default()),
        ]
    }));
    format!("{}\n\nTotal: {} item(s)", table(&rows), items.len())
}

#[cfg(test)]
mod tests {
    use cofferdam_protocol::ckpt::Timestamp;

    use super::*;

    #[test]
    fn an_item_is_a_number_and_not_the_name_of_a_snapshot() {
        assert_eq!(parse_item("17"), Ok(17));
        for bad in ["", "one", "-1", "1.5"] {
            assert_eq!(parse_item(bad).unwrap_err(), "write the number that trash list shows", "{bad}");
        }
    }

    #[test]
    fn the_table_says_what_each_is_and_until_when_it_is_kept() {
        let item = |item, snapshot: Option<&str>, message: &str| TrashedReport {
            item,
            path: "/p".to_owned(),
            snapshot: snapshot.map(str::to_owned),
            message: Some(message.to_owned()),
            created_at: Timestamp::from_unix_nanos(1_767_323_045_123_456_789),
            until: Timestamp::from_unix_nanos(1_767_927_845_123_456_789),
            missing: item == 7,
        };
        let items = [item(4, Some("one"), "why"), item(17, None, "the tree before an undo")];
        assert_eq!(
            as_table(&items, Offset::UTC),
            "ITEM  WORKSPACE  SNAPSHOT  CREATED(UTC+0)       KEPT UNTIL(UTC+0)    MESSAGE\n\
             4     /p         one       2026-01-02 03:04:05  2026-01-09 03:04:05  why\n\
             17    /p         -         2026-01-02 03:04:05  2026-01-09 03:04:05  the tree before an undo\n\
             \n\
             Total: 2 item(s)"
        );
        assert!(as_table(&[item(7, Some("a"), "")], Offset::UTC).contains("a [MISSING]"));
        assert_eq!(as_table(&[], Offset::UTC), "The trash is empty.");
    }
}
