//! The system calls that have no safe form: each with the reason why it is sound here.
//!
//! But for [`before_exec`], [`put_at`] and [`close_others_on_exec`] they run in the supervisor, which has a
//! single thread from its start to its end ([`alone`] is asked first), so that a forked child may do
//! whatever its parent may.
#![allow(unsafe_code, reason = "what forks, executes and mounts has no safe form")]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::{process::Pid, thread::UnshareFlags};

/// Which side of a fork this is.
pub(crate) enum Fork {
    /// The new process.
    Child,
    /// The old one, and the new one's number.
    Parent(Pid),
}

/// True if this process has one thread only.
pub(crate) fn alone() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() == 1)
}

pub(crate) fn fork() -> io::Result<Fork> {
    // SAFETY: the helper has one thread, so no lock can be held by another at the time, and the
    // child's memory is as consistent as the parent's.
    let pid = unsafe { libc::fork() };
    match pid {
        0 => Ok(Fork::Child),
        _ => Pid::from_raw(pid)
            .filter(|_| pid > 0)
            .map(Fork::Parent)
            .ok_or_else(io::Error::last_os_error),
    }
}

/// Ends this process at once, running nothing of what was set up for its end by its parent.
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: it takes no pointers and does not return.
    unsafe { libc::_exit(code) }
}

/// Closes all descriptors from 3 on. To be called before anything else: later one of them may be an
/// object's own.
pub(crate) fn close_inherited() -> io::Result<()> {
    // SAFETY: it takes no pointers. The helper has opened nothing yet, so no object owns what is
    // closed.
    let done = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, libc::c_uint::MAX, 0_u32) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Marks all descriptors from 3 on to be closed at an exec.
