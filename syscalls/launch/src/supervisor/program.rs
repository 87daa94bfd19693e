//! The last steps before a program is executed, in the process that becomes it.
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, PathBeneath,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::fs::{Mode, OFlags, SeekFrom, open, seek};
use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::mounts::{again, is_folder};
use super::{At, Failed, Step, door, filter, group::Group, init::tell};
use crate::carry::{Given, given};
use crate::plan::{Access, DEVICES, Limits, Network, Plan, SYSTEM};
use crate::report::Achieved;
use crate::sys;
use crate::wire::Note;

/// Becomes the program, or tells why not and ends.
pub(crate) fn run(
    mut plan: Plan,
    achieved: Achieved,
    proc: bool,
    notes: &OwnedFd,
    way: &OwnedFd,
    group: Option<&Group>,
) -> ! {
    // On the host's own mount its modes and times could be changed by `/proc/self/exe`.
    let own = match achieved.mounts {
        true => {
            again(&plan.program).map_err(|Failed(_, error)| Failed(Step::Program, error)).map(Some)
        }
        false => Ok(None),
    };
    let confined = own.and_then(|own| {
        if let Some(own) = own {
            plan.program = own;
        }
        confine(&plan, achieved, proc, way, group)
    });
    let note = match confined {
        Ok(achieved) if achieved.level(plan.network) < plan.required => Note::TooWeak(achieved),
        Ok(achieved) => {
            tell(notes, Note::Begins(achieved));
            match door::wait_for_leave(way).at(Step::Fork) {
                Ok(()) => Note::NotExecuted(execute(plan)),
                Err(Failed(step, error)) => Note::Failed(step.number(), error),
            }
        }
        Err(Failed(step, error)) => Note::Failed(step.number(), error),
    };
    tell(notes, note);
    sys::exit(127)
}

fn confine(
    plan: &Plan,
    mut achieved: Achieved,
    proc: bool,
    way: &OwnedFd,
    group: Option<&Group>,
) -> Result<Achieved, Failed> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).at(Step::Session)?;
    rustix::process::setsid().at(Step::Session)?;
    if let Some(group) = group {
        group.join().at(Step::Limits)?;
    }
    let null = open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    match (&plan.terminal, &plan.input) {
        (Some(terminal), _) => take_up(terminal)?,
        (None, Some(input)) => {
            let own = own_input(input, achieved.mounts)?;
            rustix::stdio::dup2_stdin(own.as_ref().unwrap_or(input)).at(Step::Streams)?;
        }
        (None, None) => rustix::stdio::dup2_stdin(null.at(Step::Streams)?).at(Step::Streams)?,
    }
    sys::close_others_on_exec().at(Step::Descriptors)?;
    give_up_privileges().at(Step::Privileges)?;
    // By the limit of who started it: other programs of the user may have many handles on their way.
    door::introduce(way, plan.door).at(if plan.door { Step::Door } else { Step::Session })?;
    limit(&plan.limits, achieved.user).at(Step::Limits)?;
    achieved.landlock = landlock(plan, proc).map_err(|()| Failed(Step::Landlock, libc::EINVAL))?;
    achieved.seccomp = filter::apply(plan.network, achieved.mounts, plan.door)
        .map_err(|()| Failed(Step::Seccomp, libc::EINVAL))?;
    Ok(achieved)
}

/// The input as this view has it, for reading; `None` where the handle itself gives no more.
fn own_input(input: &OwnedFd, mounts: bool) -> Result<Option<OwnedFd>, Failed> {
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
    match given(input).at(Step::Streams)? {
        Given::Itself => Ok(None),
        Given::Null => open("/dev/null", flags, Mode::empty()).at(Step::Streams).map(Some),
        // The host has carried the bytes of all else.
        Given::Bytes => Err(Failed(Step::Streams, libc::EINVAL)),
        Given::File => {
            let here = if mounts { Some(again(input)?) } else { None };
            let here = here.as_ref().unwrap_or(input).as_raw_fd();
            let own = open(format!("/proc/self/fd/{here}"), flags, Mode::empty());
            let own = own.at(Step::Streams)?;
            let offset = seek(input, SeekFrom::Current(0)).at(Step::Streams)?;
            seek(&own, SeekFrom::Start(offset)).at(Step::Streams)?;
            Ok(Some(own))
        }
    }
}

/// The terminal is this session's own, and all of the standard streams.
fn take_up(terminal: &OwnedFd) -> Result<(), Failed> {
    rustix::process::ioctl_tiocsctty(terminal).at(Step::Terminal)?;
    rustix::stdio::dup2_stdin(terminal).at(Step::Terminal)?;
    rustix::stdio::dup2_stdout(terminal).at(Step::Terminal)?;
    rustix::stdio::dup2_stderr(terminal).at(Step::Terminal)
}

