//! What is kept of the console over restarts of the daemon: the name it is reached by, and which browsers are signed in. Of
//! their cookies there are hashes only.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::Mode;
use serde::{Deserialize, Serialize};

use crate::disk::Disk;
use crate::durable;
use crate::path::Name;

/// Its name in the state directory.
const FILE: &str = "console.json";
/// The version that is written, and read.
const VERSION: u32 = 1;
/// The most bytes it can have.
const LIMIT: u64 = 64 << 10;

/// What is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptConsole {
    /// 1.
    version: u32,
    /// The first label of the name: `c` and 32 lower-case hexadecimal digits.
    pub name: String,
    /// Whoever signed in first comes first.
    pub browsers: Vec<KeptBrowser>,
}

/// A browser that is signed in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptBrowser {
    /// The SHA-256 of its cookie, as 64 lower-case hexadecimal digits.
    pub hash: String,
    /// About when it showed it last, in milliseconds since the epoch.
    pub used_ms: i64,
}

/// The file, in a directory that is held open.
#[derive(Debug)]
pub struct ConsoleFile {
    disk: Disk,
    dir: File,
    name: Name,
}

impl KeptConsole {
    /// That of a console of that name.
    pub fn new(name: String, browsers: Vec<KeptBrowser>) -> Self {
        Self { version: VERSION, name, browsers }
    }

    fn is_sound(&self) -> bool {
        let is_hex = |text: &str, digits| {
            text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        self.version == VERSION
            && self.name.strip_prefix('c').is_some_and(|digits| is_hex(digits, 32))
            && self.browsers.iter().all(|browser| is_hex(&browser.hash, 64))
    }
}

impl ConsoleFile {
    /// That of a state directory, which has to be there. Nothing is read or made yet.
    pub fn in_dir(disk: Disk, state_dir: &Path) -> io::Result<Self> {
        let name = Name::new(FILE.as_bytes()).map_err(|_| io::Error::from(io::ErrorKind::InvalidFilename))?;
        Ok(Self { disk, dir: File::open(state_dir)?, name })
    }

    /// What it holds; `None` if there is none, or one that is damaged, which costs no more than signing in again.
    pub fn read(&self) -> Option<KeptConsole> {
        let bytes = durable::read(&self.dir, &self.name, LIMIT);
        let bytes = bytes.inspect_err(|error| tracing::warn!(%error, "{FILE} cannot be read")).ok()??;
        let kept = serde_json::from_slice(&bytes).ok().filter(KeptConsole::is_sound);
        if kept.is_none() {
            tracing::warn!("{FILE} is damaged; browsers have to sign in again");
        }
        kept
    }

    /// Replaces it. Not to be called twice at a time.
    pub fn write(&self, kept: &KeptConsole) -> io::Result<()> {
        let bytes = serde_json::to_vec_pretty(kept)?;
        durable::write_atomic(&self.disk, &self.dir, &self.name, &bytes, Mode::RUSR | Mode::WUSR)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use cofferdam_tests::files::{remove, symlink, write};

    use super::*;

    fn kept() -> KeptConsole {
        let browsers = vec![KeptBrowser { hash: "0a".repeat(32), used_ms: 7 }];
        KeptConsole::new(format!("c{}", "0123456789abcdef".repeat(2)), browsers)
    }

    #[test]
    fn what_was_written_is_read_and_for_nobody_else() {
        let dir = tempfile::tempdir().unwrap();
        let file = ConsoleFile::in_dir(Disk::default(), dir.path()).unwrap();
        assert_eq!(file.read(), None);
        file.write(&kept()).unwrap();
        assert_eq!(file.read(), Some(kept()));
        let mode = std::fs::metadata(dir.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn what_is_damaged_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let file = ConsoleFile::in_dir(Disk::default(), dir.path()).unwrap();
        let whole = serde_json::to_string(&kept()).unwrap();
        for damaged in [
            String::new(),
            "null".to_owned(),
            whole[..whole.len() - 1].to_owned(),
            whole.replace("\"version\":1", "\"version\":2"),
            whole.replace("\"c0", "\"d0"),
            whole.replace("\"c0", "\"c0.evil"),
            whole.replace("\"c0123", "\"c012"),
            whole.replace("0a0a", "0A0A"),
            whole.replace("0a0a", "0a"),
            whole.clone() + &" ".repeat(LIMIT as usize),
        ] {
            write(dir.path().join(FILE), &damaged);
            assert_eq!(file.read(), None, "{damaged:.60}");
        }
        remove(dir.path().join(FILE));
        write(dir.path().join("elsewhere"), &whole);
        symlink("elsewhere", dir.path().join(FILE));
        assert_eq!(file.read(), None, "a link is not followed");
    }
}
