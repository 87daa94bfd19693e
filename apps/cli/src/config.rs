//! `syscap config`: what the operator has set, on record, and setting it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use syscap::format::{Confidentiality, ConfigChange, ControlBody, Notify, Role, Seq, UnixMillis};
use syscap::kernel::Clock as _;
use syscap::{Beside, Home, Inspection, Serving};

use crate::exit::{Ended, Exit, Failure, tell};
use crate::output::{Form, Object, Out};
use crate::{parse, runtime, signing};

/// How long a program may take that tells of a call which waits, where nobody says so.
const LIMIT: Duration = Duration::from_secs(10);

/// The settings to change; without any the present ones are shown.
#[derive(Args, Debug)]
#[command(
    override_usage = "syscap config <HOME> [--notify COMMAND [--ceiling LEVEL] [--limit DURATION]|\
                      --no-notify|--confirm-time] [--idle DURATION] [--headless YES|NO]",
    after_long_help = "\
Signed by the operator. The program that --notify names is run by whoever holds the home when a call
begins to wait for a person: without arguments, without environment, in `/`, one at a time. It reads
one JSON object, {\"home\", \"asks\": [{\"ask\", \"agent\", \"tool\", \"args\", ..}], \"more\"}; of
an ask that is more confidential than the ceiling no more than its number. When its time is over it
is killed with its process group. What it prints is not read: only `syscap approvals` answers.

--confirm-time says that this machine's clock is right, after a home was not opened for so long that
its tokens wait for that (clock_unconfirmed)."
)]
pub(crate) struct Config {
    /// The home.
    home: PathBuf,
    /// Run this program, by its absolute path, when a call begins to wait for a person.
    #[arg(long, value_name = "COMMAND")]
    notify: Option<String>,
    /// Run none.
    #[arg(long, conflicts_with = "notify")]
    no_notify: bool,
    /// The highest level that it may be told: public, internal, private, sensitive, secret.
    #[arg(long, value_name = "LEVEL", requires = "notify", default_value = "internal",
          value_parser = parse::confidentiality)]
    ceiling: Confidentiality,
    /// After how long it is killed: 10s, at most 1m.
    #[arg(long, value_name = "DURATION", requires = "notify", value_parser = parse::life)]
    limit: Option<Duration>,
    /// After how long without a client a server that a client started ends: 10m; 0s: with the last
    /// client. It is on no record.
    #[arg(long, value_name = "DURATION", value_parser = parse::span)]
    idle: Option<Duration>,
    /// Whether such a server refuses at once what the policy asks a person about: yes, no. It is on
    /// no record.
    #[arg(long, value_name = "YES|NO", value_parser = ["yes", "no"])]
    headless: Option<String>,
    /// Say that the time is right: tokens that wait for it are valid again.
    #[arg(long, conflicts_with_all = ["notify", "no_notify"])]
    confirm_time: bool,
}

impl Config {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        if self.serve_as()? {
            tell("set, from the next start of a server on");
            if self.notify.is_none() && !self.no_notify && !self.confirm_time {
                return Ok(Exit::Done);
            }
        }
        let seq = match self.notify()? {
            Some(notify) => signed(&self.home, &notify)?,
            None if self.confirm_time => {
                signed(&self.home, &ConfigChange { confirm_time: Some(now()) })?
            }
            None => {
                show(&runtime::look(&self.home)?, &Home::at(&self.home).serving()?, out)?;
                return Ok(Exit::Done);
            }
        };
        out.both(&format!("set by record {seq}"), Object::new().uint("record", seq.get()))?;
        Ok(Exit::Done)
    }

    /// Says how the home is served, where something is said of it; whether it was.
    fn serve_as(&self) -> Result<bool, Failure> {
        if self.idle.is_none() && self.headless.is_none() {
            return Ok(false);
        }
        // A folder that is no home gets no settings.
        runtime::look(&self.home)?;
        let home = Home::at(&self.home);
        let before = home.serving()?;
        let headless = self.headless.as_ref().map_or(before.headless, |word| word == "yes");
        let idle = self.idle.or(before.idle);
        home.serve_as(&Serving { idle, headless, ..before })?;
        Ok(true)
    }

    fn notify(&self) -> Result<Option<Notify>, Failure> {
        let limit = self.limit.unwrap_or(LIMIT);
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let program = match &self.notify {
            Some(program) => Box::from(program.as_str()),
            None if self.no_notify => Box::default(),
            None => return Ok(None),
        };
        let notify = Notify { program, ceiling: self.ceiling, limit_ms };
        let wrong = |what: &str, advice: &str| Failure::Usage {
            what: what.to_owned(),
            advice: advice.to_owned(),
        };
        if !notify.is_sound() {
            let advice = "is a program's absolute path, without arguments; --limit is at most 1m";
            return Err(wrong("--notify", advice));
        }
        if !self.no_notify && !is_program(Path::new(&*notify.program)) {
            return Err(wrong(&notify.program, "is no file that can be run"));
        }
        Ok(Some(notify))
    }
}

/// Has a change recorded that the operator's key signs here.
fn signed<B: ControlBody + Clone>(home: &Path, change: &B) -> Result<Seq, Failure> {
    let person = signing::own(home, Role::Operator)?;
    runtime::with(home, |access| {
        person.submit(access, |_| Ok(change.clone()), &Beside::Nothing, Failure::from)
    })
}

/// A file that can be run.
pub(crate) fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

fn now() -> UnixMillis {
    syscap::SystemClock.read().wall
}

fn show(log: &Inspection, serving: &Serving, out: &mut Out) -> Result<(), Failure> {
    let notify = log.kernel().notify();
    let list = log.kernel().list();
    if out.form() == Form::Json {
        let object = match notify {
            Some(Notify { program, ceiling, limit_ms }) => Object::new()
                .text("notify", program)
                .text("ceiling", ceiling.name())
                .uint("limit_ms", *limit_ms),
            None => Object::new().json("notify", "null"),
        };
        let object = match list {
            Some(list) => {
                object.uint("list", list.version).text("list_as_of", &list.as_of.to_string())
            }
            None => object.json("list", "null"),
        };
        let idle = serving.idle.map_or("null".to_owned(), |idle| idle.as_secs().to_string());
        let server = Object::new().json("idle_s", &idle).flag("headless", serving.headless);
        let server = match &serving.program {
            Some(program) => server.text("program", program),
            None => server.json("program", "null"),
        };
        let object = object.json("server", &server.finish());
        return out.line(&object.finish());
    }
    match notify {
        Some(Notify { program, ceiling, limit_ms }) => {
            let seconds = limit_ms / 1_000;
            let ceiling = ceiling.name();
            out.line(&format!("notify       {program}, up to {ceiling}, killed after {seconds}s"))?;
        }
        None => out.line("notify       none")?,
    }
    let idle = serving.idle.map_or("10m".to_owned(), |idle| format!("{}s", idle.as_secs()));
    let asks = if serving.headless { "asks nobody" } else { "asks people" };
    out.line(&match &serving.program {
        Some(program) => format!("server       {program} alone"),
        None => format!("server       ends {idle} after its last client, {asks}"),
    })?;
    match list {
        Some(list) => out.line(&format!("revocations  list {} as of {}", list.version, list.as_of)),
        None => out.line("revocations  no list"),
    }
}
