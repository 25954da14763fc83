//! Where a host finds the sidecar's program (spec §1).

use std::fmt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use serde::Deserialize;
use serde_json::Value;

/// The sidecar's name.
const NAME: &str = "isolation-pod-core";
/// The variable that names its program.
const VARIABLE: &str = "ISOLATION_POD_CORE_BIN";

/// What decides where the sidecar's program is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SidecarPlaces {
    /// What `ISOLATION_POD_CORE_BIN` says.
    pub named: Option<PathBuf>,
    /// The directory of the package that brings the sidecar along, if there is one: programs lie in
    /// `lib/bin/<platform>-<arch>` there, or where the `bin` of its `package.json` says.
    pub package: Option<PathBuf>,
    /// The program that runs; the sidecar may lie beside it.
    pub running: Option<PathBuf>,
    /// The platform, as Node calls it: `linux`, `darwin`, `win32`.
    pub platform: String,
    /// The processor, as Node calls it: `x64`, `arm64`.
    pub arch: String,
}

impl SidecarPlaces {
    /// Those of this process.
    pub fn of_process(package: Option<PathBuf>) -> Self {
        Self {
            named: std::env::var_os(VARIABLE).filter(|named| !named.is_empty()).map(PathBuf::from),
            package,
            running: std::env::current_exe().ok(),
            platform: nodes_word(std::env::consts::OS).to_owned(),
            arch: nodes_word(std::env::consts::ARCH).to_owned(),
        }
    }

    /// The first program there is: the one that the variable names, the package's for this machine, the one that the
    /// package's metadata names, the one beside the running program. A variable that names none is an error: whoever has
    /// set it means that one and no other.
    pub fn find(&self) -> Result<PathBuf, NoSidecar> {
        if let Some(named) = &self.named {
            // A bare name would be looked for along the search path.
            let path = std::path::absolute(named).unwrap_or_else(|_| named.clone());
            return match unusable(&path) {
                None => Ok(path),
                Some(why) => Err(NoSidecar::Named { path, why }),
            };
        }
        let mut tried = Vec::new();
        for candidate in self.candidates() {
            let unusable = match candidate {
                Ok(path) => match unusable(&path) {
                    None => return Ok(path),
                    Some(why) => Tried { path, why },
                },
                Err(unusable) => unusable,
            };
            tried.push(unusable);
        }
        Err(NoSidecar::Nowhere(tried))
    }

    fn candidates(&self) -> impl Iterator<Item = Result<PathBuf, Tried>> {
        let file = if self.platform == "win32" { format!("{NAME}.exe") } else { NAME.to_owned() };
        let package = self.package.as_deref();
        let machine = format!("{}-{}", self.platform, self.arch);
        let packaged = package.map(|package| Ok(package.join("lib/bin").join(machine).join(&file)));
        let described = package.and_then(|package| described(package).transpose());
        let beside = self.running.as_ref().map(|running| Ok(running.with_file_name(&file)));
        [packaged, described, beside].into_iter().flatten()
    }
}

/// There is no program that a sidecar could be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSidecar {
    /// The one that was chosen cannot be used.
    #[error("{VARIABLE} names {}, which {why}; correct it, or unset it", .path.display())]
    Named {
        /// What was chosen.
        path: PathBuf,
        /// Why it cannot be used.
        why: String,
    },
    /// None was found.
    #[error("no {NAME} was found: {}; install it there, or name it with {VARIABLE}", list(.0))]
    Nowhere(Vec<Tried>),
}

/// A place without a usable program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Where.
    pub path: PathBuf,
    /// Why not.
    pub why: String,
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.path.display(), self.why)
    }
}

fn list(tried: &[Tried]) -> String {
    match tried {
        [] => "nobody knows where to look".to_owned(),
        tried => tried.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// Why a file cannot be run by this process, if it cannot.
fn unusable(path: &Path) -> Option<String> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some("does not exist".to_owned()),
        Err(error) => Some(format!("cannot be looked at: {error}")),
        Ok(found) if !found.is_file() => Some("is no file".to_owned()),
        Ok(_) => match accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS) {
            Ok(()) => None,
            Err(_) => Some("is not executable".to_owned()),
        },
    }
}

/// What a package's metadata names. Nothing if there is none, or if it names no sidecar.
fn described(package: &Path) -> Result<Option<PathBuf>, Tried> {
    #[derive(Deserialize)]
    struct Metadata {
        #[serde(default)]
        bin: Value,
    }
    let path = package.join("package.json");
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Tried { path, why: format!("cannot be read: {error}") }),
    };
    let metadata: Metadata = match serde_json::from_slice(&text) {
        Ok(metadata) => metadata,
        Err(error) => return Err(Tried { path, why: format!("is no package's metadata: {error}") }),
    };
    // A package with one program may name just that.
    let named = metadata.bin.as_str().or_else(|| metadata.bin.get(NAME)?.as_str());
    Ok(named.map(|named| package.join(named.trim_start_matches("./"))))
}

