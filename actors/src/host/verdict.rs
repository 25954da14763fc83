//! What is to be said of the sandbox root, seen from the main session (spec §9.1, last paragraph).

use std::path::{Path, PathBuf};

use cofferdam_protocol::host::SandboxVerdict;
use cofferdam_storage::pod::leads_into;

/// What the verdict compares. Looks at the disk, so it is made on a thread that may block.
#[derive(Clone, Debug)]
pub(super) struct Compared {
    /// The sandbox root; empty: none.
    pub(super) root: String,
    /// Where the main session works; nothing if that is not known.
    pub(super) main_cwd: Option<String>,
    /// Directories for temporary files.
    pub(super) temp_dirs: Vec<PathBuf>,
}

impl Compared {
    /// The verdict: links are followed, and names compared as the filesystem does.
    pub(super) fn verdict(&self) -> SandboxVerdict {
        let root = Path::new(&self.root);
        let inside = |dir: &Path| !self.root.is_empty() && leads_into(root, dir);
        SandboxVerdict {
            set: !self.root.is_empty(),
            root: self.root.clone(),
            exists: !self.root.is_empty() && root.is_dir(),
            cwd_known: self.main_cwd.is_some(),
            main_cwd: self.main_cwd.clone().unwrap_or_default(),
            inside_main_cwd: self.main_cwd.as_ref().is_some_and(|cwd| inside(Path::new(cwd))),
            in_temp: self.temp_dirs.iter().any(|dir| inside(dir)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(root: &Path, cwd: Option<&Path>, inside: bool) {
        let main_cwd = cwd.map(|cwd| cwd.display().to_string());
        let compared = Compared { root: root.display().to_string(), main_cwd, temp_dirs: Vec::new() };
        let verdict = compared.verdict();
        assert_eq!((verdict.cwd_known, verdict.inside_main_cwd), (cwd.is_some(), inside), "{compared:?}");
    }

    #[test]
    fn a_root_in_the_main_sessions_directory_is_inside_whatever_way_it_is_called() {
        let temp = tempfile::tempdir().unwrap();
        let base = std::fs::canonicalize(temp.path()).unwrap();
        let (project, link) = (base.join("project"), base.join("link"));
        std::fs::create_dir_all(project.join("pods")).unwrap();
        std::os::unix::fs::symlink(&project, &link).unwrap();
        for cwd in [&project, &link] {
            check(&project.join("pods"), Some(cwd), true);
            check(&link.join("pods"), Some(cwd), true);
            // One that will be made.
            check(&link.join("later/pods"), Some(cwd), true);
            check(&project, Some(cwd), true);
            check(&base, Some(cwd), false);
            check(&base.join("projectile"), Some(cwd), false);
        }
        check(&project.join("pods"), None, false);
        check(&project.join("pods"), Some(&base.join("gone")), false);
    }

    #[test]
    fn a_root_below_a_directory_for_temporary_files_is_remarked_upon() {
        let temp = tempfile::tempdir().unwrap();
        let base = std::fs::canonicalize(temp.path()).unwrap();
        let verdict = |root: &str| {
            let temp_dirs = vec![base.join("missing"), base.clone()];
            Compared { root: root.to_owned(), main_cwd: None, temp_dirs }.verdict()
        };
        let root = base.join("pods").display().to_string();
        let expected =
            SandboxVerdict { set: true, root: root.clone(), in_temp: true, ..SandboxVerdict::default() };
        assert_eq!(verdict(&root), expected);
        std::fs::create_dir(base.join("pods")).unwrap();
        assert_eq!(verdict(&root), SandboxVerdict { exists: true, ..expected });
        assert_eq!(verdict(""), SandboxVerdict::default());
        assert!(!verdict("/").in_temp);
    }
}
