//! What the user a rollback runs for can give a file.

use crate::ckpt::format::Meta;
use crate::ckpt::view::View;
use crate::peer::Peer;

/// Whose rights the thread has.
#[derive(Clone, Debug)]
pub(super) struct Rights {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
    /// Whether the daemon itself is somebody else: then nobody gets a set-id bit by asking it.
    served: bool,
    /// What of a snapshot it may be given.
    pub(super) view: View,
}

const SET_USER_ID: u32 = 0o4000;
const SET_GROUP_ID: u32 = 0o2000;

impl Rights {
    /// Those that [`Peer::enter`] gives.
    pub(super) fn of(peer: &Peer) -> Self {
        let served = !peer.is_privileged();
        let Peer { uid, gid, groups } = if served { peer.clone() } else { Peer::own() };
        Self { uid, gid, groups, served, view: View::of(peer) }
    }

    /// Whether no rule about owners binds it.
    pub(super) fn all(&self) -> bool {
        self.uid == 0
    }

    /// Whether it may change mode and times of a file of that owner.
    pub(super) fn owns(&self, uid: u32) -> bool {
        self.all() || self.uid == uid
    }

    /// The part of `wanted` that it can give a file which is now as `now` says, or a new one; and whether that is
    /// less. What it cannot give stays as it is; a set-id bit or a capability without its owner is not given.
    /// `program`: it may be one, so that set-id bits give power.
    pub(super) fn attainable(&self, wanted: &Meta, now: Option<&Meta>, program: bool) -> (Meta, bool) {
        if self.all() {
            return (wanted.clone(), false);
        }
        let mut meta = wanted.clone();
        meta.uid = now.map_or(self.uid, |now| now.uid);
        if wanted.gid != self.gid && !self.groups.contains(&wanted.gid) {
            meta.gid = now.map_or(self.gid, |now| now.gid);
        }
        let mut refused = 0;
        if meta.uid != wanted.uid || (self.served && program) {
            refused |= SET_USER_ID | SET_GROUP_ID;
        } else if meta.gid != wanted.gid {
            refused |= SET_GROUP_ID;
        }
        // Unless they are there already.
        let had = now.filter(|now| (now.uid, now.gid) == (meta.uid, meta.gid)).map_or(0, |now| now.mode);
        meta.mode &= !refused | had;
        // Of these names only root may set any; what the file has of them stays.
        let fixed = |name: &[u8]| name.starts_with(b"security.") || name.starts_with(b"trusted.");
        let there = now.map_or(&[][..], |now| &now.xattrs);
        let mut xattrs: Vec<_> = there.iter().filter(|(name, _)| fixed(name)).cloned().collect();
        xattrs.extend(wanted.xattrs.iter().filter(|(name, _)| !fixed(name)).cloned());
        xattrs.sort();
        meta.xattrs = xattrs.into();
        // A label that every new file gets by itself is no loss worth a warning; a capability is.
        let privileged = |meta: &Meta| meta.xattrs.iter().find(|(name, _)| **name == *CAPABILITY).cloned();
        let less = (meta.uid, meta.gid, meta.mode) != (wanted.uid, wanted.gid, wanted.mode)
            || privileged(wanted).is_some_and(|capability| privileged(&meta) != Some(capability));
        (meta, less)
    }
}

/// The attribute that gives a program some of root's power.
pub(super) const CAPABILITY: &[u8] = b"security.capability";

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(uid: u32) -> Rights {
        Rights { uid, gid: uid, groups: vec![7], served: false, view: View::whole() }
    }

    fn meta(mode: u32, uid: u32, gid: u32, xattrs: &[&str]) -> Meta {
        let xattrs = xattrs.iter().map(|name| (name.as_bytes().into(), [1].into())).collect();
        Meta { mode, uid, gid, xattrs, ..Meta::default() }
    }

    #[test]
    fn root_can_give_everything() {
        let wanted = meta(0o4755, 1, 2, &["security.capability", "user.x"]);
        assert_eq!(rights(0).attainable(&wanted, None, true), (wanted, false));
    }

    #[test]
    fn a_user_gets_its_own_set_id_bits_and_groups_back() {
        let wanted = meta(0o6755, 5, 7, &["system.posix_acl_access", "user.x"]);
        assert_eq!(rights(5).attainable(&wanted, None, true), (wanted, false));
    }

    #[test]
    fn no_set_id_bit_comes_without_its_owner_and_no_capability_at_all() {
        let foreign = meta(0o6755, 0, 7, &[]);
        assert_eq!(rights(5).attainable(&foreign, None, true), (meta(0o755, 5, 7, &[]), true));
        let group = meta(0o6755, 5, 9, &[]);
        assert_eq!(rights(5).attainable(&group, None, true), (meta(0o4755, 5, 5, &[]), true));
        let capable = meta(0o755, 5, 5, &["security.capability"]);
        assert_eq!(rights(5).attainable(&capable, None, true), (meta(0o755, 5, 5, &[]), true));
    }

    #[test]
    fn nobody_gets_a_set_id_program_from_roots_daemon_but_shared_directories_stay_shared() {
        let served = Rights { served: true, ..rights(5) };
        let wanted = meta(0o6755, 5, 7, &[]);
        assert_eq!(served.attainable(&wanted, None, true), (meta(0o755, 5, 7, &[]), true));
        assert_eq!(served.attainable(&wanted, None, false), (wanted.clone(), false));
        // One that is there is not taken away.
        let now = meta(0o4700, 5, 7, &[]);
        assert_eq!(served.attainable(&wanted, Some(&now), true), (meta(0o4755, 5, 7, &[]), true));
        assert_eq!(served.attainable(&wanted, Some(&wanted), true), (wanted.clone(), false));
    }

    #[test]
    fn what_it_cannot_give_stays_as_it_is() {
        let now = meta(0o644, 5, 9, &["security.selinux", "user.old"]);
        let wanted = meta(0o600, 5, 11, &["user.new"]);
        let given = meta(0o600, 5, 9, &["security.selinux", "user.new"]);
        assert_eq!(rights(5).attainable(&wanted, Some(&now), true), (given, true));
    }
}
