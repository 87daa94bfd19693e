//! The person at the terminal: asked about one act at a time, by one line.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use syscap::approvals::{SetTerms, WaitingCall};
use syscap::format::{ApprovalAnswer, EffectClass, Seq};
use syscap_console::{Codes, Problem};

use super::home::problem;
use crate::approvals::{self, Approver};
use crate::exit::{Ended, Exit, Failure, tell};
use crate::log::timeline;
use crate::output::plain;
use crate::terminal::{self, Screen};

/// How long a question stands.
const QUESTION_TIME: Duration = Duration::from_secs(30);
/// How long a passphrase is waited for, each time: the page waits for all of it.
const PASSPHRASE_TIME: Duration = Duration::from_secs(25);
/// How long the page waits for the person.
pub(super) const ANSWER_TIME: Duration = Duration::from_secs(120);
/// Most acts by a key that was unsealed once.
const ACTS_MAX: u32 = 20;
/// How long the whole lasts.
const LIFE: Duration = Duration::from_secs(8 * 60 * 60);
/// Most lines that wait to be shown; more are not shown.
const LINES_MAX: usize = 64;
/// Most rows of a question.
const ROWS_MAX: usize = 4;
/// Fewest columns of a question.
const COLUMNS_MIN: usize = 40;
/// How long approvals are given by clicks.
const CLICKS_TIME: Duration = Duration::from_secs(10 * 60);

/// Most questions in a minute: a page can't tire the person out.
pub(super) const QUESTIONS_MAX: usize = 6;

/// What comes to the terminal.
pub(super) enum Question {
    /// May this be signed?
    Answer {
        call: Box<WaitingCall>,
        class: Option<EffectClass>,
        answer: ApprovalAnswer,
        terms: Option<SetTerms>,
        why: Option<String>,
        reply: SyncSender<Done>,
    },
    /// May this be done, which asks for its own passphrase?
    Act {
        line: String,
        act: Box<dyn FnOnce() -> Result<Option<Seq>, Failure> + Send>,
        reply: SyncSender<Done>,
    },
}

/// The record of an act, if it made one.
pub(super) type Done = Result<Option<Seq>, Problem>;

/// The desk at which the person is asked one question at a time, and told what was done at a click.
pub(super) struct Desk {
    pub(super) questions: SyncSender<Question>,
    told: SyncSender<String>,
}

impl Desk {
    /// A line at the terminal, where there is room: the record says it in any case.
    pub(super) fn tell(&self, line: String) {
        self.told.try_send(line).unwrap_or(());
    }
}

/// Whoever sits at the terminal.
pub(super) struct Person<'h> {
    home: &'h Path,
    life: Duration,
    questions: Receiver<Question>,
    told: Receiver<String>,
    /// The key, since when it may be unsealed, and how often it has signed.
    approver: Option<(Approver<'h>, Duration, u32)>,
    /// How many approvals `p` allows at clicks alone.
    clicks_most: u32,
    clicks: Option<Clicks<'h>>,
}

/// Approvals that a click alone gives: the person has allowed so many beforehand.
struct Clicks<'h> {
    approver: Approver<'h>,
    since: Duration,
    left: u32,
}

impl<'h> Person<'h> {
    /// And the desk at which it is asked.
    pub(super) fn new(home: &'h Path, life: Duration, clicks_most: u32) -> (Self, Desk) {
        let ((asking, questions), (telling, told)) = (sync_channel(1), sync_channel(LINES_MAX));
        let (approver, clicks) = (None, None);
        let person = Self { home, life, questions, told, approver, clicks_most, clicks };
        (person, Desk { questions: asking, told: telling })
    }

