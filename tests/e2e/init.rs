//! Which directories Init takes, and which it refuses.

use cofferdam_protocol::ckpt::{WsCkptErrorCode, WsCkptResponse};
use cofferdam_tests::files;
use cofferdam_tests::tree::Tree;
use cofferdam_tests::wire::ask;

use crate::site;

#[test]
fn init_changes_nothing_in_the_directory_and_may_be_said_twice() {
    let site = site();
    let daemon = site.start();
    let ws = site.path("project");
    cofferdam_tests::project::make(&ws);
    let before = Tree::read(&ws);
    let id = daemon.init(&ws);
    assert_eq!(daemon.init(&ws), id);
    daemon.checkpoint(&ws, "one");
    before.assert_same(&Tree::read(&ws), "after init and checkpoint");
    before.assert_same_inodes(&Tree::read(&ws), before.paths(), "after init and checkpoint");
}

#[test]
fn what_cannot_be_a_workspace_is_an_invalid_path_that_says_why() {
    let site = site();
    let daemon = site.start();
    files::write(site.path("a-file"), "not a directory");
    files::mkdir(site.path("dir"));
    let inside_state = site.state().join("ckpt");
    let here = |name: &str| site.path(name).to_str().unwrap().to_owned();
    let cases: &[(&str, String, &str)] = &[
        ("nothing", String::new(), "workspace path is empty"),
        ("blanks", "  \t".into(), "workspace path is empty"),
        ("the root", "/".into(), "root '/' is not a supported workspace"),
        ("the root by a detour", "/usr/..//".into(), "root '/' is not a supported workspace"),
        ("a relative path", "project".into(), "absolute"),
        ("the daemon's own directory", ".".into(), "absolute"),
        ("a missing directory", here("missing"), "path does not exist"),
        ("a file", here("a-file"), "not a directory"),
        ("below a file", here("a-file/below"), "not a directory"),
        ("a NUL", format!("{}\0", here("dir")), ""),
        ("a name too long for any filesystem", here(&"n".repeat(256)), ""),
        ("a path too long for the system", format!("/{}", "long/".repeat(2000)), ""),
        ("the state directory", site.state().to_str().unwrap().into(), "state directory"),
        ("a directory in the state directory", inside_state.to_str().unwrap().into(), "state directory"),
        ("a directory around the state directory", site.path("").to_str().unwrap().into(), "state directory"),
    ];
    for (what, path, expected) in cases {
        for request in [ask::init(path), ask::checkpoint(path, "one")] {
            let (code, message) = daemon.refused(&request);
            assert_eq!(code, WsCkptErrorCode::InvalidPath, "{what}: {message}");
            assert!(message.contains(expected), "{what}: {message}");
        }
    }
    let WsCkptResponse::StatusOk { report } = daemon.call(&ask::status_all()) else { panic!() };
    assert_eq!(report.workspaces, [], "nothing may have been registered");
}

#[test]
fn a_directory_inside_a_workspace_is_already_initialized_and_one_around_it_is_not() {
    let site = site();
    let daemon = site.start();
    let (outer, middle) = (site.path("outer"), site.path("outer/middle"));
    files::write(middle.join("inner/file"), "x");
    let id = daemon.init(&middle);
    let (code, message) = daemon.refused(&ask::init(middle.join("inner")));
    assert_eq!(code, WsCkptErrorCode::AlreadyInitialized);
    assert!(message.contains(&id), "the workspace is named: {message}");
    let (code, _) = daemon.refused(&ask::checkpoint(middle.join("inner"), "one"));
    assert_eq!(code, WsCkptErrorCode::AlreadyInitialized);

    daemon.checkpoint(&outer, "around");
    daemon.checkpoint(&middle, "within");
    files::write(middle.join("inner/file"), "y");
    daemon.rollback(&outer, "around");
    assert_eq!(files::read(middle.join("inner/file")), b"x");
    files::write(middle.join("inner/file"), "z");
    daemon.rollback(&middle, "within");
    assert_eq!(files::read(middle.join("inner/file")), b"x");
    assert_eq!(site.check(), 2);
}

#[test]
fn a_path_through_a_symbolic_link_or_a_detour_finds_its_workspace_again() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("real/project");
    files::symlink(site.path("real"), site.path("parent-link"));
    files::symlink(&ws, site.path("link"));
    let id = daemon.init(site.path("parent-link/project"));
    for path in
        ["parent-link/project", "link", "real/./project", "real//project/", "real/../real/project", "link/"]
    {
        let path = site.path("").join(path);
        assert_eq!(daemon.init(&path), id, "{}", path.display());
        daemon.checkpoint(&path, &path.display().to_string().replace('/', "|"));
    }
    assert_eq!(daemon.ids(&id).len(), 6);
    let WsCkptResponse::StatusOk { report } = daemon.call(&ask::status_all()) else { panic!() };
    let [only] = report.workspaces.as_slice() else { panic!("{report:?}") };
    assert_eq!(only.path, ws.canonicalize().unwrap().to_str().unwrap());
    // Through the link as well: nothing but the tree behind it changes.
    files::write(ws.join("file"), "changed");
    let first = daemon.ids(&id).remove(0);
    daemon.rollback(site.path("link"), &first);
    assert_eq!(files::read(ws.join("file")), b"content\n");
    assert!(site.path("link").is_symlink() && site.path("parent-link").is_symlink());
}

#[test]
fn ten_inits_at_once_give_one_registration() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    let ids: Vec<String> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..10).map(|_| scope.spawn(|| daemon.init(&ws))).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(ids.windows(2).all(|pair| pair[0] == pair[1]), "{ids:?}");
    let WsCkptResponse::StatusOk { report } = daemon.call(&ask::status_all()) else { panic!() };
    assert_eq!(report.workspaces.len(), 1);
}