/// What Node calls a platform or a processor.
fn nodes_word(word: &str) -> &str {
    match word {
        "macos" => "darwin",
        "windows" => "win32",
        "x86_64" => "x64",
        "aarch64" => "arm64",
        "x86" => "ia32",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use tempfile::TempDir;

    use super::*;

    /// A place with these files; those that end in `*` are executable.
    fn place(files: &[&str]) -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let (name, mode) = match file.strip_suffix('*') {
                Some(name) => (name, 0o755),
                None => (*file, 0o644),
            };
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "program").unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        }
        dir
    }

    fn places(dir: &TempDir) -> SidecarPlaces {
        SidecarPlaces {
            named: None,
            package: Some(dir.path().join("package")),
            running: Some(dir.path().join("programs/cofferdam")),
            platform: "linux".to_owned(),
            arch: "arm64".to_owned(),
        }
    }

    /// What is found in a place, from there.
    fn found(dir: &TempDir, places: &SidecarPlaces) -> Option<String> {
        let found = places.find().ok()?;
        Some(found.strip_prefix(dir.path()).unwrap().to_str().unwrap().to_owned())
    }

    const PACKAGED: &str = "package/lib/bin/linux-arm64/isolation-pod-core";
    const BESIDE: &str = "programs/isolation-pod-core";

    #[test]
    fn the_first_place_with_an_executable_file_counts() {
        let executable = |path: &str| format!("{path}*");
        for (files, expected) in [
            (vec![executable(PACKAGED), executable(BESIDE)], Some(PACKAGED)),
            (vec![PACKAGED.to_owned(), executable(BESIDE)], Some(BESIDE)),
            (vec![format!("{PACKAGED}/file*"), executable(BESIDE)], Some(BESIDE)),
            (vec!["package/lib/bin/linux-x64/isolation-pod-core*".to_owned()], None),
            (vec![format!("{PACKAGED}.exe*")], None),
            (vec![BESIDE.to_owned()], None),
            (vec![], None),
        ] {
            let files: Vec<_> = files.iter().map(String::as_str).collect();
            let dir = place(&files);
            assert_eq!(found(&dir, &places(&dir)).as_deref(), expected, "{files:?}");
        }
    }

    #[test]
    fn elsewhere_programs_have_their_platforms_names() {
        let dir = place(&["package/lib/bin/win32-x64/isolation-pod-core.exe*"]);
        let windows = SidecarPlaces { platform: "win32".into(), arch: "x64".into(), ..places(&dir) };
        let expected = "package/lib/bin/win32-x64/isolation-pod-core.exe";
        assert_eq!(found(&dir, &windows).as_deref(), Some(expected));
        let words = ["linux", "macos", "windows", "x86_64", "aarch64", "riscv64"].map(nodes_word);
        assert_eq!(words, ["linux", "darwin", "win32", "x64", "arm64", "riscv64"]);
    }

    #[test]
    fn the_packages_metadata_may_name_the_program() {
        for (metadata, expected) in [
            (r#"{"bin": {"isolation-pod-core": "./out/core"}}"#, Some("package/out/core")),
            (r#"{"bin": "out/core"}"#, Some("package/out/core")),
            (r#"{"bin": {"another": "out/core"}}"#, None),
            (r#"{"bin": "out/missing"}"#, None),
            (r#"{"bin": ["out/core"]}"#, None),
            (r#"{"name": "pod"}"#, None),
            ("no metadata", None),
            ("[]", None),
        ] {
            let dir = place(&["package/out/core*"]);
            std::fs::write(dir.path().join("package/package.json"), metadata).unwrap();
            assert_eq!(found(&dir, &places(&dir)).as_deref(), expected, "{metadata}");
            let packaged = place(&["package/out/core*", &format!("{PACKAGED}*"), &format!("{BESIDE}*")]);
            std::fs::write(packaged.path().join("package/package.json"), metadata).unwrap();
            assert_eq!(found(&packaged, &places(&packaged)).as_deref(), Some(PACKAGED), "{metadata}");
        }
    }

    #[test]
    fn a_variable_that_names_no_program_is_an_error_whatever_else_there_is() {
        let dir = place(&[&format!("{PACKAGED}*"), &format!("{BESIDE}*"), "text", "mine*"]);
        let named = |name: &str| SidecarPlaces { named: Some(dir.path().join(name)), ..places(&dir) };
        assert_eq!(found(&dir, &named("mine")).as_deref(), Some("mine"));
        for (name, why) in [
            ("missing", "does not exist"),
            ("package", "is no file"),
            ("text", "is not executable"),
            ("text/below", "cannot be looked at"),
        ] {
            let error = named(name).find().unwrap_err().to_string();
            assert!(error.starts_with("ISOLATION_POD_CORE_BIN names /") && error.contains(why), "{error}");
        }
    }

    #[test]
    fn whoever_finds_nothing_is_told_where_it_was_looked_for() {
        let dir = place(&[BESIDE]);
        let error = places(&dir).find().unwrap_err().to_string();
        assert!(error.contains(&format!("{PACKAGED} does not exist")), "{error}");
        assert!(error.contains(&format!("{BESIDE} is not executable")), "{error}");
        let nothing = SidecarPlaces::default().find().unwrap_err().to_string();
        assert!(nothing.contains("nobody knows where to look"), "{nothing}");
    }
}
