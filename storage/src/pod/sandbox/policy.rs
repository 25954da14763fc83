//! Where a task may write, as its host is told.

use std::path::Path;

use cofferdam_protocol::pod::SandboxPolicy;
use rustix::fs::{Mode, OFlags};

/// The attribute of an ext4 or f2fs directory whose names are the same whatever their case.
const CASEFOLD: u32 = 0x4000_0000;

/// Where a task may write, given the strings of its record. Those of a migrated task may be of another system: then
/// it is for display.
pub fn policy(root: &str, task_dir: &str) -> SandboxPolicy {
    let windows = is_windows(root) || is_windows(task_dir);
    SandboxPolicy {
        root: root.to_owned(),
        root_display: root.to_owned(),
        task_dir: task_dir.to_owned(),
        case_insensitive: windows || folds_case(Path::new(root)),
        separator: if windows { "\\" } else { "/" }.to_owned(),
        long_path_prefix: String::new(),
    }
}

/// Whether it is an absolute path of Windows.
pub(in crate::pod) fn is_windows(path: &str) -> bool {
    match path.as_bytes() {
        [b'\\', b'\\', ..] => true,
        [drive, b':', b'\\' | b'/', ..] => drive.is_ascii_alphabetic(),
        _ => false,
    }
}

/// Whether new names in a directory that differ only in case are the same. One that cannot be asked says no.
fn folds_case(dir: &Path) -> bool {
    // Nothing else is opened: a pipe in its place would wait for a writer.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = rustix::fs::open(dir, flags, Mode::empty());
    let flags = dir.and_then(rustix::fs::ioctl_getflags);
    flags.is_ok_and(|flags| flags.bits() & CASEFOLD != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_in_the_place_of_the_root_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        cofferdam_tests::files::fifo(&root);
        assert!(!policy(root.to_str().unwrap(), "").case_insensitive);
    }

    #[test]
    fn a_policy_names_the_root_and_the_task_in_the_words_of_their_system() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_str().unwrap();
        let here = policy(root, &format!("{root}/a"));
        let expected = SandboxPolicy {
            root: root.into(),
            root_display: root.into(),
            task_dir: format!("{root}/a"),
            case_insensitive: false,
            separator: "/".into(),
            long_path_prefix: String::new(),
        };
        assert_eq!(here, expected);
        for (root, task) in [(r"E:\pods", r"E:\pods\a"), ("", r"E:\pods"), (r"\\nas\pods", r"\\nas\pods\a")] {
            let there = policy(root, task);
            assert_eq!((there.root.as_str(), there.task_dir.as_str()), (root, task));
            assert_eq!((there.separator.as_str(), there.case_insensitive), ("\\", true));
        }
    }
}
