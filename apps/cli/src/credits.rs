//! `syscap credits`: what agents were given to spend, and what of it is left.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use syscap::Beside;
use syscap::format::{AgentId, CreditChange, Role};
use syscap::kernel::AccountView;

use crate::exit::{Ended, Exit, Failure, tell};
use crate::output::{Form, Object, Out};
use crate::{parse, runtime, signing};

/// A command on agents' credits.
#[derive(Debug, Subcommand)]
pub(crate) enum Credits {
    /// Show the accounts: what was given, used, set aside, and is left.
    Show(Show),
    /// Give an agent, and all below it, more credits. The first time opens its account.
    Add(Add),
}

impl Credits {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        match self {
            Self::Show(show) => show.run(out),
            Self::Add(add) => add.run(out),
        }
    }
}

/// Which accounts.
#[derive(Args, Debug)]
#[command(after_long_help = "\
An account pays for its agent and for all below it: what team/reader uses is charged to the
accounts of team/reader and of team, those of them that there are. A call that would need more than
one of them has left is refused, and so is every call once all of it is used. An agent that no
account pays for is limited by its tokens alone.")]
pub(crate) struct Show {
    /// The home.
    home: PathBuf,
    /// Only those that pay for this agent: its own, and those of the agents above it.
    #[arg(long, value_name = "NAME", value_parser = parse::agent)]
    agent: Option<AgentId>,
}

impl Show {
    fn run(self, out: &mut Out) -> Ended {
        let log = runtime::look(&self.home)?;
        let pays = |account: &AccountView<'_>| {
            self.agent.as_ref().is_none_or(|agent| agent.is_within(account.agent))
        };
        for account in log.kernel().accounts().filter(pays) {
            match out.form() {
                Form::Text => out.line(&row(&account))?,
                Form::Json => out.line(&object(&account).finish())?,
            }
        }
        Ok(Exit::Done)
    }
}

fn row(account: &AccountView<'_>) -> String {
    let AccountView { agent, granted, used, held, left } = *account;
    let [granted, used, held, left] = [granted, used, held, left].map(credits);
    format!("{agent:<24}  given {granted}  used {used}  held {held}  left {left}")
}

fn object(account: &AccountView<'_>) -> Object {
    Object::new()
        .shown("agent", account.agent)
        .uint("granted_micro", account.granted)
        .uint("used_micro", account.used)
        .uint("held_micro", account.held)
        .uint("left_micro", account.left)
}

/// Millionths as credits, without zeros at the end.
fn credits(micro: u64) -> String {
    let (whole, rest) = (micro / 1_000_000, micro % 1_000_000);
    match format!("{rest:06}").trim_end_matches('0') {
        "" => whole.to_string(),
        rest => format!("{whole}.{rest}"),
    }
}

/// The account, and the amount.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Signed by the operator, and added to what was given before; nothing takes it away again. Once an
agent has an account its calls, and those of all agents below it, need credits: `credits add HOME
AGENT 0` opens one that is empty, and stops them.")]
pub(crate) struct Add {
    /// The home.
    home: PathBuf,
    /// The agent.
    #[arg(value_parser = parse::agent)]
    agent: AgentId,
    /// How many credits, down to millionths: 5, 0.25.
    #[arg(value_parser = parse::credits)]
    amount: u64,
}

impl Add {
    fn run(self, out: &mut Out) -> Ended {
        let change = CreditChange { agent: self.agent.clone(), added: self.amount };
        let person = signing::own(&self.home, Role::Operator)?;
        let seq = runtime::with(&self.home, |access| {
            person.submit(access, |_| Ok(change.clone()), &Beside::Nothing, Failure::from)
        })?;
        let log = runtime::look(&self.home)?;
        if !log.kernel().tokens().any(|token| token.body.agent.is_within(&self.agent)) {
            let agent = &self.agent;
            tell(&format!("no token names {agent} or an agent below it: was another meant?"));
        }
        let json = Object::new()
            .shown("agent", &self.agent)
            .uint("added_micro", self.amount)
            .uint("record", seq.get());
        let added = credits(self.amount);
        out.both(&format!("{}: {added} credits added by record {seq}", self.agent), json)?;
        Ok(Exit::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::credits;

    #[test]
    fn millionths_print_as_they_are_read() {
        for (micro, text) in [(0, "0"), (1, "0.000001"), (250_000, "0.25"), (5_000_000, "5")] {
            assert_eq!(credits(micro), text);
            assert_eq!(crate::parse::credits(text), Ok(micro));
        }
        let most = u64::MAX;
        assert_eq!(crate::parse::credits(&credits(most)), Ok(most));
        for bad in ["", ".", "1.", ".5", "-1", "+1", "1e3", "0.0000001", "18446744073710", "1,5"] {
            assert!(crate::parse::credits(bad).is_err(), "{bad}");
        }
    }
}
