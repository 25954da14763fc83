//! Small filesystems of a test's own. They need root.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Why there can be no such filesystem here; `None` if there can.
pub fn lacking(filesystem: &str) -> Option<String> {
    if !kernel_has(filesystem) {
        return Some(format!("this kernel has no {filesystem}"));
    }
    let maker = format!("mkfs.{filesystem}");
    // What is only in memory, or lies over others, is made by nobody.
    let is_made = ["ext4", "xfs", "btrfs"].contains(&filesystem);
    (is_made && Command::new(&maker).arg("-V").output().is_err()).then(|| format!("{maker} is not installed"))
}

/// Whether this kernel knows a filesystem, loading its module if it has one.
fn kernel_has(filesystem: &str) -> bool {
    let known = || {
        let list = std::fs::read_to_string("/proc/filesystems").unwrap();
        list.lines().any(|line| line.split_whitespace().last() == Some(filesystem))
    };
    known() || (Command::new("modprobe").arg(filesystem).output().is_ok() && known())
}

/// A mounted filesystem; unmounted when dropped.
#[derive(Debug)]
pub struct Mount {
    at: PathBuf,
    /// What must not be in use any more once it is unmounted: two copies of a btrfs mounted at the same time are two
    /// filesystems.
    image: Option<PathBuf>,
}

impl Mount {
    /// A tmpfs of `kib` KiB at the directory `at`, made if it is not there.
    pub fn tmpfs(at: &Path, kib: u64) -> Self {
        let size = format!("size={kib}k,mode=0755");
        Self::new(at, &["-t", "tmpfs", "-o", &size, "tmpfs"])
    }

    /// An ext4 of `mib` MiB at the directory `at`, made if it is not there; its image lies beside it.
    pub fn ext4(at: &Path, mib: u64) -> Self {
        Self::image(at, mib, &["mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal"])
    }

    /// An ext4 as people have it, of `mib` MiB.
    pub fn journaled_ext4(at: &Path, mib: u64) -> Self {
        Self::image(at, mib, &["mkfs.ext4", "-q", "-m", "0"])
    }

    /// An xfs of the least size it takes.
    pub fn xfs(at: &Path) -> Self {
        Self::image(at, 320, &["mkfs.xfs", "-q"])
    }

    /// A btrfs.
    pub fn btrfs(at: &Path) -> Self {
        Self::image(at, 256, &["mkfs.btrfs", "-q"])
    }

    /// An overlay at the directory `at` whose lower layer is the directory `lower`; its upper layer lies beside it.
    pub fn overlay(lower: &Path, at: &Path) -> Self {
        Self::overlay_with(lower, at, "redirect_dir=off")
    }

    /// The same with options, as `mount -o` takes them.
    pub fn overlay_with(lower: &Path, at: &Path, options: &str) -> Self {
        let (upper, work) = (at.with_extension("upper"), at.with_extension("work"));
        std::fs::create_dir_all(&upper).unwrap();
        std::fs::create_dir_all(&work).unwrap();
        let (lower, upper, work) = (lower.display(), upper.display(), work.display());
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work},{options}");
        Self::new(at, &["-t", "overlay", "-o", &options, "overlay"])
    }

    /// An ext4 or a btrfs that writes nothing to its disk of its own accord; its image lies beside it. What the image
    /// holds at a moment is what a power loss would leave.
    pub fn idle(filesystem: &str, at: &Path) -> Self {
        let image = match filesystem {
            "ext4" => Self::make_image(at, 24, &["mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=0"]),
            _ => Self::make_image(at, 112, &["mkfs.btrfs", "-q", "-M", "-m", "single"]),
        };
        Self::of_image(&image, at)
    }

    /// The filesystem in such an image.
    pub fn of_image(image: &Path, at: &Path) -> Self {
        let mut mount = Self::new(at, &["-o", "loop,commit=300", &image.to_string_lossy()]);
        mount.image = Some(image.to_owned());
        mount
    }

    fn image(at: &Path, mib: u64, mkfs: &[&str]) -> Self {
        let image = Self::make_image(at, mib, mkfs);
        Self::new(at, &["-o", "loop", &image.to_string_lossy()])
    }

    fn make_image(at: &Path, mib: u64, mkfs: &[&str]) -> PathBuf {
        let image = at.with_extension("img");
        File::create(&image).and_then(|file| file.set_len(mib << 20)).unwrap();
        run(Command::new(mkfs[0]).args(&mkfs[1..]).arg(&image));
        image
    }

    /// The directory `of` a second time, at the directory `at`.
    pub fn bind(of: &Path, at: &Path) -> Self {
        Self::new(at, &["--bind", &of.to_string_lossy()])
    }

    /// The file `of` a second time, over the file at `at`.
    pub fn bind_file(of: &Path, at: &Path) -> Self {
        run(Command::new("mount").arg("--bind").args([of, at]));
        Self { at: at.to_owned(), image: None }
    }

    fn new(at: &Path, arguments: &[&str]) -> Self {
        std::fs::create_dir_all(at).unwrap();
        run(Command::new("mount").args(arguments).arg(at));
        Self { at: at.to_owned(), image: None }
    }

    /// Lets nobody write through it any more.
    pub fn make_read_only(&self) {
        run(Command::new("mount").args(["-o", "remount,bind,ro"]).arg(&self.at));
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.at
    }

    /// Fills it to the last byte with a file named `filler`; [`Mount::free`] takes that away.
    pub fn fill(&self) {
        use std::io::Write;
        let mut file = File::options().create(true).append(true).open(self.at.join("filler")).unwrap();
        // Most of it at once, which costs nothing where the filesystem can promise space.
        let space = rustix::fs::fstatvfs(&file).unwrap();
        let most = space.f_bavail * space.f_frsize / 4 * 3;
        let _ = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, most);
        let mut piece = 64 * 1024;
        let bytes = vec![0x55; piece];
        while piece > 0 {
            match file.write(&bytes[..piece]) {
                Ok(_) => {}
                Err(e) if e.raw_os_error() == Some(rustix::io::Errno::NOSPC.raw_os_error()) => piece /= 2,
                Err(e) => panic!("filling {}: {e}", self.at.display()),
            }
        }
        // Delayed allocation may have promised less or more than there is.
        let _ = file.sync_all();
    }

    /// Takes the filler away.
    pub fn free(&self) {
        std::fs::remove_file(self.at.join("filler")).unwrap();
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily: a daemon that a failing test has not yet stopped may still hold it.
        let _ = Command::new("umount").arg("-l").arg(&self.at).status();
        // A child process that another test is just starting may hold it for a moment.
        while !std::thread::panicking() && self.image.as_deref().is_some_and(is_in_use) {
            std::thread::yield_now();
        }
    }
}

/// Whether a loop device shows an image.
fn is_in_use(image: &Path) -> bool {
    let devices = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    devices
        .map(|device| device.path().join("loop/backing_file"))
        .any(|file| std::fs::read_to_string(file).is_ok_and(|shown| Path::new(shown.trim_end()) == image))
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
