//! The system calls that a program is not given.
//!
//! Three filters, of which the kernel takes the strictest answer: calls that are not known here
//! (newer than this list, or of another ABI's numbers) and those that glibc does without are
//! answered as if they were not there; what is refused is refused by `EPERM`. Calls of a foreign
//! architecture end the program.
use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

use crate::plan::{DOOR, Network};

#[cfg(target_arch = "x86_64")]
const ARCH: Option<TargetArch> = Some(TargetArch::x86_64);
#[cfg(target_arch = "aarch64")]
const ARCH: Option<TargetArch> = Some(TargetArch::aarch64);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCH: Option<TargetArch> = None;

/// The architecture as filters see it.
#[cfg(target_arch = "x86_64")]
const AUDIT: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
const AUDIT: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const AUDIT: Option<u32> = None;

/// The last call that this list has been read against: `mseal`, of Linux 6.10. Calls of x32 have
/// higher numbers too.
const LAST: u32 = 462;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Confines the calling thread and what it becomes. `mounts` says whether modes and owners of
/// others' files are held by read-only mounts, `door` whether sockets by [`DOOR`] are left to who
/// listens. Says whether filters are to be had on this architecture.
pub(crate) fn apply(network: Network, mounts: bool, door: bool) -> Result<bool, ()> {
    let Some(arch) = ARCH else { return Ok(false) };
    let absent = filter(absent(), libc::ENOSYS, arch)?;
    let refused = filter(refused(network, mounts, door)?, libc::EPERM, arch)?;
    for program in [absent, refused, unknown()] {
        apply_filter(&program).map_err(|_| ())?;
    }
    Ok(true)
}

fn filter(rules: Rules, errno: i32, arch: TargetArch) -> Result<BpfProgram, ()> {
    let errno = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, errno, arch).map_err(|_| ())?;
    filter.try_into().map_err(|_| ())
}

/// `if nr > LAST { ENOSYS } else { allow }`
fn unknown() -> BpfProgram {
    use libc::{BPF_ABS, BPF_JGT, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W};
    let code = |parts: u32| u16::try_from(parts).unwrap_or(0);
    let step =
        |parts: u32, jt: u8, k: u32| seccompiler::sock_filter { code: code(parts), jt, jf: 0, k };
    vec![
        // `seccomp_data.nr` is its first word.
        step(BPF_LD | BPF_W | BPF_ABS, 0, 0),
        step(BPF_JMP | BPF_JGT | BPF_K, 1, LAST),
        step(BPF_RET | BPF_K, 0, libc::SECCOMP_RET_ALLOW),
        step(BPF_RET | BPF_K, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs()),
    ]
}

/// True if filters exist on this architecture.
pub(crate) fn known() -> bool {
    ARCH.is_some()
}

/// Asks whoever listens where a socket is made by [`DOOR`]; `None` on architectures that are not
/// known here. Calls of a foreign architecture are left to the other filters.
pub(crate) fn asks() -> Option<BpfProgram> {
    use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W};
    let code = |parts: u32| u16::try_from(parts).unwrap_or(0);
    let step =
        |parts: u32, jt: u8, k: u32| seccompiler::sock_filter { code: code(parts), jt, jf: 0, k };
    let answer = |answer: u32| step(BPF_RET | BPF_K, 0, answer);
    let socket = u32::try_from(libc::SYS_socket).unwrap_or(u32::MAX);
    let unix = libc::AF_UNIX.unsigned_abs();
    let mut steps = Vec::new();
    // `seccomp_data` is the call's number, the architecture, and from its 16th byte on the
    // arguments, of eight bytes, the lower half of each first.
    for (at, value) in [(4, AUDIT?), (0, socket), (16, unix), (32, DOOR)] {
        steps.extend([
            step(BPF_LD | BPF_W | BPF_ABS, 0, at),
            // Skips the answer that follows where it is so.
            step(BPF_JMP | BPF_JEQ | BPF_K, 1, value),
            answer(libc::SECCOMP_RET_ALLOW),
        ]);
    }
    steps.push(answer(libc::SECCOMP_RET_USER_NOTIF));
    Some(steps)
}

/// Calls that programs do without, and that carry what a filter can't see: `clone3`'s flags,
/// `openat2`'s modes and `io_uring`'s operations.
fn absent() -> Rules {
    let calls = [
        libc::SYS_clone3,
        // Its modes stand in memory; programs go on with `openat`.
        libc::SYS_openat2,
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
    ];
    calls.into_iter().map(|call| (call, Vec::new())).collect()
}