pub(crate) fn close_others_on_exec() -> io::Result<()> {
    // SAFETY: it takes no pointers. No descriptor is closed yet, so none that an object of ours
    // owns is closed behind its back.
    let done = unsafe {
        libc::syscall(libc::SYS_close_range, 3_u32, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Has a program that is started do this before it becomes the program: one system call, and nothing
/// that takes memory or a lock.
pub(crate) fn before_exec(
    command: &mut Command,
    act: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) {
    // SAFETY: what is done between fork and exec makes a system call and returns: it takes no lock
    // and no memory, as the caller says above.
    unsafe { command.pre_exec(act) };
}

/// Puts a file under a number, where it is not closed at an exec. To be called between fork and exec:
/// what had the number is closed.
pub(crate) fn put_at(handle: &OwnedFd, number: u8) -> io::Result<()> {
    let (handle, number) = (handle.as_raw_fd(), libc::c_int::from(number));
    let done = match handle == number {
        // SAFETY: it takes no pointers, and changes a flag of a descriptor that is open.
        true => unsafe { libc::fcntl(handle, libc::F_SETFD, 0) },
        // SAFETY: it takes no pointers. What it closes is this child's copy, and the objects that own
        // it in the parent are never dropped here: the child executes a program, or ends.
        false => unsafe { libc::dup2(handle, number) },
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Executes the program that is open, where the path is empty, or the one of that path; comes back
/// with the reason if it can't.
pub(crate) fn execute(
    program: impl AsFd,
    path: &CStr,
    arguments: &[CString],
    environment: &[CString],
) -> io::Error {
    let pointers = |texts: &[CString]| -> Vec<*const libc::c_char> {
        texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (arguments, environment) = (pointers(arguments), pointers(environment));
    // SAFETY: both lists end with null and point to strings that end with NUL, as the path does;
    // lists and strings live until the call is over.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            program.as_fd().as_raw_fd(),
            path.as_ptr(),
            arguments.as_ptr(),
            environment.as_ptr(),
            libc::AT_EMPTY_PATH,
        )
    };
    io::Error::last_os_error()
}

/// Leaves the namespaces named for new ones.
pub(crate) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: unsafe for what it does to threads that share descriptors or folders: there are none.
    unsafe { rustix::thread::unshare_unsafe(flags) }.map_err(Into::into)
}

/// Makes a mount and all beneath it give no set-uid rights, and read-only if that is asked. A
/// read-only mount is never made writable.
pub(crate) fn set_mount(folder: impl AsFd, path: &CStr, read_only: bool) -> io::Result<()> {
    let mut attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_NOSUID | if read_only { libc::MOUNT_ATTR_RDONLY } else { 0 },
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: the path ends with NUL; the attributes are a whole `mount_attr` of the size that is
    // said, and both outlive the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            folder.as_fd().as_raw_fd(),
            path.as_ptr(),
            libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
            &raw mut attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Installs a filter for the calling thread and what it becomes, and gives back what its questions
/// are read from.
pub(crate) fn listen(program: &[seccompiler::sock_filter]) -> io::Result<OwnedFd> {
    let mut sizes =
        libc::seccomp_notif_sizes { seccomp_notif: 0, seccomp_notif_resp: 0, seccomp_data: 0 };
    // SAFETY: the sizes are a whole `seccomp_notif_sizes`, which this call writes.
    let done = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_NOTIF_SIZES, 0_u32, &raw mut sizes)
    };
    let ours = [size_of::<libc::seccomp_notif>(), size_of::<libc::seccomp_notif_resp>()];
    if done != 0 || [sizes.seccomp_notif, sizes.seccomp_notif_resp].map(usize::from) != ours {
        return Err(io::Error::from(io::ErrorKind::Unsupported));
    }
    let mut steps: Vec<libc::sock_filter> = program
        .iter()
        .map(|step| libc::sock_filter { code: step.code, jt: step.jt, jf: step.jf, k: step.k })
        .collect();
    let len = libc::c_ushort::try_from(steps.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len, filter: steps.as_mut_ptr() };
    // SAFETY: the program says how many steps it points to; both outlive the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    };
    let listener = i32::try_from(done).ok().filter(|listener| *listener >= 0);
    let Some(listener) = listener else { return Err(io::Error::last_os_error()) };
    // SAFETY: the call has opened it just now, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(listener) })
}

/// Reads a question from a listener at which one is ready: its number. `None` if who asked is gone.
pub(crate) fn asked(listener: impl AsFd) -> io::Result<Option<u64>> {
    let mut question = std::mem::MaybeUninit::<libc::seccomp_notif>::zeroed();
    let request = libc::SECCOMP_IOCTL_NOTIF_RECV;
    // SAFETY: it is a whole `seccomp_notif`, zeroed as the call demands, which it writes; its size
    // was held against the kernel's when the listener was made.
    let done = unsafe { libc::ioctl(listener.as_fd().as_raw_fd(), request, question.as_mut_ptr()) };
    if done != 0 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::ENOENT | libc::EINTR) => Ok(None),
            _ => Err(error),
        };
    }
    // SAFETY: zeroed before the call; zeros are a `seccomp_notif`.
    let question = unsafe { question.assume_init() };
    Ok(Some(question.id))
}

/// Answers a question by a descriptor: who asked has this file from here on, under a number of its
/// own, which is what its call returns. One step for the kernel: who is gone, or was interrupted,
/// has nothing.
pub(crate) fn give(listener: impl AsFd, id: u64, file: impl AsFd) -> io::Result<()> {
    let number = |number: i32| u32::try_from(number).map_err(io::Error::other);
    let given = libc::seccomp_notif_addfd {
        id,
        flags: u32::try_from(libc::SECCOMP_ADDFD_FLAG_SEND).map_err(io::Error::other)?,
        srcfd: number(file.as_fd().as_raw_fd())?,
        newfd: 0,
        newfd_flags: number(libc::O_CLOEXEC)?,
    };
    let request = libc::SECCOMP_IOCTL_NOTIF_ADDFD;
    // SAFETY: it is a whole `seccomp_notif_addfd`, which the call reads; the file is open for the
    // time of the call, and nothing of this process is closed or given up by it.
    let done = unsafe { libc::ioctl(listener.as_fd().as_raw_fd(), request, &raw const given) };
    if done >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Answers a question: the call fails, for now. A caller that is gone gets no answer.
pub(crate) fn refuse(listener: impl AsFd, id: u64) -> io::Result<()> {
    let mut answer = libc::seccomp_notif_resp { id, val: 0, error: -libc::EAGAIN, flags: 0 };
    let request = libc::SECCOMP_IOCTL_NOTIF_SEND;
    // SAFETY: it is a whole `seccomp_notif_resp`, which the call reads.
    let done = unsafe { libc::ioctl(listener.as_fd().as_raw_fd(), request, &raw mut answer) };
    if done == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::ENOENT) { Ok(()) } else { Err(error) }
}

