//! Calls that an agent had no credits for.

use syscap_format::{AgentId, CreditChange, Dimension, Record, RecordKind, Role};
use syscap_verify::Fault;

use super::check;
use super::tools::{both, control, event, home, outcome};
use kernel_support::driver::log::Log;
use kernel_support::driver::scenario::{ECHO, call, small};

const CREDITS: Dimension = Dimension::CreditsMicro;

/// `ada` has 60 millionths, and makes two calls after that.
fn base() -> Log {
    Log::of(&small(|driver, session| {
        let agent = |name| AgentId::new(name).unwrap();
        let added = |name, added| CreditChange { agent: agent(name), added };
        driver.control(Role::Operator, &added("ada", 50)).unwrap();
        driver.control(Role::Operator, &added("ada", 10)).unwrap();
        driver.control(Role::Operator, &added("ad", 0)).unwrap();
        driver.call(session, &call("disk.write", 5));
        driver.call(session, ECHO);
    }))
}

fn uses(records: &mut [Record], place: usize, credits: u64) {
    let call = &mut outcome(&mut records[place]).call;
    call.used = call.used.with(CREDITS, credits);
}

/// Another gift in the place of one that there was.
fn give(records: &mut [Record], place: usize, agent: &str, added: u64) {
    let counter = control(&mut records[place]).signatures[0].counter;
    let change = CreditChange { agent: AgentId::new(agent).unwrap(), added };
    let home = home(records);
    *control(&mut records[place]) = event(&home, counter, &change);
}

fn given(records: &mut [Record], places: [usize; 2], agent: &str, added: u64) {
    places.into_iter().for_each(|place| give(records, place, agent, added));
}

#[test]
fn an_agent_uses_no_more_than_it_was_given() {
    let log = base();
    let intents = log.places(RecordKind::Intent);
    let [.., before, first, second] = intents[..] else { panic!("{intents:?}") };
    let (opened, last) = (log.places(RecordKind::Credit)[0], log.places(RecordKind::Credit)[2]);
    let over = Fault::OverBudget;
    check(
        &log,
        &[
            ("all of it", &|r| both(r, first, |c| c.held = c.held.with(CREDITS, 60)), &[]),
            (
                "one more",
                &|r| both(r, first, |c| c.held = c.held.with(CREDITS, 61)),
                &[(first, over)],
            ),
            (
                "before there was an account",
                &|r| both(r, before, |c| c.held = c.held.with(CREDITS, 500)),
                &[],
            ),
            (
                "more than the call before left",
                &|r| {
                    both(r, first, |c| c.held = c.held.with(CREDITS, 30));
                    uses(r, first + 1, 30);
                    both(r, second, |c| c.held = c.held.with(CREDITS, 31));
                },
                &[(second, over)],
            ),
            (
                "anything once all was used",
                &|r| {
                    both(r, first, |c| c.held = c.held.with(CREDITS, 60));
                    uses(r, first + 1, 60);
                },
                &[(second, Fault::Exhausted)],
            ),
            ("given to another", &|r| give(r, opened, "bob", 50), &[]),
            ("an account above that has nothing", &|r| give(r, opened, "a", 0), &[]),
            (
                "nothing",
                &|r| given(r, [opened, opened + 1], "ada", 0),
                &[(first, Fault::Exhausted), (second, Fault::Exhausted)],
            ),
            (
                "more than there is room for",
                &|r| give(r, opened + 1, "ada", u64::MAX),
                &[(opened + 1, Fault::BadControl)],
            ),
            (
                "by nobody",
                &|r| control(&mut r[last]).signatures[0].counter += 1,
                &[(last, Fault::BadSignature)],
            ),
        ],
    );
}
