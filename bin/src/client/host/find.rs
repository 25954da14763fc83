//! Tasks and exports by the beginning of their ids.

use cofferdam_protocol::host::{GetState, ListExports, TaskRow};
use cofferdam_protocol::pod::ExportRecord;

use super::failure::Failure;
use crate::client::shown::one_line;
use crate::control::ControlClient;

/// How many of the ids in question are named.
const NAMED: usize = 10;

/// The task whose id begins so; `pod-` may be left out.
pub(super) fn task(control: &ControlClient, given: &str) -> Result<TaskRow, Failure> {
    let tasks = control.host(&GetState::default())?.tasks;
    one(tasks, |row| &row.task.id, "pod-", given, ("task", "cofferdam task list"))
}

/// The export whose id begins so; `exp-` may be left out.
pub(super) fn export(control: &ControlClient, given: &str) -> Result<ExportRecord, Failure> {
    let exports = control.host(&ListExports {})?.exports;
    one(exports, |export| &export.id, "exp-", given, ("export", "cofferdam export list"))
}

fn one<T>(
    rows: Vec<T>,
    id: impl Fn(&T) -> &str,
    prefix: &str,
    given: &str,
    (what, list): (&str, &str),
) -> Result<T, Failure> {
    let begins =
        |id: &str| id.starts_with(given) || id.strip_prefix(prefix).is_some_and(|id| id.starts_with(given));
    let mut found = Vec::new();
    for row in rows {
        if id(&row) == given {
            return Ok(row);
        }
        if !given.is_empty() && begins(id(&row)) {
            found.push(row);
        }
    }
    if found.len() > 1 {
        let more =
            if found.len() > NAMED { format!(" and {} more", found.len() - NAMED) } else { String::new() };
        let ids: Vec<_> = found.iter().take(NAMED).map(|row| one_line(id(row))).collect();
        let ids = ids.join(", ");
        return Err(Failure::Said(format!("{given} begins the id of more than one {what}: {ids}{more}")));
    }
    let none = || format!("no {what} has an id that begins with '{given}'; see {list}");
    found.pop().ok_or_else(|| Failure::Said(none()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(ids: &[&str], given: &str, expected: Result<&str, &str>) {
        let found = one(ids.to_vec(), |id| id, "pod-", given, ("task", "the list"));
        let found = found.map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    #[test]
    fn the_beginning_of_an_id_is_enough_if_only_one_begins_so() {
        let ids = ["pod-1234", "pod-1299", "pod-12", "1234"];
        check(&ids, "pod-123", Ok("pod-1234"));
        check(&ids, "129", Ok("pod-1299"));
        check(&ids, "pod-12", Ok("pod-12"));
        check(&ids, "1234", Ok("1234"));
        check(&ids, "129\u{1b}", Err("no task has an id that begins with '129\u{1b}'; see the list"));
        check(&ids, "", Err("no task has an id that begins with ''; see the list"));
        let all = "pod-1 begins the id of more than one task: pod-1234, pod-1299, pod-12";
        check(&ids, "pod-1", Err(all));
    }

    #[test]
    fn of_many_ids_in_question_ten_are_named() {
        let ids: Vec<_> = (10..25).map(|n| format!("pod-{n}")).collect();
        let ids: Vec<_> = ids.iter().map(String::as_str).collect();
        let found = one(ids, |id| id, "pod-", "pod-", ("task", "the list")).unwrap_err().to_string();
        assert!(found.ends_with("pod-18, pod-19 and 5 more"), "{found}");
    }
}
