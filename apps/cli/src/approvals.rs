//! `syscap approvals`: calls that wait for a person, and the answers.

mod approver;
mod carried;
mod past;
pub(crate) mod sets;
mod shown;
mod watch;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use syscap::Home;
use syscap::approvals::{Compared, Proposal, Rows, SetTerms, WaitingCall};
use syscap::format::{ApprovalAnswer, PublicKey, Role, Seq, TEXT_BYTES_MAX, UnixMillis};
use syscap::keys::KeyUse;

pub(crate) use approver::Approver;
pub(crate) use shown::{arguments, left};
use shown::{brief, json, listed, recorded, text};

use crate::exit::{Ended, Exit, Failure, tell};
use crate::keys::list::here;
use crate::output::{Form, Object, Out, array, plain, quote, word_of};
use crate::token::now;
use crate::{parse, runtime, signed};

/// Calls that wait for a person.
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
Examples:
  syscap approvals list home
  syscap approvals approve home 13
  syscap approvals deny home 13 --because 'not on a Friday'

The number is that of the record that asks; `list` shows it. An approved call runs when the agent
repeats it.")]
pub(crate) enum Approvals {
    /// List the calls that wait.
    List(Waiting),
    /// Show one whole: its arguments, what it would touch, and why it waits.
    Show(Show),
    /// Approve one, for one call or more.
    Approve(Approve),
    /// Deny one or more. The agent is told the reason.
    Deny(Deny),
    /// List approvals for more than one call, and what is left of each.
    Sets(List),
    /// Watch calls as they come; at a terminal, answer each by a key.
    Watch(List),
    /// Write one to standard output, with its arguments, to sign it on another machine.
    Export(Show),
    /// Show an exported call and sign an answer, without the home.
    Sign(carried::Sign),
    /// Record an answer that was signed on another machine.
    Bring(carried::Bring),
}

/// Which home.
#[derive(Args, Debug)]
pub(crate) struct List {
    /// The home.
    home: PathBuf,
}

/// Which calls.
#[derive(Args, Debug)]
pub(crate) struct Waiting {
    #[command(flatten)]
    list: List,
    /// Those of ended sessions, too: an agent that is started again may repeat its call.
    #[arg(long)]
    all: bool,
}

/// Which call.
#[derive(Args, Debug)]
pub(crate) struct Show {
    /// The home.
    home: PathBuf,
    /// The number of the record that asks.
    #[arg(value_parser = request)]
    ask: u64,
}

/// Answer calls.
#[derive(Args, Debug)]
pub(crate) struct Give {
    /// The home.
    home: PathBuf,
    /// The number of the record that asks.
    #[arg(value_parser = request)]
    ask: u64,
    /// Why: on record as a commitment, the text in the vault.
    #[arg(long, value_name = "TEXT")]
    because: Option<String>,
}

/// Deny calls.
#[derive(Args, Debug)]
pub(crate) struct Deny {
    /// The home.
    home: PathBuf,
    /// The numbers of the records that ask: each is answered, up to the first that can't be.
    #[arg(required = true, value_name = "ASK", value_parser = request)]
    asks: Vec<u64>,
    /// Why: on record as a commitment, the text in the vault. The agent is told it.
    #[arg(long, value_name = "TEXT")]
    because: Option<String>,
}

/// Approve calls.
#[derive(Args, Debug)]
pub(crate) struct Approve {
    #[command(flatten)]
    give: Give,
    /// For so many calls, this one among them, that touch nothing but what this one does: by the
    /// same agent, token and policy. Without --for until its session ends.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    uses: Option<u64>,
    /// How long it stands: 30m, 8h; a day at most.
    #[arg(long = "for", value_name = "DURATION", value_parser = parse::life)]
    life: Option<Duration>,
    /// Not only what this call touches, but all in the folders that it lies in, as `show` proposes.
    /// Needs --for.
    #[arg(long, requires_all = ["uses", "life"])]
    wider: bool,
}

impl Approvals {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        match self {
            Self::List(list) => list.run(out),
            Self::Show(show) => show.run(out),
            Self::Approve(approve) => approve.run(out),
            Self::Deny(deny) => deny.run(out),
            Self::Sets(list) => sets::list(&list.home, out),
            Self::Watch(list) => watch::run(&list.home, out),
            Self::Export(show) => carried::export(&show.home, show.ask, out),
            Self::Sign(sign) => sign.run(out),
            Self::Bring(bring) => bring.run(out),
        }
    }
}

/// The number of an approval request.
fn request(text: &str) -> Result<u64, String> {
    let form = "an approval request is a number: `syscap approvals list HOME` shows them";
    text.parse().map_err(|_| form.to_owned())
}

