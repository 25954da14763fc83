//! What is refused before the first byte.

use super::*;
use crate::pod::error::ExportLimit;

/// The error, after which nothing is in the target.
#[track_caller]
fn refused(lab: &mut Lab, request: ExportRequest) -> Error {
    let before = lab.tree("target");
    let error = lab.run_on(&Disk::default(), request).unwrap_err();
    assert!(lab.store.record.is_none());
    assert_eq!(lab.tree("target"), before);
    error
}

fn to(lab: &Lab, target: &str) -> ExportRequest {
    ExportRequest { target_dir: lab.at(target), ..lab.request(&["x"]) }
}

#[test]
fn a_target_in_a_sandbox_is_refused_by_whatever_way_it_leads_there() {
    let mut lab = Lab::new();
    lab.task(&[("x", "x")]);
    files::symlink(lab.at("root"), lab.at("link"));
    files::symlink(lab.at("root/task"), lab.at("target/link"));
    files::mkdir(lab.at("other-root"));
    let inside = [
        "root",
        "root/",
        "root/z",
        "root/task",
        "root/task/x/y",
        "link",
        "link/a/b",
        "target/link",
        "target/../root/z",
    ];
    for target in inside {
        let request = to(&lab, target);
        let error = refused(&mut lab, request);
        assert!(
            matches!(error, Error::TargetInsideSandbox(_)) || target == "root/task/x/y",
            "{target}: {error:?}"
        );
    }
    let request = ExportRequest { current_root: Some(lab.at("other-root")), ..to(&lab, "other-root/sub") };
    assert!(matches!(refused(&mut lab, request), Error::TargetInsideSandbox(_)));
}

#[test]
fn a_target_that_cannot_be_one_is_a_bad_request() {
    let mut lab = Lab::new();
    lab.task(&[("x", "x")]);
    files::write(lab.at("file"), "");
    files::symlink("gone", lab.at("dangling"));
    for target in ["file", "file/sub", "dangling", "dangling/sub", "gone/../target", &"n".repeat(256)] {
        let request = to(&lab, target);
        let error = refused(&mut lab, request);
        assert!(matches!(error, Error::BadRequest(_)), "{target}: {error:?}");
    }
    let request = ExportRequest { target_dir: "rel".into(), ..lab.request(&["x"]) };
    assert!(matches!(refused(&mut lab, request), Error::BadRequest(_)));
}

#[test]
fn one_bad_entry_refuses_the_whole_export() {
    let mut lab = Lab::new();
    lab.task(&[("x", "x")]);
    files::symlink(lab.at("target"), lab.at("root/task/link"));
    let many = vec!["x"; 5001];
    let table: [(&[&str], &str); 9] = [
        (&[], "BadRequest"),
        (&[""], "BadRequest"),
        (&many, "BadRequest"),
        (&["x", "../q"], "PathOutside"),
        (&["x", "/etc/passwd"], "PathOutside"),
        (&["x", "a\0"], "PathOutside"),
        (&["link/x"], "PathOutside"),
        (&["x", "nope"], "FileNotFound"),
        (&["x/y"], "FileNotFound"),
    ];
    for (entries, expected) in table {
        let request = lab.request(entries);
        let error = format!("{:?}", refused(&mut lab, request));
        assert!(error.starts_with(expected), "{entries:?}: {error}");
    }
    for place in [None, Some(TaskPlace { root: None, dir: lab.at("root/gone") })] {
        let request = ExportRequest { place, ..lab.request(&["x"]) };
        assert!(matches!(refused(&mut lab, request), Error::FileNotFound(_)));
    }
}

#[test]
fn what_makes_no_sense_is_said_before_the_target_and_that_before_the_entries() {
    let mut lab = Lab::new();
    let request = ExportRequest { entries: Vec::new(), ..to(&lab, "root") };
    assert!(matches!(refused(&mut lab, request), Error::BadRequest(_)));
    let request = ExportRequest { entries: vec!["../q".to_owned()], ..to(&lab, "root") };
    assert!(matches!(refused(&mut lab, request), Error::TargetInsideSandbox(_)));
}

#[test]
fn more_than_an_export_may_have_is_refused_and_exactly_that_much_is_not() {
    let limit = |lab: &mut Lab| {
        let request = lab.request(&["out"]);
        match refused(lab, request) {
            Error::ExportLimit { limit, value } => (limit, value),
            other => panic!("{other:?}"),
        }
    };
    let mut lab = Lab::new();
    for n in 0..5000 {
        files::write(lab.at(&format!("root/task/out/{n}")), "");
    }
    assert!(plan(&Disk::default(), lab.request(&["out"])).is_ok());
    files::symlink("0", lab.at("root/task/out/link"));
    assert_eq!(limit(&mut lab), (ExportLimit::Files, 5000));

    let mut lab = Lab::new();
    let deep = |levels: usize| format!("out{}/x", "/d".repeat(levels - 1));
    lab.task(&[(&deep(32), "x")]);
    assert!(plan(&Disk::default(), lab.request(&["out"])).is_ok());
    lab.task(&[(&deep(33), "x")]);
    assert_eq!(limit(&mut lab), (ExportLimit::Depth, 32));

    let mut lab = Lab::new();
    files::mkdir(lab.at("root/task/out"));
    files::sparse(lab.at("root/task/out/a"), 1 << 30, &[]);
    files::sparse(lab.at("root/task/out/b"), 1 << 30, &[]);
    assert!(plan(&Disk::default(), lab.request(&["out"])).is_ok());
    files::write(lab.at("root/task/out/c"), "x");
    assert_eq!(limit(&mut lab), (ExportLimit::Bytes, 2 << 30));
    files::sparse(lab.at("root/task/out/a"), (1 << 30) + 1, &[]);
    assert_eq!(limit(&mut lab), (ExportLimit::FileBytes, 1 << 30));
}

#[test]
fn what_is_selected_twice_counts_once() {
    let mut lab = Lab::new();
    lab.task(&[("out/x", "x"), ("out/sub/y", "y"), ("z", "z")]);
    let record = lab.copy(&["out/sub/y", "out", "./out/", "out/x", "z", "z"], ConflictMode::Overwrite);
    assert_eq!(record.items.len(), 3);
    assert_eq!(lab.texts(), pairs(&[("/out/sub/y", "y"), ("/out/x", "x"), ("/z", "z")]));
    let plan = plan(&Disk::default(), lab.request(&["z", "."])).unwrap();
    assert_eq!(plan.record.items.len(), 3);
}