    /// Answers questions, and draws codes, until the person or the time ends it.
    pub(super) fn attend(&mut self, codes: &Codes, is_over: impl Fn() -> bool) -> Ended {
        let began = now();
        terminal::be_patient_for(PASSPHRASE_TIME);
        show_code(codes)?;
        let mut screen = Screen::open()?;
        loop {
            if now().saturating_sub(began) > LIFE {
                return Ok(Exit::Done);
            }
            if is_over() {
                return Ok(Exit::Failed);
            }
            let key_is_old = |since: Duration| now().saturating_sub(since) > self.life;
            self.approver.take_if(|(_, since, _)| key_is_old(*since));
            self.clicks.take_if(|clicks| now().saturating_sub(clicks.since) > CLICKS_TIME);
            self.told.try_iter().for_each(|line| tell(&plain(&line)));
            match self.questions.try_recv() {
                Ok(Question::Answer { call, answer, why, reply, .. })
                    if self.is_by_click(call.ask, answer) =>
                {
                    let done = self.click(&call, why.as_deref());
                    reply.try_send(done).unwrap_or(());
                }
                Ok(Question::Answer { call, class, answer, terms, why, reply }) => {
                    let line = question(&call, class, answer, terms.as_ref());
                    let sign = || self.sign(&call, class, answer, terms.as_ref(), why.as_deref());
                    let (done, next) = decided(screen, &line, sign)?;
                    screen = next;
                    // A page that has gone needs no answer.
                    reply.try_send(done).unwrap_or(());
                }
                Ok(Question::Act { line, act, reply }) => {
                    let sign = || act().map_err(|failure| problem(&failure));
                    let (done, next) = decided(screen, &line, sign)?;
                    screen = next;
                    reply.try_send(done).unwrap_or(());
                }
                Err(_) => {}
            }
            for key in screen.pressed()? {
                match key {
                    b'c' => show_code(codes)?,
                    b'x' => {
                        codes.end_all();
                        (self.approver, self.clicks) = (None, None);
                        tell("all pages have ended; c draws a code");
                    }
                    b'p' if self.clicks_most > 0 => {
                        drop(screen);
                        self.allow_clicks();
                        screen = Screen::open()?;
                    }
                    b'q' => return Ok(Exit::Done),
                    _ => {}
                }
            }
        }
    }

    /// The person allows some approvals at clicks alone, by the passphrase where there is one.
    fn allow_clicks(&mut self) {
        match Approver::of(self.home).and_then(Approver::at_a_click) {
            Ok(approver) => {
                let left = self.clicks_most;
                self.clicks = Some(Clicks { approver, since: now(), left });
                tell(&format!("{left} approvals of one call are given at a click, for 10 minutes"));
            }
            Err(failure) => tell(&plain(&failure.to_string())),
        }
    }

    /// True if the page's click gives this answer; where that can't be told the person is asked.
    fn is_by_click(&self, ask: Seq, answer: ApprovalAnswer) -> bool {
        let allowed = self.clicks.is_some() && answer == ApprovalAnswer::Once;
        allowed && timeline::is_minor(self.home, ask).unwrap_or(false)
    }

    fn click(&mut self, call: &WaitingCall, why: Option<&str>) -> Done {
        let Some(clicks) = &mut self.clicks else {
            return Err(Problem::new(409, "declined", "no approval is given at a click"));
        };
        let done = clicks.approver.answer(call.ask, ApprovalAnswer::Once, None, why);
        let seq = done.map_err(|failure| problem(&failure))?;
        clicks.left = clicks.left.saturating_sub(1);
        let left = clicks.left;
        self.clicks.take_if(|clicks| clicks.left == 0);
        let WaitingCall { ask, agent, tool, .. } = call;
        tell(&plain(&format!(
            "approved {ask} at a click, by record {seq}: {agent} {tool}; {left} more"
        )));
        Ok(Some(seq))
    }

    fn sign(
        &mut self,
        call: &WaitingCall,
        class: Option<EffectClass>,
        answer: ApprovalAnswer,
        terms: Option<&SetTerms>,
        why: Option<&str>,
    ) -> Done {
        let is_final = is_final(answer, class);
        let used_up = self.approver.as_ref().is_some_and(|(_, _, acts)| *acts >= ACTS_MAX);
        if is_final || used_up {
            self.approver = None;
        }
        let failed = |failure: Failure| problem(&failure);
        if self.approver.is_none() {
            self.approver = Some((Approver::of(self.home).map_err(failed)?, now(), 0));
        }
        let Some((approver, _, acts)) = &mut self.approver else {
            return Err(Problem::new(500, "failed", "no key"));
        };
        *acts = acts.saturating_add(1);
        let done = approver.answer(call.ask, answer, terms, why).map_err(failed);
        if is_final || done.is_err() {
            self.approver = None;
        }
        done.map(Some)
    }
}

