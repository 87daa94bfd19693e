//! Reads a client's shell command in a process of its own, which has little memory and time.
//!
//! A model wrote the command, and what reads it may fail on it in any way. Whatever goes wrong
//! there leaves a command of which nothing is known.

use std::{
    env,
    ffi::OsString,
    io::{self, Read as _, Write as _},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use clap::{Args, ValueEnum as _};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use syscap::{
    format::cbor::{Canonical, Item, Kind, MapBuilder, Profile},
    host::Finding,
    syscalls::marks::Mark,
};

use super::{EVENT_BYTES_MAX, client::Client, place::Placed, unclear::Unclear};
use crate::exit::{Ended, Exit, Failure};

/// The command that the process is started as.
const NAME: &str = "read-command";
/// Address space of the process, in bytes.
const MEMORY_BYTES_MAX: u64 = 256 << 20;
/// Its processor time, in seconds.
const CPU_S_MAX: u64 = 1;
/// How long it is waited for: on a busy machine a second of the processor takes longer.
const WAIT: Duration = Duration::from_secs(5);
/// How long it may take to end once it has answered.
const END: Duration = Duration::from_secs(1);
/// The pause between two looks whether it has ended.
const PAUSE: Duration = Duration::from_millis(1);
/// Longest answer, in bytes: a call's arguments have room for it.
const ANSWER_BYTES_MAX: usize = 128 << 10;

/// Reads one shell command from standard input for `syscap hook`, within limits of its own.
#[derive(Args, Debug)]
pub(crate) struct ReadCommand {
    /// Whose shell runs it.
    #[arg(value_enum)]
    client: Client,
}

impl ReadCommand {
    pub(crate) fn run(self) -> Ended {
        let limits = [
            (Resource::As, MEMORY_BYTES_MAX),
            (Resource::Cpu, CPU_S_MAX),
            // A process that breaks off leaves nothing of the command on the disk.
            (Resource::Core, 0),
        ];
        for (resource, most) in limits {
            // One that is lower already stays.
            let most = getrlimit(resource).maximum.map_or(most, |now| now.min(most));
            let limit = Rlimit { current: Some(most), maximum: Some(most) };
            setrlimit(resource, limit).map_err(|error| Failure::Stream(error.into()))?;
        }
        let most = u64::try_from(EVENT_BYTES_MAX).unwrap_or(u64::MAX);
        let mut bytes = Vec::new();
        io::stdin().lock().take(most).read_to_end(&mut bytes).map_err(Failure::Stream)?;
        let Ok(asked) = Canonical::check(bytes, Profile::DATA) else { return Ok(Exit::Failed) };
        let folder = asked.item().get("folder").and_then(Item::as_text);
        let Some(args) = asked.item().get("args") else { return Ok(Exit::Failed) };
        let Some(place) = self.client.place(folder, args) else { return Ok(Exit::Failed) };
        let mut output = io::stdout().lock();
        output
            .write_all(place.as_bytes())
            .and_then(|()| output.flush())
            .map_err(Failure::Stream)?;
        Ok(Exit::Done)
    }
}

impl Client {
    /// What the command of a use of its shell would do, and where.
    pub(super) fn reading(self, folder: Option<&str>, args: Item<'_>) -> Placed {
        // The kernel says what is wrong with a use that has no command.
        if args.get("command").and_then(Item::as_text).is_none() {
            return Placed::default();
        }
        let place = self.ask_process(folder, args).and_then(|answer| placed(&answer));
        // It has no finding, so the command may do anything.
        place.unwrap_or_else(|| Placed {
            place: super::place::unclear(MapBuilder::new(), &[Unclear::Unread])
                .map(MapBuilder::finish),
            unclear: vec![Unclear::Unread],
            ..Placed::default()
        })
    }

    /// Starts the process and gives back what it answers; `None` where anything goes wrong.
    fn ask_process(self, folder: Option<&str>, args: Item<'_>) -> Option<Canonical> {
        let mut asked = MapBuilder::new().item("args", args);
        if let Some(folder) = folder {
            asked = asked.text("folder", folder);
        }
        let client = self.to_possible_value()?;
        let mut child = Command::new(program()?)
            .args([NAME, client.get_name()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let answer = answer(&mut child, asked.finish());
        let fine = ended(&mut child);
        answer.filter(|_| fine)
    }
}

/// This very program, also where another has been put in its place.
fn program() -> Option<OsString> {
    match cfg!(target_os = "linux") {
        true => Some("/proc/self/exe".into()),
        false => env::current_exe().ok().map(OsString::from),
    }
}

fn answer(child: &mut Child, asked: Canonical) -> Option<Canonical> {
    let (mut input, output) = (child.stdin.take()?, child.stdout.take()?);
    let (sender, answer) = mpsc::channel();
    let named = |name: &str| thread::Builder::new().name(name.to_owned());
    // A process that does not read has its pipe closed when it ends.
    named("syscap-asks").spawn(move || input.write_all(asked.as_bytes())).ok()?;
    let read = move || {
        let most = u64::try_from(ANSWER_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
        let mut bytes = Vec::new();
        let read = output.take(most).read_to_end(&mut bytes);
        sender.send(read.is_ok().then_some(bytes))
    };
    named("syscap-reads").spawn(read).ok()?;
    let bytes = answer.recv_timeout(WAIT).ok()??;
    let bytes = Some(bytes).filter(|bytes| bytes.len() <= ANSWER_BYTES_MAX)?;
    Canonical::check(bytes, Profile::DATA).ok()
}

/// Whether the process has ended by itself, and well. Afterwards it has ended.
fn ended(child: &mut Child) -> bool {
    let until = Instant::now() + END;
    while Instant::now() < until {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => thread::sleep(PAUSE),
            Err(_) => break,
        }
    }
    // It is not asked any more: either both succeed, or it is gone.
    drop(child.kill());
    drop(child.wait());
    false
}

/// What an answer says; `None` where it has not the form.
fn placed(answer: &Canonical) -> Option<Placed> {
    let item = answer.item();
    if item.kind() != Kind::Map {
        return None;
    }
    let unclear = match item.get("unclear") {
        Some(list) => list.elements().map(|name| Unclear::named(name.as_text()?)).collect(),
        None => Some(Vec::new()),
    };
    let (unclear, finding): (Vec<Unclear>, _) = (unclear?, item.get("finding"));
    let marks = match finding {
        Some(finding) => Finding::read(finding)?.marks,
        // Nothing is known, and it says why.
        None if unclear.is_empty() => return None,
        None => [Mark::Unknown].into(),
    };
    Some(Placed { place: Some(answer.clone()), unclear, marks })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is no answer is none: nothing is known of the command.
    #[test]
    fn odd_answer_is_no_reading() {
        let map = MapBuilder::new;
        for odd in [
            Canonical::null(),
            Canonical::text("fine"),
            map().finish(),
            map().text("folder", "/project").finish(),
            map().text("finding", "read").finish(),
            map().text("unclear", "part").item("finding", map().finish().item()).finish(),
        ] {
            assert!(placed(&odd).is_none(), "{odd:?}");
        }
        let why = super::super::place::unclear(map(), &[Unclear::Folder]).unwrap().finish();
        assert_eq!(placed(&why).unwrap().unclear, [Unclear::Folder]);
    }
}
