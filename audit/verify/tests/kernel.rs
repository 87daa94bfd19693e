//! What a host and its agents may do to the kernel at any moment, and the log that comes of it.

use kernel_support::driver::log::Log;
use kernel_support::driver::scenario::{answer, call, narrow, submit};
use kernel_support::driver::tools::AllowAll;
use kernel_support::driver::{Driver, HOUR_MS, agent, body, key, new_home, parts, start};
use syscap_audit::MemoryStore;
use syscap_format::{
    ApprovalAnswer, ApprovalBody, ApprovalChannel, Reason, RecordKind, Role, Salt, Seq, ToolResult,
    VaultText,
};
use syscap_kernel::{Event, Halt, Kernel, Room};

/// The policy asks about this call.
fn asks() -> String {
    call("post", 17)
}

/// The request that an answer names.
fn named(result: &ToolResult) -> Option<Seq> {
    let got = result.delivered().item().get("got")?.as_text()?.parse().ok()?;
    Some(Seq::new(got))
}

fn is_sound(mut driver: Driver<MemoryStore>) -> Log {
    driver.shutdown();
    driver.flush();
    assert!(driver.error.is_none() && driver.kernel.halted().is_none());
    let log = Log::of(&driver.crash());
    assert_eq!(log.faults(), []);
    log
}

#[test]
fn same_call_made_twice_at_once_asks_once() {
    let mut driver = narrow(MemoryStore::new());
    let (_, session) = driver.agent("ada", 1);
    let first = submit(&mut driver, session, &asks());
    let second = submit(&mut driver, session, &asks());
    driver.pump();
    assert_eq!(driver.kernel.asks().count(), 1);
    let ask = driver.kernel.asks().next().unwrap().ask;
    for ticket in [first, second] {
        let reply = driver.reply(ticket);
        assert_eq!((reply.reason(), named(reply)), (Some(Reason::Asked), Some(ask)));
    }
    answer(&mut driver, ApprovalAnswer::Once);
    let done = driver.call(session, &asks());
    assert_eq!(driver.reply(done).reason(), None);
    // One approval, one run: the next call asks anew.
    let next = driver.call(session, &asks());
    assert!(named(driver.reply(next)).unwrap() > ask);
    assert_eq!(is_sound(driver).places(RecordKind::Ask).len(), 2);
}

/// An answer that is only counted waits for the request that it names.
#[test]
fn counted_answer_waits_for_the_request_that_it_names() {
    let mut driver = narrow(MemoryStore::new());
    let (token, first) = driver.agent("ada", 1);
    let second = driver.session(&agent("ada"), token);
    for _ in 0..20 {
        driver.call(second, "[]");
    }
    driver.flush();
    submit(&mut driver, first, &asks());
    let before = driver.kernel.head();
    let counted = submit(&mut driver, second, &asks());
    assert_eq!(driver.kernel.head(), before, "it is counted in an aggregate");
    assert!(driver.kernel.poll_effect().is_none(), "the request is not durable");
    driver.pump();
    assert_eq!(named(driver.reply(counted)), driver.kernel.asks().next().map(|ask| ask.ask));
    is_sound(driver);
}

/// The same call under two tokens is two requests: what was said last counts for both.
#[test]
fn last_answer_counts_of_two_requests_about_one_call() {
    let mut driver = narrow(MemoryStore::new());
    let (_, one) = driver.agent("ada", 1);
    let (_, two) = driver.agent("ada", 2);
    driver.call(one, &asks());
    let leaf = driver.kernel.asks().next().unwrap().leaf;
    driver.call(two, &asks());
    assert_eq!(driver.kernel.asks().count(), 2);
    let denies = ApprovalBody { answer: ApprovalAnswer::Deny, ..approves(leaf) };
    driver.control(Role::Approver, &denies).unwrap();
    let denied = driver.call(two, &asks());
    assert_eq!(driver.reply(denied).reason(), Some(Reason::ApprovalDenied));
    answer(&mut driver, ApprovalAnswer::Once);
    let done = driver.call(two, &asks());
    assert_eq!(driver.reply(done).reason(), None);
    // That one is used up; the denial stands.
    let again = driver.call(two, &asks());
    assert_eq!(driver.reply(again).reason(), Some(Reason::ApprovalDenied));
    is_sound(driver);
}

fn approves(ask: syscap_format::Leaf) -> ApprovalBody {
    let (scopes, uses, expires, reason) = (None, None, None, None);
    ApprovalBody {
        ask,
        answer: ApprovalAnswer::Once,
        means: ApprovalChannel::Signer,
        scopes,
        uses,
        expires,
        reason,
    }
}