/// True if the passphrase is asked for each time: of what can't be undone, or of an unknown class.
fn is_final(answer: ApprovalAnswer, class: Option<EffectClass>) -> bool {
    answer != ApprovalAnswer::Deny && class.is_none_or(|class| class == EffectClass::Irreversible)
}

/// Has something signed where the person agrees to that line.
fn decided(
    mut screen: Screen,
    line: &str,
    sign: impl FnOnce() -> Done,
) -> Result<(Done, Screen), Failure> {
    let done = if asked(&mut screen, line)? {
        // A passphrase is asked for as elsewhere.
        drop(screen);
        let done = sign();
        screen = Screen::open()?;
        done
    } else {
        let words = "no was said at the terminal, or nothing";
        Err(Problem::new(409, "declined", words))
    };
    match &done {
        Ok(Some(seq)) => tell(&format!("done by record {seq}")),
        Ok(None) => tell("done; nothing of it is on record"),
        Err(problem) => tell(&plain(&problem.words)),
    }
    Ok((done, screen))
}

/// The time since the machine began, suspended or not.
fn now() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn show_code(codes: &Codes) -> Result<(), Failure> {
    let code = codes.draw().map_err(Failure::Stream)?;
    tell(&format!("code: {code}  (60 s, once; c draws another, x ends all pages, q ends this)"));
    Ok(())
}

/// Asks by one line, of a few rows at most; what was pressed before it is no answer.
fn asked(screen: &mut Screen, line: &str) -> Result<bool, Failure> {
    let most = screen.size().columns.max(COLUMNS_MIN).saturating_mul(ROWS_MAX);
    let line = plain(line);
    let shown: String = line.chars().take(most).collect();
    let cut = if shown.len() < line.len() { " .. (all of it is in the page)" } else { "" };
    screen.forget()?;
    tell(&format!("{shown}{cut} [y]"));
    let began = now();
    while now().saturating_sub(began) < QUESTION_TIME {
        if let Some(key) = screen.pressed()?.first() {
            return Ok(*key == b'y');
        }
    }
    Ok(false)
}

/// What is asked: the act, who, with what, and on what, from the rows.
fn question(
    call: &WaitingCall,
    class: Option<EffectClass>,
    answer: ApprovalAnswer,
    terms: Option<&SetTerms>,
) -> String {
    let act = match (answer, terms) {
        (ApprovalAnswer::Deny, _) => "deny".to_owned(),
        (_, None) => "approve once".to_owned(),
        (_, Some(SetTerms { uses, expires, .. })) => {
            let until = expires.map(|until| format!(" until {until}")).unwrap_or_default();
            format!("approve {uses} calls{until} that touch no more than")
        }
    };
    let untrusted = if call.label.is_untrusted() { " UNTRUSTED" } else { "" };
    let class = class.map_or("of unknown class".to_owned(), |class| class.to_string());
    let touched = match call.resources.is_empty() {
        true => approvals::arguments(call),
        false => call.resources.join(", "),
    };
    format!("{act} {}:{untrusted} {class} {} {} {touched}", call.ask, call.agent, call.tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn irreversible_and_unknown_class_are_final() {
        use ApprovalAnswer::{Deny, Once, Set};
        for (class, expected) in [
            (Some(EffectClass::Irreversible), true),
            (None, true),
            (Some(EffectClass::ExternalWrite), false),
        ] {
            let found = [Once, Set, Deny].map(|answer| is_final(answer, class));
            assert_eq!(found, [expected, expected, false], "{class:?}");
        }
    }
}
