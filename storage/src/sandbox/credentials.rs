//! Becoming a user that can do less.

use rustix::fs::{Gid, Uid};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_thread_groups, set_thread_res_gid,
    set_thread_res_uid,
};

use super::failure::{Doing, Result};
use super::order::PodUser;

/// Becomes the user, in its one group. This process must be root and have one thread.
pub(super) fn become_user(PodUser { uid, gid }: PodUser) -> Result<()> {
    let what = format_args!("user {uid} cannot be taken on");
    let (user, group) = (Uid::from_raw(uid), Gid::from_raw(gid));
    set_thread_groups(&[]).doing(what)?;
    set_thread_res_gid(group, group, group).doing(what)?;
    set_thread_res_uid(user, user, user).doing(what)?;
    // Changing the user hides /proc/self from oneself.
    set_dumpable_behavior(DumpableBehavior::Dumpable).doing(what)
}

/// Gives up every capability, for all programs to come.
pub(super) fn drop_bounding_set() {
    // Without CAP_SETPCAP the set stays; nothing can be had from it without new privileges, which there are none of.
    for number in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match capability_is_in_bounding_set(capability) {
            Ok(true) => {
                let _ = remove_capability_from_bounding_set(capability);
            }
            Ok(false) => {}
            // There are no more.
            Err(_) => break,
        }
    }
}

/// Gives up every capability of this process.
pub(super) fn drop_capabilities() -> Result<()> {
    let none = CapabilitySet::empty();
    clear_ambient_capability_set().doing("capabilities cannot be given up")?;
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .doing("capabilities cannot be given up")
}
