//! Which boot of the machine this is.

use uuid::Uuid;

/// The kernel's name for one run of the machine, from one start to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BootId(pub(super) [u8; 16]);

impl BootId {
    /// Where the kernel tells it.
    pub(super) const FILE: &str = "/proc/sys/kernel/random/boot_id";

    /// Of the boot that is running; `None` if the kernel does not tell.
    pub fn current() -> Option<Self> {
        let text = std::fs::read_to_string(Self::FILE).ok()?;
        Uuid::try_parse(text.trim_end()).ok().map(|id| Self(id.into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_has_one_id() {
        let id = BootId::current();
        assert_eq!(id, BootId::current());
        assert_eq!(id.is_some(), std::path::Path::new(BootId::FILE).exists());
    }
}
