//! A filesystem with a workspace on it, and whose it is.

use std::path::{Path, PathBuf};

use cofferdam_tests::mount::{self, Mount};
use cofferdam_tests::site::Site;
use cofferdam_tests::{files, skipped, user};

/// Where a workspace can lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filesystem {
    /// On whatever holds temporary files: for a user who cannot mount others.
    Here,
    Ext4,
    Btrfs,
    Xfs,
    Tmpfs,
    /// On an overlay, made through it.
    UpperLayer,
    /// On an overlay, made before it was mounted, as what an image brings to a container.
    LowerLayer,
    /// The same where a file whose metadata alone changes leaves its content in the lower layer, as Podman mounts it.
    Metacopy,
}

impl Filesystem {
    pub(super) fn is_overlay(self) -> bool {
        matches!(self, Self::UpperLayer | Self::LowerLayer | Self::Metacopy)
    }
}

/// Whose workspace it is, and whose daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// Of whoever runs the tests.
    Runner,
    /// Of an ordinary user, where root runs the tests. Where an ordinary user does, that is [`Who::Runner`].
    OrdinaryUser,
}

/// What the functions that make and change things are told.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    /// The workspace.
    pub(super) ws: PathBuf,
    /// A directory beside it, on the same filesystem, that nothing of a workspace's business may touch.
    pub(super) outside: PathBuf,
    /// Whether it is root who makes and changes things.
    pub(super) is_root: bool,
}

impl Scene {
    /// A path in the workspace.
    pub(super) fn at(&self, path: &str) -> PathBuf {
        self.ws.join(path)
    }
}

/// A place to test in.
pub(super) struct Ground {
    pub(super) scene: Scene,
    pub(super) filesystem: Filesystem,
    owner: Option<u32>,
    // Unmounted one after the other, before the site that holds the mount points is removed.
    _mounts: Vec<Mount>,
    pub(super) site: Site,
}

impl Ground {
    /// A workspace that `make` has filled, as its owner. `None`, and said so, if this machine or this user cannot have
    /// one there.
    pub(super) fn new(filesystem: Filesystem, who: Who, make: impl FnOnce(&Scene) + Send) -> Option<Self> {
        if let Some(why) = lacking(filesystem, who) {
            skipped(format_args!("{why}"));
            return None;
        }
        let (site, owner) = match who {
            Who::Runner => (crate::site(), None),
            Who::OrdinaryUser => (crate::site_of_ordinary_user(), Some(user::NOBODY)),
        };
        let mut mounts = Vec::new();
        let disk = mount(filesystem, &site, &mut mounts);
        let (lower, merged) = (disk.join("lower"), disk.join("merged"));
        let overlay = || {
            files::mkdir(&lower);
            let options = if filesystem == Filesystem::Metacopy { "metacopy=on" } else { "redirect_dir=off" };
            Mount::overlay_with(&lower, &merged, options)
        };
        let (made, at) = match filesystem {
            Filesystem::UpperLayer => (&merged, &merged),
            Filesystem::LowerLayer | Filesystem::Metacopy => (&lower, &merged),
            _ => (&disk, &disk),
        };
        if filesystem == Filesystem::UpperLayer {
            mounts.insert(0, overlay());
        }
        let scene = |below: &Path| Scene {
            ws: below.join("ws"),
            outside: below.join("outside"),
            is_root: user::is_root() && owner.is_none(),
        };
        let making = scene(made);
        for dir in [&making.ws, &making.outside] {
            files::mkdir(dir);
            site.hand_over(dir);
        }
        as_owner(owner, || make(&making));
        if filesystem.is_overlay() && filesystem != Filesystem::UpperLayer {
            mounts.insert(0, overlay());
        }
        Some(Self { scene: scene(at), filesystem, owner, _mounts: mounts, site })
    }

    /// Does something as the one whose workspace it is.
    pub(super) fn as_owner<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        as_owner(self.owner, work)
    }
}

fn as_owner<T: Send>(owner: Option<u32>, work: impl FnOnce() -> T + Send) -> T {
    match owner {
        Some(uid) => user::as_user(uid, work),
        None => work(),
    }
}

/// Why there cannot be such a workspace.
fn lacking(filesystem: Filesystem, who: Who) -> Option<String> {
    let kind = match filesystem {
        Filesystem::Here | Filesystem::Tmpfs => None,
        Filesystem::Ext4 => Some("ext4"),
        Filesystem::Btrfs => Some("btrfs"),
        Filesystem::Xfs => Some("xfs"),
        _ => Some("overlay"),
    };
    match (filesystem == Filesystem::Here, user::is_root()) {
        (true, true) => Some("root has filesystems of its own for this".to_owned()),
        (false, false) => Some("needs root to mount".to_owned()),
        (true, false) if who == Who::OrdinaryUser => {
            Some("root's tests of an ordinary user are this user's own tests".to_owned())
        }
        // The layers of an overlay lie on an ext4.
        _ => [kind, Some("ext4").filter(|_| kind == Some("overlay"))]
            .into_iter()
            .flatten()
            .find_map(mount::lacking),
    }
}

/// Mounts what holds the workspace, or its layers; the latest mount comes first.
fn mount(filesystem: Filesystem, site: &Site, mounts: &mut Vec<Mount>) -> PathBuf {
    use Filesystem::{Btrfs, Ext4, Here, LowerLayer, Metacopy, Tmpfs, UpperLayer, Xfs};
    if filesystem == Here {
        return site.path("disk");
    }
    // An image lies beside its mount point: in memory, so that nothing else is waited for.
    mounts.push(Mount::tmpfs(&site.path("memory"), 512 << 10));
    let disk = site.path("memory/disk");
    let mounted = match filesystem {
        Ext4 | UpperLayer | LowerLayer | Metacopy => Mount::ext4(&disk, 96),
        Btrfs => Mount::btrfs(&disk),
        Xfs => Mount::xfs(&disk),
        Here | Tmpfs => Mount::tmpfs(&disk, 96 << 10),
    };
    mounts.insert(0, mounted);
    disk
}