/// Executes it, or says the system's reason why not.
fn execute(mut plan: Plan) -> i32 {
    let Some((arguments, environment)) = words(&mut plan) else { return libc::EINVAL };
    let mut error = sys::execute(&plan.program, c"", &arguments, &environment);
    // A script's interpreter opens the script by its descriptor, which must stay open then.
    if error.raw_os_error() == Some(libc::ENOENT)
        && rustix::io::fcntl_setfd(&plan.program, rustix::io::FdFlags::empty()).is_ok()
    {
        error = sys::execute(&plan.program, c"", &arguments, &environment);
    }
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// The arguments and variables, as the system takes them.
pub(crate) fn words(plan: &mut Plan) -> Option<(Vec<CString>, Vec<CString>)> {
    let texts = |texts: Vec<OsString>| -> Option<Vec<CString>> {
        texts.into_iter().map(|text| CString::new(text.into_vec()).ok()).collect()
    };
    let variables = std::mem::take(&mut plan.environment).into_iter().map(|(mut name, value)| {
        name.push(OsStr::new("="));
        name.push(value);
        name
    });
    Some((texts(std::mem::take(&mut plan.arguments))?, texts(variables.collect())?))
}

/// Limits of the system's own. `user` says whether the user namespace is its own: elsewhere all
/// that its user runs on the host would count as its processes.
fn limit(limits: &Limits, user: bool) -> rustix::io::Result<()> {
    let both = |most| Rlimit { current: Some(most), maximum: Some(most) };
    setrlimit(Resource::Core, both(0))?;
    for (resource, most) in [
        (Resource::Fsize, limits.file_bytes),
        (Resource::Nofile, limits.descriptors),
        (Resource::Data, limits.memory_bytes),
        (Resource::Nproc, limits.processes.filter(|_| user).map(u64::from)),
        // Each process for itself, should the helper be late.
        (Resource::Cpu, limits.cpu_ms.map(|cpu| cpu.div_ceil(1000).saturating_add(1))),
    ] {
        if let Some(most) = most {
            let now = rustix::process::getrlimit(resource).maximum;
            setrlimit(resource, both(now.map_or(most, |now| now.min(most))))?;
        }
    }
    Ok(())
}

/// Capabilities (of the user namespace, or root's), and whatever an exec could bring.
pub(crate) fn give_up_privileges() -> rustix::io::Result<()> {
    let all = (0..64).map(|number| CapabilitySet::from_bits_retain(1 << number));
    give_up(all.fold(CapabilitySet::empty(), |all, one| all | one))
}

/// These capabilities, and whatever an exec could bring.
pub(crate) fn give_up(these: CapabilitySet) -> rustix::io::Result<()> {
    let each = (0..64).map(|number| CapabilitySet::from_bits_retain(1 << number));
    for one in each.filter(|one| these.contains(*one)) {
        // Those that this process may not drop or the system does not know are not to be had by an
        // exec either: no new privileges.
        match rustix::thread::remove_capability_from_bounding_set(one) {
            Ok(()) | Err(_) => {}
        }
    }
    rustix::thread::clear_ambient_capability_set()?;
    let had = rustix::thread::capabilities(None)?;
    let without = |set: CapabilitySet| CapabilitySet::from_bits_retain(set.bits() & !these.bits());
    let sets = CapabilitySets {
        effective: without(had.effective),
        permitted: without(had.permitted),
        inheritable: without(had.inheritable),
    };
    rustix::thread::set_capabilities(None, sets)?;
    rustix::thread::set_no_new_privs(true)
}

/// Leaves it the files that were granted. Says the ABI, 0 where there is no Landlock.
fn landlock(plan: &Plan, proc: bool) -> Result<u8, ()> {
    restrict(plan, proc).map_err(|_| ())
}

fn restrict(plan: &Plan, proc: bool) -> Result<u8, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V7))?
        .scope(Scope::from_all(ABI::V7))?;
    if plan.network == Network::None {
        ruleset = ruleset.handle_access(AccessNet::from_all(ABI::V7))?;
    }
    let mut rules = ruleset.create()?;
    rules = add(rules, &plan.program, Access::Execute)?;
    for granted in &plan.granted {
        rules = add(rules, &granted.handle, granted.access)?;
    }
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    if plan.system {
        for path in SYSTEM {
            if let Ok(handle) = open(path, flags, Mode::empty()) {
                rules = add(rules, &handle, Access::Execute)?;
            }
        }
        for path in DEVICES {
            if let Ok(handle) = open(path, flags, Mode::empty()) {
                rules = add(rules, &handle, Access::Write)?;
            }
        }
    }
    if let Some(terminal) = &plan.terminal {
        // By its names: programs open it again, and set its modes.
        let rights = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
        rules = rules.add_rule(PathBeneath::new(terminal, rights))?;
        if let Ok(handle) = open("/dev/tty", flags, Mode::empty()) {
            rules = rules.add_rule(PathBeneath::new(handle, rights))?;
        }
    }
    if proc && let Ok(handle) = open("/proc", flags, Mode::empty()) {
        rules = add(rules, &handle, Access::Read)?;
    }
    let status = rules.restrict_self()?;
    Ok(match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => abi(effective_abi),
        _ => 0,
    })
}

fn add(
    rules: RulesetCreated,
    handle: &OwnedFd,
    access: Access,
) -> Result<RulesetCreated, RulesetError> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let mut rights = match access {
        Access::Read => read,
        Access::Execute => read | AccessFs::Execute,
        // Devices are made by nobody.
        Access::Write => {
            let not = AccessFs::Execute | AccessFs::MakeChar | AccessFs::MakeBlock;
            AccessFs::from_all(ABI::V7) & !(not | AccessFs::IoctlDev)
        }
    };
    if !is_folder(handle) {
        rights &= AccessFs::from_file(ABI::V7);
    }
    rules.add_rule(PathBeneath::new(handle, rights))
}

/// An ABI's number.
fn abi(abi: ABI) -> u8 {
    let known = [ABI::V1, ABI::V2, ABI::V3, ABI::V4, ABI::V5, ABI::V6, ABI::V7, ABI::V8, ABI::V9];
    let at = known.iter().position(|known| *known == abi);
    at.and_then(|at| u8::try_from(at.saturating_add(1)).ok()).unwrap_or(0)
}