/// The calls that wait now: how they stand the server says, where one answers, else the log.
fn waiting(home: &Path) -> Result<(Vec<WaitingCall>, UnixMillis), Failure> {
    let (calls, at) = match runtime::asked(home, syscap::Runtime::waiting) {
        Some(asked) => asked,
        None => {
            let log = runtime::look(home)?;
            (log.waiting()?, log.kernel().now())
        }
    };
    let now = now(at);
    let live = |call: &WaitingCall| now < call.expires;
    Ok((calls.into_iter().filter(live).collect(), now))
}

fn found(home: &Path, ask: u64) -> Result<(WaitingCall, UnixMillis), Failure> {
    let (calls, now) = waiting(home)?;
    match calls.into_iter().find(|call| call.ask == Seq::new(ask)) {
        Some(call) => Ok((call, now)),
        None => {
            let (what, advice) = (ask.to_string(), past::why_not(home, Seq::new(ask))?);
            Err(Failure::Usage { what, advice })
        }
    }
}

/// One that can still be approved: nobody is asked for a passphrase for another.
fn unanswered(home: &Path, ask: u64) -> Result<(WaitingCall, UnixMillis), Failure> {
    let (call, now) = open(home, ask)?;
    if call.superseded {
        let advice = format!(
            "{} has been set anew since, or another definition of it was accepted: nobody can \
             approve this any more; the same call, made again, asks anew",
            call.tool
        );
        return Err(Failure::Usage { what: format!("{ask}"), advice });
    }
    Ok((call, now))
}

/// One that nobody has answered yet.
fn open(home: &Path, ask: u64) -> Result<(WaitingCall, UnixMillis), Failure> {
    let (call, now) = found(home, ask)?;
    if call.approved.is_some() {
        return Ok((call, now));
    }
    let advice = match call.denied {
        true => format!(
            "was denied: the same call is refused until {}, and asks anew afterwards",
            call.expires
        ),
        false => {
            "is approved already, for one call that has not come yet: to stop that, revoke its \
             token, or freeze its agent until the approval has run out"
                .to_owned()
        }
    };
    Err(Failure::Usage { what: format!("{ask}"), advice })
}

/// The command that approves a call.
fn command(home: &str, call: &WaitingCall) -> Option<String> {
    let waits = call.approved.is_some() && !call.superseded;
    waits.then(|| format!("syscap approvals approve {home} {}", call.ask))
}

/// A call of the list, for programs, with the command that approves it.
fn entry(home: &str, call: &WaitingCall) -> Object {
    command(home, call).iter().fold(json(call), |json, command| json.text("command", command))
}

/// The calls that wait, for programs: those of open sessions first.
pub(crate) fn list_json(home: &Path) -> Result<String, Failure> {
    let (calls, _) = waiting(home)?;
    let word = word_of(home);
    let (open, ended): (Vec<_>, Vec<_>) = calls.iter().partition(|call| call.session.is_some());
    let shown = open.into_iter().chain(ended);
    let entry = |call: &WaitingCall| entry(&word, call).flag("open", call.session.is_some());
    Ok(array(shown.map(|call| entry(call).finish())))
}

/// A call that waits, and all of it for programs, as `show` has it, with the command that approves it.
pub(crate) fn whole_json(home: &Path, ask: Seq) -> Result<(WaitingCall, Object), Failure> {
    let (calls, _) = waiting(home)?;
    let call = calls.iter().find(|call| call.ask == ask).ok_or_else(|| approver::over(ask))?;
    let mut rows = Rows::open(home)?;
    let compared = rows.compared(call)?;
    let proposals = match call.approved {
        Some(_) => rows.proposals(call)?,
        None => Vec::new(),
    };
    let object =
        whole(home, entry(&word_of(home), call), call, &calls, &proposals, compared.as_ref());
    Ok((call.clone(), object?))
}

/// All of a call, for programs.
fn whole(
    home: &Path,
    object: Object,
    call: &WaitingCall,
    calls: &[WaitingCall],
    proposals: &[Proposal],
    compared: Option<&Compared>,
) -> Result<Object, Failure> {
    let all = proposals.iter().map(|one| sets::json(one).finish());
    let (answers, done) = past::answers_json(home, call.ask)?;
    let names = signed::names(home);
    let own = here(&Home::at(home), KeyUse::Role(Role::Approver))?.map(|file| file.public_key());
    let still: Vec<&PublicKey> = call.eligible.iter().filter(|key| !done.contains(key)).collect();
    let can_sign = own.is_some_and(|own| still.contains(&&own));
    let still = still.into_iter().map(|key| quote(&signed::shown(key, names.of(key))));
    let elsewhere = shown::elsewhere(call, calls);
    let difference = call.difference(&Home::at(home));
    let difference = difference.map(|text| array(text.lines().map(quote)));
    Ok(object
        .json("difference", difference.as_deref().unwrap_or("null"))
        .json("elsewhere", &array(elsewhere.map(|other| other.ask.to_string())))
        .json("proposals", &array(all))
        .json("last_like", &shown::last_like(compared))
        .json("answers", &answers)
        .json("still", &array(still))
        .flag("can_sign", can_sign))
}

