//! A label belongs to whoever remembers: the sessions of an agent's tokens that renew each other, or
//! are derived from each other, share one.

use kernel_support::driver::kin::{World, derive, root, seat, world};
use kernel_support::driver::log::Log;
use kernel_support::driver::scenario::{ECHO, call, keyed};
use kernel_support::driver::{Driver, agent};
use syscap_format::{Body, Label, RecordKind, Seq, TokenBody, TokenId};
use syscap_kernel::Event;

/// How the session that has read ends before the other one acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Open,
    Closed,
    Shutdown,
    Killed,
}

const ENDS: [End; 4] = [End::Open, End::Closed, End::Shutdown, End::Killed];

fn close(driver: &mut World, session: Seq) {
    let ticket = driver.ticket();
    driver.event(Event::CloseSession(ticket, session));
}

/// The other side of an end: the same kernel, or the next.
fn over(mut driver: World, reader: Seq, end: End) -> World {
    match end {
        End::Open => return driver,
        End::Closed => {
            close(&mut driver, reader);
            return driver;
        }
        End::Shutdown => driver.shutdown(),
        End::Killed => {}
    }
    driver.flush();
    let (reading, next) = (driver.reading, driver.next);
    let mut again = Driver::open(driver.crash(), reading, 0).unwrap();
    again.next = next;
    again.boot();
    again
}

/// What the next call of a session is decided on.
fn label(driver: &mut World, session: Seq) -> Label {
    driver.call(session, ECHO);
    driver.flush();
    let log = Log::of(&driver.store);
    let last = *log.places(RecordKind::Intent).last().unwrap();
    let Body::Intent(intent) = log.record(last).body else { unreachable!() };
    assert_eq!(intent.call.session, Some(session));
    intent.label
}

fn sound(mut driver: World, case: &str) {
    driver.shutdown();
    driver.flush();
    let live = driver.kernel.state_image();
    let reading = driver.reading;
    let store = driver.crash();
    assert_eq!(Log::of(&store).faults(), [], "{case}");
    let again = Driver::open(store, reading, 0).unwrap();
    assert_eq!(again.kernel.state_image(), live, "{case}");
}

fn renews(driver: &mut World, old: TokenId, nonce: u8) -> TokenId {
    let token = root(driver, |root| (root.nonce, root.renews) = ([nonce; 16], Some(old)));
    driver.issue(&token)
}

/// A way to go on after a reading: the tokens of the reader and of whoever goes on.
type Way = fn(&mut World) -> (TokenId, TokenId);

const WAYS: [(&str, Way); 5] = [
    ("by the same token", |driver| {
        let token = root(driver, |_| {});
        let token = driver.issue(&token);
        (token, token)
    }),
    ("by one that renews it", |driver| {
        let token = root(driver, |_| {});
        let token = driver.issue(&token);
        (token, renews(driver, token, 9))
    }),
    ("by one that it renewed", |driver| {
        let token = root(driver, |_| {});
        let token = driver.issue(&token);
        let next = renews(driver, token, 9);
        (renews(driver, next, 10), token)
    }),
    ("by one that was derived from it", |driver| {
        let token = root(driver, |_| {});
        let token = driver.issue(&token);
        (token, derive(driver, token, |child| child.agent = agent("ada")))
    }),
    ("by the one that it was derived from", |driver| {
        let token = root(driver, |_| {});
        let token = driver.issue(&token);
        (derive(driver, token, |child| child.agent = agent("ada")), token)
    }),
];

#[test]
fn reading_is_known_to_each_that_goes_on() {
    for (way, tokens) in WAYS {
        for (end, early) in ENDS.into_iter().flat_map(|end| [(end, false), (end, true)]) {
            let case = format!("{way}, {end:?}, opened before: {early}");
            let mut driver = world();
            let (reading, acting) = tokens(&mut driver);
            let reader = seat(&mut driver, reading);
            let before = early.then(|| seat(&mut driver, acting));
            driver.call(reader, &call("trim", 9));
            let mut driver = over(driver, reader, end);
            let kept = before.filter(|_| matches!(end, End::Open | End::Closed));
            let actor = kept.unwrap_or_else(|| seat(&mut driver, acting));
            assert_eq!(label(&mut driver, actor), Label::UNTRUSTED, "{case}");
            sound(driver, &case);
        }
    }
}

/// An agent's child begins with what the agent has read; what a child reads taints only the child.
#[test]
fn children_begin_with_what_their_parents_have_read() {
    for end in ENDS {
        let mut driver = world();
        let token = root(&driver, |_| {});
        let token = driver.issue(&token);
        let child = derive(&mut driver, token, |_| {});
        let reader = seat(&mut driver, token);
        let clean = seat(&mut driver, child);
        driver.call(reader, &call("trim", 9));
        assert_eq!(label(&mut driver, clean), Label::PUBLIC, "{end:?}: it has begun before");
        let mut driver = over(driver, reader, end);
        let begun = seat(&mut driver, child);
        assert_eq!(label(&mut driver, begun), Label::UNTRUSTED, "{end:?}");
        sound(driver, "a child");

        let mut driver = world();
        let token = root(&driver, |_| {});
        let token = driver.issue(&token);
        let child = derive(&mut driver, token, |_| {});
        let reader = seat(&mut driver, child);
        driver.call(reader, &call("trim", 9));
        let mut driver = over(driver, reader, end);
        let parent = seat(&mut driver, token);
        assert_eq!(label(&mut driver, parent), Label::PUBLIC, "{end:?}");
        sound(driver, "a parent");
    }
}

/// Only what is issued anew, and renews nothing, begins clean.
#[test]
fn a_token_that_is_issued_anew_begins_clean() {
    let mut driver = world();
    let token = root(&driver, |_| {});
    let token = driver.issue(&token);
    let reader = seat(&mut driver, token);
    driver.call(reader, &call("trim", 9));
    let anew = root(&driver, |root| root.nonce = [9; 16]);
    let anew = driver.issue(&anew);
    let begins = driver.kernel.token(&token).unwrap().begins;
    assert_eq!(begins, Label::UNTRUSTED);
    let handed = root(&driver, |root| {
        (root.nonce, root.ext) = ([10; 16], TokenBody::ext_with(begins));
    });
    let handed = driver.issue(&handed);
    let session = seat(&mut driver, anew);
    assert_eq!(label(&mut driver, session), Label::PUBLIC);
    let session = seat(&mut driver, handed);
    assert_eq!(label(&mut driver, session), Label::UNTRUSTED);
    sound(driver, "anew");
}

/// The label of a call that is made from what was read stays on its result, whoever repeats it.
#[test]
fn a_repeat_brings_the_label_of_what_the_call_was_made_from() {
    for end in ENDS {
        let mut driver = world();
        let token = root(&driver, |_| {});
        let token = driver.issue(&token);
        let next = renews(&mut driver, token, 9);
        let reader = seat(&mut driver, token);
        driver.call(reader, &call("trim", 9));
        driver.call(reader, &keyed("post", 40, "k"));
        let mut driver = over(driver, reader, end);
        let repeats = seat(&mut driver, next);
        driver.call(repeats, &keyed("post", 40, "k"));
        driver.flush();
        let log = Log::of(&driver.store);
        assert_eq!(log.places(RecordKind::Repeat).len(), 1, "{end:?}");
        assert_eq!(label(&mut driver, repeats), Label::UNTRUSTED, "{end:?}");
        sound(driver, "a repeat");
    }
}
