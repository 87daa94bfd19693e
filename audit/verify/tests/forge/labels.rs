//! Labels: what a result carries stays with the session that got it.

use syscap_format::{Body, Input, Label, Record, Seq};
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
                &[(17, Fault::RepeatForm), (18, Fault::Label)],
            ),
        ],
    );
}