impl Waiting {
    fn run(self, out: &mut Out) -> Ended {
        let home = word_of(&self.list.home);
        let (calls, now) = waiting(&self.list.home)?;
        let (shown, hidden): (Vec<_>, Vec<_>) =
            calls.into_iter().partition(|call| self.all || call.session.is_some());
        if !hidden.is_empty() {
            let count = hidden.len();
            tell(&format!("{count} more of ended sessions: syscap approvals list {home} --all"));
        }
        for call in shown {
            let text = match command(&home, &call) {
                Some(command) => format!("{}  {command}", listed(&call, now)),
                None => listed(&call, now),
            };
            out.both(&text, entry(&home, &call))?;
        }
        Ok(Exit::Done)
    }
}

impl Show {
    fn run(self, out: &mut Out) -> Ended {
        let ask = Seq::new(self.ask);
        let (calls, _) = waiting(&self.home)?;
        let Some(call) = calls.iter().find(|call| call.ask == ask) else {
            return past::show(&self.home, ask, out);
        };
        let mut rows = Rows::open(&self.home)?;
        let compared = rows.compared(call)?;
        let elsewhere = shown::elsewhere(call, &calls);
        let proposals = match call.approved {
            Some(_) => rows.proposals(call)?,
            None => Vec::new(),
        };
        match out.form() {
            Form::Json => {
                let object =
                    whole(&self.home, json(call), call, &calls, &proposals, compared.as_ref())?;
                out.line(&object.finish())?;
            }
            Form::Text => {
                text(out, call)?;
                shown::difference(out, call, &self.home)?;
                past::answers(&self.home, ask, out)?;
                shown::differs(out, compared.as_ref())?;
                sets::outlived(out, &self.home, call)?;
                for other in elsewhere {
                    let (at, standing) = (other.location.as_deref(), shown::standing(other));
                    let at = plain(at.unwrap_or("not stated"));
                    out.line(&format!("elsewhere  {} ({standing}): {at}", other.ask))?;
                }
                if call.approved.is_some() {
                    sets::proposed(out, call, &proposals)?;
                }
            }
        }
        Ok(Exit::Done)
    }
}

impl Give {
    fn run(self, answer: ApprovalAnswer, terms: Option<&SetTerms>, out: &mut Out) -> Ended {
        let Self { home, ask, because } = self;
        if because.as_ref().is_some_and(|why| why.len() > TEXT_BYTES_MAX) {
            let advice = format!("has at most {TEXT_BYTES_MAX} bytes");
            return Err(Failure::Usage { what: "--because".to_owned(), advice });
        }
        // What is answered is what is shown. What a no ends was shown when it was given.
        let ends = answer == ApprovalAnswer::Deny && sets::stands(&home, ask)?;
        if !ends {
            let (call, _) = match answer {
                // What is over by its tool may be put away by a no.
                ApprovalAnswer::Deny => open(&home, ask)?,
                ApprovalAnswer::Once | ApprovalAnswer::Set => unanswered(&home, ask)?,
            };
            if out.form() == Form::Text {
                brief(out, &call)?;
                sets::outlived(out, &home, &call)?;
                if let Some(terms) = terms {
                    sets::given(out, &call, terms)?;
                }
                out.flush()?;
            }
        }
        let ask = Seq::new(ask);
        let seq = Approver::of(&home)?.answer(ask, answer, terms, because.as_deref())?;
        recorded(out, ask, answer, seq)
    }
}

impl Deny {
    fn run(self, out: &mut Out) -> Ended {
        let Self { home, asks, because } = self;
        for ask in asks {
            let give = Give { home: home.clone(), ask, because: because.clone() };
            give.run(ApprovalAnswer::Deny, None, out)?;
        }
        Ok(Exit::Done)
    }
}

impl Approve {
    fn run(self, out: &mut Out) -> Ended {
        let Self { give, uses, life, wider } = self;
        let Some(uses) = uses else {
            if life.is_some() {
                let advice = "say for how many calls, with --uses N".to_owned();
                return Err(Failure::Usage { what: "--for".to_owned(), advice });
            }
            return give.run(ApprovalAnswer::Once, None, out);
        };
        let (call, now) = unanswered(&give.home, give.ask)?;
        let terms = sets::terms(&give.home, &call, uses, life.map(|life| (now, life)), wider)?;
        give.run(ApprovalAnswer::Set, Some(&terms), out)
    }
}