/// Other processes, namespaces and mounts, the kernel's own state, keys, and sockets.
fn refused(network: Network, mounts: bool, door: bool) -> Result<Rules, ()> {
    let none = |call| (call, Vec::new());
    let mut rules: Rules = [OTHERS, KERNEL, ATTRIBUTES].concat().into_iter().map(none).collect();
    if !mounts {
        rules.extend(METADATA.iter().copied().map(none));
    }
    // A file that runs as its owner is a way out for whoever finds it.
    for (call, argument) in MODES {
        rules.entry(*call).or_insert([has(*argument, 0o4000)?, has(*argument, 0o2000)?].into());
    }
    let flags = [
        // Whoever traces the program would not see what begins.
        libc::CLONE_UNTRACED,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ];
    let flags = flags.map(|flag| has(0, u64::from(flag.unsigned_abs())));
    rules.insert(libc::SYS_clone, flags.into_iter().collect::<Result<_, ()>>()?);
    // What types into a terminal in another's name.
    let typing = [libc::TIOCSTI, libc::TIOCLINUX].map(|request| is(1, request));
    rules.insert(libc::SYS_ioctl, typing.into_iter().collect::<Result<_, ()>>()?);
    let families: &[i32] = match network {
        Network::None => &[],
        Network::Loopback => &[libc::AF_INET, libc::AF_INET6],
        Network::Host => &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
    };
    let sockets = match (door, families) {
        (true, families) => {
            vec![not(&[families, &[libc::AF_UNIX]].concat())?, no_door()?]
        }
        // Without a condition: all of them.
        (false, []) => Vec::new(),
        (false, families) => vec![not(families)?],
    };
    rules.insert(libc::SYS_socket, sockets);
    // Pairs reach nobody else; but those of datagrams send to whatever address is said, and raw
    // ones are the same.
    let kinds = [libc::SOCK_DGRAM, libc::SOCK_RAW].map(kind);
    let pairs = [not(&[libc::AF_UNIX])].into_iter().chain(kinds);
    rules.insert(libc::SYS_socketpair, pairs.collect::<Result<_, ()>>()?);
    Ok(rules)
}

const OTHERS: &[i64] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_fanotify_init,
];

const KERNEL: &[i64] = &[
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_personality,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// Extended attributes: a host may keep there what it thinks of a file.
const ATTRIBUTES: &[i64] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
];

/// Modes, owners and times: Landlock does not hold them.
const METADATA: &[i64] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
];

/// Calls that give a file its mode, and which argument that is.
const MODES: &[(i64, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (libc::SYS_fchmodat2, 2),
    (libc::SYS_openat, 3),
    (libc::SYS_mknodat, 2),
    (libc::SYS_mkdirat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, 1),
];

/// The rule for a 64-bit argument with this bit.
fn has(argument: u8, bit: u64) -> Result<SeccompRule, ()> {
    let operation = SeccompCmpOp::MaskedEq(bit);
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Qword, operation, bit);
    SeccompRule::new(vec![condition.map_err(|_| ())?]).map_err(|_| ())
}

/// The rule for an argument of this value, of which the kernel takes 32 bits.
fn is(argument: u8, value: u64) -> Result<SeccompRule, ()> {
    let condition =
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value);
    SeccompRule::new(vec![condition.map_err(|_| ())?]).map_err(|_| ())
}

/// The rule for a socket of this type, with any flags.
fn kind(kind: i32) -> Result<SeccompRule, ()> {
    /// The mask of the type in the argument (`SOCK_TYPE_MASK`).
    const TYPE: u64 = 0xf;
    let operation = SeccompCmpOp::MaskedEq(TYPE);
    let kind = u64::from(kind.unsigned_abs());
    let condition = SeccompCondition::new(1, SeccompCmpArgLen::Dword, operation, kind);
    SeccompRule::new(vec![condition.map_err(|_| ())?]).map_err(|_| ())
}

/// The rule for a Unix socket of any protocol but the door's.
fn no_door() -> Result<SeccompRule, ()> {
    let word = SeccompCmpArgLen::Dword;
    let unix = u64::from(libc::AF_UNIX.unsigned_abs());
    let conditions = [
        SeccompCondition::new(0, word.clone(), SeccompCmpOp::Eq, unix),
        SeccompCondition::new(2, word, SeccompCmpOp::Ne, u64::from(DOOR)),
    ];
    let conditions: Result<Vec<_>, _> = conditions.into_iter().collect();
    SeccompRule::new(conditions.map_err(|_| ())?).map_err(|_| ())
}

/// The rule for a socket of none of these families.
fn not(families: &[i32]) -> Result<SeccompRule, ()> {
    let conditions = families.iter().map(|family| {
        let family = u64::from(family.unsigned_abs());
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family).map_err(|_| ())
    });
    SeccompRule::new(conditions.collect::<Result<_, ()>>()?).map_err(|_| ())
}