/// Before that the vault has not the reason that was given.
#[test]
fn answer_that_is_not_durable_is_none_yet() {
    let mut driver = narrow(MemoryStore::new());
    let (_, session) = driver.agent("ada", 1);
    driver.call(session, &asks());
    let text = VaultText { salt: Salt::from_bytes([7; 32]), field: 7, text: "not today".into() };
    let leaf = driver.kernel.asks().next().unwrap().leaf;
    let reason = Some(text.hash());
    let denies = ApprovalBody { answer: ApprovalAnswer::Deny, reason, ..approves(leaf) };
    let bytes = syscap_format::ControlBody::to_bytes(&denies);
    let control = driver.sign(&key(Role::Approver), RecordKind::Approval, bytes);
    let ticket = driver.ticket();
    let denies = Event::Control(ticket, RecordKind::Approval, control, None, Some(text));
    driver.kernel.handle(denies, driver.reading);
    let early = submit(&mut driver, session, &asks());
    driver.pump();
    assert_eq!(driver.reply(early).reason(), Some(Reason::Asked));
    let late = driver.call(session, &asks());
    let reply = driver.reply(late);
    let why = reply.delivered().item().get("allowed").and_then(|item| item.as_text());
    assert_eq!((reply.reason(), why), (Some(Reason::ApprovalDenied), Some("not today")));
    is_sound(driver);
}

/// An approval that has ended does not hide the request that was made after it.
#[test]
fn ended_approval_leaves_the_newer_request_waiting() {
    let mut driver = narrow(MemoryStore::new());
    let (_, session) = driver.agent("ada", 1);
    driver.call(session, &asks());
    let leaf = driver.kernel.asks().next().unwrap().leaf;
    let expires = Some(driver.reading.wall.plus(1_000));
    driver.control(Role::Approver, &ApprovalBody { expires, ..approves(leaf) }).unwrap();
    driver.pass(2_000);
    let anew = driver.call(session, &asks());
    let ask = named(driver.reply(anew)).unwrap();
    let again = driver.call(session, &asks());
    assert_eq!(named(driver.reply(again)), Some(ask));
    assert_eq!(driver.kernel.asks().count(), 2);
    is_sound(driver);
}

/// Events that a host may bring too early.
fn early(driver: &mut Driver<MemoryStore>) -> Vec<Event> {
    let token = kernel_support::driver::wire(&body(driver.kernel.home(), 1, &agent("ada")));
    let ticket = driver.ticket();
    vec![
        Event::Issue(ticket, token, None),
        Event::CloseSession(ticket, Seq::new(1)),
        Event::Cancel(ticket, Seq::new(1), Seq::new(2)),
        Event::Tick,
        Event::Shutdown(ticket),
    ]
}

/// Such an event once made a refusal before the first boot, and the verifier called that log
/// tampered.
#[test]
fn event_before_boot_halts_and_records_nothing() {
    let made = || {
        let kernel = Kernel::create(new_home(7), parts(AllowAll::new(0)), start()).unwrap();
        Driver::with(kernel, MemoryStore::new(), start())
    };
    let events = early(&mut made()).len();
    for n in 0..=events {
        let mut driver = made();
        driver.flush();
        let mut all = early(&mut driver);
        let head = driver.kernel.head();
        if n < events {
            driver.event(all.swap_remove(n));
        } else {
            submit(&mut driver, Seq::new(1), &asks());
        }
        assert_eq!(driver.kernel.halted(), Some(&Halt::NotBooted), "{n}");
        assert_eq!((driver.kernel.head(), driver.store.all_records().len()), (head, 1), "{n}");
        assert!(driver.replies.is_empty() && driver.acks.is_empty(), "{n}");
    }
    // What it may hear before: that a batch is durable, and whether there is room.
    let mut driver = made();
    driver.flush();
    driver.event(Event::Room(Room::Enough));
    driver.boot();
    assert_eq!(driver.kernel.halted(), None);
    is_sound(driver);
}

/// So it is with a home that is opened again.
#[test]
fn event_before_another_boot_halts_and_records_nothing() {
    let driver = narrow(MemoryStore::new());
    let mut reading = driver.reading;
    reading.wall = reading.wall.plus(HOUR_MS);
    let mut driver = Driver::open(driver.crash(), reading, 0).unwrap();
    let records = driver.store.all_records().len();
    submit(&mut driver, Seq::new(1), &asks());
    assert_eq!(driver.kernel.halted(), Some(&Halt::NotBooted));
    assert_eq!(driver.store.all_records().len(), records);
}
