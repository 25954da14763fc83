//! The system calls that the program may not make: what Landlock does not see, and what no task needs.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen::Dword, SeccompCmpOp, SeccompCmpOp::*, SeccompCondition,
    SeccompFilter, SeccompRule, apply_filter, sock_filter,
};

use super::failure::{Doing, Result};

/// Not named by libc for every machine: x86-64 has numbers of its own, newer ones have the same.
const KEXEC_FILE_LOAD: i64 = if cfg!(target_arch = "x86_64") { 320 } else { 294 };

/// Refused whatever the arguments are.
const NEVER: &[i64] = &[
    // Reads, writes and connects past every filter.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Keyrings belong to the user, not to a process.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Queues, semaphores and memory that every process of the user can open by number or name.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // Other processes' memory and descriptors.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Another view of files: only whoever set the sandbox up decides.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_quotactl,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    // Files by number, past every path.
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    // The kernel itself.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    KEXEC_FILE_LOAD,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_acct,
];

/// A comparison of the low half of an argument.
type Test = (u8, SeccompCmpOp, u64);

/// Refused where all tests of a line hold.
fn sometimes() -> Vec<(i64, Vec<Test>)> {
    let families = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let (dgram, raw) = (libc::SOCK_DGRAM as u64, libc::SOCK_RAW as u64);
    let newuser = libc::CLONE_NEWUSER as u64;
    vec![
        // The session bus, container engines, agents of keys, our own sockets. Anything exotic besides.
        (libc::SYS_socket, families.map(|family| (0, Ne, family as u64)).to_vec()),
        // A pair talks to itself, but one of datagrams can be told another address later.
        (libc::SYS_socketpair, vec![(1, MaskedEq(0xf), dgram)]),
        (libc::SYS_socketpair, vec![(1, MaskedEq(0xf), raw)]),
        // In a new user namespace a process has every capability: half the kernel more to attack.
        (libc::SYS_unshare, vec![(0, MaskedEq(newuser), newuser)]),
        (libc::SYS_clone, vec![(0, MaskedEq(newuser), newuser)]),
        // Keys typed into somebody's terminal.
        (libc::SYS_ioctl, vec![(1, Eq, libc::TIOCSTI)]),
        (libc::SYS_ioctl, vec![(1, Eq, libc::TIOCLINUX)]),
    ]
}

/// Refused besides where processes outside can be named: whatever changes another process. A thread then cannot name itself
/// either, but by 0.
fn towards_others() -> Vec<(i64, Vec<Test>)> {
    const IOPRIO_WHO_PROCESS: u64 = 1;
    let by_first = [
        libc::SYS_prlimit64,
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setattr,
        libc::SYS_migrate_pages,
        libc::SYS_move_pages,
    ];
    let mut rules: Vec<_> = by_first.map(|call| (call, vec![(0, Ne, 0)])).to_vec();
    rules.extend([
        (libc::SYS_setpriority, vec![(0, Ne, libc::PRIO_PROCESS as u64)]),
        (libc::SYS_setpriority, vec![(1, Ne, 0)]),
        (libc::SYS_ioprio_set, vec![(0, Ne, IOPRIO_WHO_PROCESS)]),
        (libc::SYS_ioprio_set, vec![(1, Ne, 0)]),
    ]);
    rules
}

/// The filters, made before they are needed.
pub(super) struct Filters(Vec<BpfProgram>);

impl Filters {
    /// `others` says whether processes outside can be named.
    pub(super) fn new(others: bool) -> Result<Self> {
        Self::build(others).map_err(io::Error::other).doing("the filter of system calls cannot be made")
    }

    fn build(others: bool) -> std::result::Result<Self, seccompiler::BackendError> {
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
            NEVER.iter().map(|call| (*call, Vec::new())).collect();
        let more = if others { towards_others() } else { Vec::new() };
        for (call, tests) in sometimes().into_iter().chain(more) {
            let tests =
                tests.into_iter().map(|(at, how, value)| SeccompCondition::new(at, Dword, how, value));
            rules
                .entry(call)
                .or_default()
                .push(SeccompRule::new(tests.collect::<std::result::Result<_, _>>()?)?);
        }
        let filter = |rules, errno: i32| {
            let arch = std::env::consts::ARCH.try_into()?;
            SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno as u32), arch)?
                .try_into()
        };
        // Its flags lie in memory, where no filter can look; programs then take the older call.
        let clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
        Ok(Self(vec![other_abis(), filter(clone3, libc::ENOSYS)?, filter(rules, libc::EPERM)?]))
    }

    /// Puts them on this thread and all it starts. A call by the numbers of another architecture kills its process.
    pub(super) fn apply(&self) -> Result<()> {
        for filter in &self.0 {
            apply_filter(filter)
                .map_err(io::Error::other)
                .doing("the filter of system calls cannot be put on")?;
        }
        Ok(())
    }
}

/// Refuses the calls of x32: the same architecture, with other numbers.
fn other_abis() -> BpfProgram {
    const X32_BIT: u32 = 0x4000_0000;
    const LOAD_NUMBER: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let line = |code, k, jt, jf| sock_filter { code, jt, jf, k };
    vec![
        line(LOAD_NUMBER, 0, 0, 0),
        line(IF_AT_LEAST, X32_BIT, 0, 1),
        line(RETURN, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32, 0, 0),
        line(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0),
    ]
}