/// Has the ends and stops of children and of what is traced seen by a descriptor, which is readable
/// then.
pub(crate) fn children_wake() -> io::Result<OwnedFd> {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: it writes a whole set to where it is pointed.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: the set was written just now; the signal is one that there is.
    unsafe { libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD) };
    // SAFETY: the set was written just now; no old set is asked for. A signal that is blocked is
    // kept, though its default is that it is ignored.
    let done = unsafe { libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut()) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
    // SAFETY: the set was written just now, and a new descriptor is asked for.
    let opened = unsafe { libc::signalfd(-1, set.as_ptr(), flags) };
    if opened < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has opened it just now, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(opened) })
}

/// Traces a process of one thread, and all that it will start, as one whose tracer's end is its
/// own.
pub(crate) fn seize(process: Pid) -> io::Result<()> {
    let options = libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_EXITKILL;
    // SAFETY: no address is given: the last argument is a number.
    let done = unsafe {
        libc::ptrace(
            libc::PTRACE_SEIZE,
            process.as_raw_nonzero().get(),
            std::ptr::null_mut::<libc::c_void>(),
            libc::c_long::from(options),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The process that a traced one, stopped at a fork, has begun; `None` if it is gone.
pub(crate) fn begun(parent: Pid) -> Option<i32> {
    let mut child: libc::c_ulong = 0;
    // SAFETY: it writes one long number to where it is pointed, or nothing.
    let done = unsafe {
        libc::ptrace(
            libc::PTRACE_GETEVENTMSG,
            parent.as_raw_nonzero().get(),
            std::ptr::null_mut::<libc::c_void>(),
            &raw mut child,
        )
    };
    (done == 0).then(|| i32::try_from(child).ok()).flatten()
}

/// How one that is traced goes on.
#[derive(Clone, Copy)]
pub(crate) enum Onward {
    /// With this signal; 0 is none.
    With(i32),
    /// It stays stopped until a signal lets it on, and is seen then.
    Stopped,
}

/// Lets one that is traced and stopped go on. One that is gone needs no leave.
pub(crate) fn let_on(thread: Pid, how: Onward) {
    let (request, signal) = match how {
        Onward::With(signal) => (libc::PTRACE_CONT, signal),
        Onward::Stopped => (libc::PTRACE_LISTEN, 0),
    };
    // SAFETY: no address is given: the last argument is a number.
    unsafe {
        libc::ptrace(
            request,
            thread.as_raw_nonzero().get(),
            std::ptr::null_mut::<libc::c_void>(),
            libc::c_long::from(signal),
        )
    };
}

/// Takes up the loopback interface of this network namespace.
pub(crate) fn loopback_up(socket: impl AsFd) -> io::Result<()> {
    let mut name = [0; libc::IFNAMSIZ];
    for (to, from) in name.iter_mut().zip(b"lo") {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    let flags = libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or(0);
    let mut request = libc::ifreq {
        ifr_name: name,
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: flags },
    };
    // SAFETY: the request is a whole `ifreq`, of which this call reads name and flags.
    let done =
        unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::SIOCSIFFLAGS, &raw mut request) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Gives every signal its default action and lets none be blocked: a caller's choices are inherited
/// through exec.
pub(crate) fn reset_signals() -> io::Result<()> {
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: no handler is given. Those that can't be set say so, and need no reset.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    let mut none = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: it writes a whole set to where it is pointed.
    unsafe { libc::sigemptyset(none.as_mut_ptr()) };
    // SAFETY: the set was written just now; no old set is asked for.
    let done = unsafe { libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut()) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Microseconds of processor time of the children that were waited for, and of theirs.
pub(crate) fn children_cpu_us() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: it writes a whole `rusage` to where it is pointed, or nothing.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) };
    // SAFETY: zeroed before the call; zeros are a `rusage`.
    let usage = unsafe { usage.assume_init() };
    [usage.ru_utime, usage.ru_stime]
        .iter()
        .map(|time| {
            let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
            let micros = u64::try_from(time.tv_usec).unwrap_or(0);
            seconds.saturating_mul(1_000_000).saturating_add(micros)
        })
        .fold(0, u64::saturating_add)
}
