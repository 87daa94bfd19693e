//! Labels: what a result carries stays with the session that got it.

use syscap_format::{Body, Input, Label, Record, RecordKind, Seq};
use syscap_verify::Fault;

use super::check;
use super::tools::{intent, outcome};
use kernel_support::driver::agent;
use kernel_support::driver::log::Log;
use kernel_support::driver::scenario::{ECHO, call, keyed, said, small};

/// Results of `trim` are a stranger's word.
#[test]
fn missing_label_of_a_result_is_found() {
    let failing = r#"{"tool_id":"trim","args":{"bytes":9,"fail":true}}"#;
    for json in [call("trim", 9), failing.to_owned()] {
        let log = Log::of(&small(|driver, session| {
            driver.call(session, &json);
            driver.call(session, ECHO);
        }));
        check(
            &log,
            &[
                (
                    "forgotten with the next call",
                    &|r| intent(&mut r[16]).label = Label::PUBLIC,
                    &[(16, Fault::Label)],
                ),
                // A tool may give back what it kept: what it brings then nobody else can say.
                (
                    "brought by a tool that brings none of its own",
                    &|r| outcome(&mut r[17]).label = Label::UNTRUSTED,
                    &[],
                ),
                (
                    "left out of the outcome",
                    &|r| outcome(&mut r[15]).label = Label::PUBLIC,
                    &[(15, Fault::Label)],
                ),
                (
                    "there before it came",
                    &|r| intent(&mut r[14]).label = Label::UNTRUSTED,
                    &[(14, Fault::Label)],
                ),
            ],
        );
    }
}

/// 14 is what a user said, and 15 the next call.
#[test]
fn missing_label_of_a_prompt_is_found() {
    let log = Log::of(&small(|driver, session| {
        said(driver, session, "ada");
        driver.call(session, ECHO);
    }));
    fn input(record: &mut Record) -> &mut Input {
        match &mut record.body {
            Body::Input(input) => input,
            _ => panic!("another kind"),
        }
    }
    check(
        &log,
        &[
            ("forgotten", &|r| intent(&mut r[15]).label = Label::PUBLIC, &[(15, Fault::Label)]),
            ("made less of", &|r| input(&mut r[14]).label = Label::PUBLIC, &[(15, Fault::Label)]),
            (
                "of no session",
                &|r| input(&mut r[14]).session = Seq::new(1),
                &[(14, Fault::UnknownSession), (15, Fault::Label)],
            ),
            ("to another", &|r| input(&mut r[14]).agent = agent("bob"), &[(14, Fault::NotBound)]),
        ],
    );
}

/// A second session is given the first one's result: 17 is the repeat.
#[test]
fn missing_label_of_a_repeat_is_found() {
    let log = Log::of(&small(|driver, session| {
        driver.call(session, &keyed("trim", 9, "k"));
        let token = driver.kernel.tokens().next().unwrap().id;
        let other = driver.session(&agent("ada"), token);
        driver.call(other, &keyed("trim", 9, "k"));
        driver.call(other, ECHO);
    }));
    check(
        &log,
        &[
            (
                "forgotten with the next call",
                &|r| intent(&mut r[18]).label = Label::PUBLIC,
                &[(18, Fault::Label)],
            ),
            (
                "left out of the repeat",
                &|r| super::tools::repeat(&mut r[17]).label = Label::PUBLIC,
                &[(17, Fault::RepeatForm)],
            ),
        ],
    );
}

/// What one session was given is known to all of its token's family: 16 and 19 are calls of sessions
/// by a renewal, opened before and after; and a session of before is found behind one of now.
#[test]
fn missing_label_of_a_family_is_found() {
    let log = Log::of(&small(|driver, session| {
        let first = driver.kernel.tokens().next().unwrap();
        let (old, mut next) = (first.id, first.body.clone());
        (next.nonce, next.renews, next.expires) = ([77; 16], Some(old), next.expires.plus(1));
        let next = driver.issue(&next);
        let early = driver.session(&agent("ada"), next);
        driver.call(session, &call("trim", 9));
        driver.call(early, ECHO);
        let late = driver.session(&agent("ada"), next);
        driver.call(late, ECHO);
    }));
    let intents = log.places(RecordKind::Intent);
    let (early, late) = (intents[intents.len() - 2], intents[intents.len() - 1]);
    let opened = late - 1;
    let forgotten = |place| (place, Fault::Label);
    check(
        &log,
        &[
            (
                "forgotten by one that was open",
                &|r| intent(&mut r[early]).label = Label::PUBLIC,
                &[forgotten(early)],
            ),
            (
                "forgotten by one that is opened",
                &|r| intent(&mut r[late]).label = Label::PUBLIC,
                &[forgotten(late)],
            ),
            (
                "opened as before, behind one of now",
                &|r| {
                    if let Body::Session(change) = &r[opened].body {
                        r[opened].body = Body::SessionAlone(change.clone());
                    }
                    intent(&mut r[late]).label = Label::PUBLIC;
                },
                &[(opened, Fault::SessionForm)],
            ),
        ],
    );
}
