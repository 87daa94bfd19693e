//! Telling somebody that a call waits: a program that the operator named on record is run with the
//! ask on its standard input.
//!
//! It gets nothing else: no arguments, no environment, `/` as its folder. One runs at a time, for
//! all that has come meanwhile; it is killed with its process group when its time is over, and
//! nothing that it prints or says is read: it tells, it never answers. A lost notification loses
//! nothing, since the request is on record.

use std::io::{ErrorKind, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use syscap_format::{Canonical, MapBuilder, Notify, Seq, ToolResult, json};
use syscap_kernel::AskView;

use crate::approvals::asks::{self, WaitingCall};
use crate::driver::core::{Core, Notices};
use crate::server::waits;

/// Longest description of one ask, in bytes of CBOR: of a longer one only its number is told.
const ASK_BYTES_MAX: usize = 3_072;
/// How often a run is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// Between the end of a run and the next one: an agent that asks without end does not make others
/// run without end.
const PAUSE: Duration = Duration::from_millis(500);
/// How long a home that closes waits for what is left to tell, and then for what it kills.
const LAST: Duration = Duration::from_secs(2);

/// A call was answered: where it begins to wait for a person, somebody is told.
pub(crate) fn answered(core: &Arc<Core>, result: &ToolResult) {
    // The same call, made again meanwhile, is refused by a record of its own.
    let began = result.ask().filter(|ask| *ask == result.receipt().outcome_seq);
    let Some(ask) = began else { return };
    waits::ring(core);
    if core.look(|kernel| kernel.notify().is_none()) || !core.notices.put(ask) {
        return;
    }
    let (home, notices) = (Arc::downgrade(core), Arc::clone(&core.notices));
    let see_to = move || see_to(&home, &notices);
    if thread::Builder::new().name("syscap-notify".to_owned()).spawn(see_to).is_err() {
        core.notices.mark_undelivered();
        core.counters.notified(false);
    }
}

/// The home closes: what is left is told, or given up.
pub(crate) fn finish(core: &Core) {
    core.notices.finish(LAST);
}

/// Tells all that there is to tell, as long as the home is held here.
fn see_to(home: &Weak<Core>, notices: &Notices) {
    while let Some((asks, more)) = notices.next() {
        let Some(core) = home.upgrade() else { return notices.mark_undelivered() };
        let Some(notify) = core.look(|kernel| kernel.notify().cloned()) else { continue };
        let text = described(&core, &asks, more, &notify);
        // A home can be dropped while a program runs.
        drop(core);
        let goes_on = || home.strong_count() > 0 && !notices.is_over();
        let told = run(&notify, text.as_bytes(), goes_on);
        if let Some(core) = home.upgrade() {
            core.counters.notified(told);
        }
        notices.pause(PAUSE);
    }
}

/// The program's input: one JSON object, and a line's end.
fn described(core: &Core, asks: &[Seq], more: u64, notify: &Notify) -> String {
    let views: Vec<AskView> =
        core.look(|kernel| kernel.asks().filter(|view| asks.contains(&view.ask)).collect());
    let calls = core.read(|store| {
        Ok(views.into_iter().map(|view| asks::shown(store, view)).collect::<Result<Vec<_>, _>>()?)
    });
    // What can't be read is told by its number, as what may not be.
    let calls = calls.unwrap_or_default();
    let of = |ask: &Seq| calls.iter().find(|call| call.ask == *ask);
    let told = asks.iter().map(|ask| match of(ask) {
        None => withheld(*ask, "gone"),
        Some(call) if call.label.confidentiality() > notify.ceiling => withheld(*ask, "label"),
        Some(call) => {
            let whole = Some(whole_of(call)).filter(|map| map.as_bytes().len() <= ASK_BYTES_MAX);
            whole.unwrap_or_else(|| withheld(*ask, "length"))
        }
    });
    let asks = list(told.collect());
    let home = core.look(syscap_kernel::Kernel::home);
    let map = MapBuilder::new().text("home", &home.to_string());
    let map = map.item("asks", asks.item()).uint("more", more);
    format!("{}\n", json::from_data(map.finish().item()))
}

fn number_of(ask: Seq) -> MapBuilder {
    MapBuilder::new().uint("ask", ask.get())
}

/// No more than that there is one, and why.
fn withheld(ask: Seq, why: &str) -> Canonical {
    number_of(ask).text("withheld", why).finish()
}

fn list(items: Vec<Canonical>) -> Canonical {
    Canonical::list(items.into_iter())
}

fn whole_of(call: &WaitingCall) -> Canonical {
    let texts = |all: &[String]| list(all.iter().map(|text| Canonical::text(text)).collect());
    let null = Canonical::null();
    let or_null = |text: Option<&str>| text.map_or_else(Canonical::null, Canonical::text);
    let constraint = or_null(call.constraint.as_deref());
    let location = or_null(call.location.as_deref());
    number_of(call.ask)
        .text("agent", call.agent.as_str())
        .text("tool", call.tool.as_str())
        .item("args", call.args.as_ref().unwrap_or(&null).item())
        .item("resources", texts(&call.resources).item())
        .item("constraint", constraint.item())
        .item("location", location.item())
        .text("expires", &call.expires.to_string())
        .uint("approvals_needed", call.threshold)
        .finish()
}

/// Runs the program, and says whether it ended well in its time.
fn run(notify: &Notify, text: &[u8], goes_on: impl Fn() -> bool) -> bool {
    let mut command = Command::new(&*notify.program);
    command.env_clear().current_dir("/").process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    #[cfg(all(feature = "shell", target_os = "linux"))]
    syscap_launch::keep_no_others(&mut command);
    let Ok(mut child) = command.spawn() else { return false };
    let until = Instant::now().checked_add(Duration::from_millis(notify.limit_ms));
    let mut rest = text;
    let mut input = child.stdin.take().filter(|pipe| rustix::io::ioctl_fionbio(pipe, true).is_ok());
    let in_time = loop {
        feed(&mut input, &mut rest);
        match ended(&child) {
            Some(true) => break true,
            Some(false) if goes_on() && until.is_some_and(|end| Instant::now() < end) => {
                thread::sleep(LOOK);
            }
            _ => break false,
        }
    };
    // It has not been waited for, so that its number is still its own.
    let group = Pid::from_child(&child);
    let killed = kill_process_group(group, Signal::KILL).is_ok();
    child.wait().is_ok_and(|status| in_time && killed && status.success())
}

/// True if it has ended; `None` if that is unknown.
fn ended(child: &Child) -> Option<bool> {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(Pid::from_child(child)), look).ok().map(|status| status.is_some())
}

/// Writes as much as goes without waiting; once all of it is written, or can't be, the pipe closes.
fn feed(input: &mut Option<ChildStdin>, rest: &mut &[u8]) {
    while let Some(pipe) = input {
        match pipe.write(rest) {
            Ok(written) if written > 0 => *rest = rest.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            _ => *input = None,
        }
        if rest.is_empty() {
            *input = None;
        }
    }
}
