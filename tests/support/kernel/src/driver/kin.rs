//! Sound logs of tokens that were derived from others or take the place of others. All of the
//! chain counts: what the kernel answers says so, and a verifier that forgets an ancestor finds
//! faults in them.

use ed25519_dalek::SigningKey;
use syscap_audit::MemoryStore;
use syscap_format::{
    Body, Dimension, Label, Reason, RevocationList, Role, Seq, TOKEN_CONTEXT, Token, TokenBody,
    TokenId, UnixMillis,
};
use syscap_kernel::{Ack, Anchor, Event, Kernel, Measured};

use super::log::Log;
use super::scenario::{ECHO, call, keyed};
use super::tools::AllowAll;
use super::{Driver, HOUR_MS, Run, START_MS, agent, body, parts, public, sign};

const DAY_MS: u64 = 24 * HOUR_MS;

pub type World = Driver<MemoryStore>;

/// A log, and how its calls were answered.
pub struct Kin {
    pub name: &'static str,
    pub log: Log,
    pub answers: Vec<Option<Reason>>,
    /// What was to be expected.
    pub expected: Vec<Option<Reason>>,
}

/// All of them.
pub fn all() -> Vec<Kin> {
    vec![gap(), used_up(), exhausted(), stale(), carried_on(), repeated(), labelled(), of_before()]
}

fn holder() -> SigningKey {
    SigningKey::from_bytes(&[50; 32])
}

/// A root that may be handed on twice.
pub fn root(driver: &World, change: impl FnOnce(&mut TokenBody)) -> TokenBody {
    let mut root = body(driver.kernel.home(), 1, &agent("ada"));
    (root.holder, root.depth_max) = (Some(public(&holder())), 2);
    change(&mut root);
    root
}

/// Hands a token on, to an agent below.
pub fn derive(driver: &mut World, parent: TokenId, change: impl FnOnce(&mut TokenBody)) -> TokenId {
    let above = driver.kernel.token(&parent).unwrap().body.clone();
    let mut child = TokenBody {
        nonce: [above.nonce[0] + 1; 16],
        issuer: public(&holder()),
        agent: agent(&format!("{}/below", above.agent)),
        parent: Some(parent),
        depth: above.depth + 1,
        head: None,
        caveats: Vec::new(),
        ..above
    };
    change(&mut child);
    let bytes = child.to_bytes();
    let wire = Token::wire(&bytes, &sign(&holder(), TOKEN_CONTEXT, &bytes));
    let ticket = driver.ticket();
    driver.event(Event::Issue(ticket, wire, None));
    match driver.acked(ticket).unwrap() {
        Ack::Token(id) => id,
        other => panic!("{other:?}"),
    }
}

pub fn seat(driver: &mut World, token: TokenId) -> Seq {
    let agent = driver.kernel.token(&token).unwrap().body.agent.clone();
    driver.session(&agent, token)
}

fn answer(driver: &mut World, session: Seq, json: &str) -> Option<Reason> {
    let ticket = driver.call(session, json);
    driver.reply(ticket).reason()
}

pub fn world() -> World {
    Driver::ready(MemoryStore::new())
}

fn kin(
    name: &'static str,
    mut driver: World,
    answers: Vec<Option<Reason>>,
    expected: impl Into<Vec<Option<Reason>>>,
) -> Kin {
    driver.shutdown();
    driver.flush();
    assert!(driver.error.is_none() && driver.kernel.halted().is_none(), "{name}");
    Kin { name, log: Log::of(&driver.crash()), answers, expected: expected.into() }
}

/// After a gap in time the clock is confirmed before a token from before it counts: also one that
/// is derived from it afterwards.
fn gap() -> Kin {
    let mut driver = world();
    let root = root(&driver, |root| {
        root.not_before = UnixMillis::new(START_MS + 60 * DAY_MS);
        root.expires = UnixMillis::new(START_MS + 140 * DAY_MS);
    });
    let root = driver.issue(&root);
    driver.flush();
    let mut reading = driver.reading;
    reading.wall = reading.wall.plus(91 * DAY_MS);
    reading.boottime_ms = 5;
    let mut store = driver.crash();
    let kernel = Kernel::open(&mut store, parts(AllowAll::new(0)), &Anchor::default()).unwrap();
    let mut driver = Driver::with(kernel, store, reading);
    driver.boot();
    let child = derive(&mut driver, root, |_| {});
    let session = seat(&mut driver, child);
    let answers = vec![answer(&mut driver, session, ECHO)];
    kin("gap", driver, answers, [Some(Reason::ClockUnconfirmed)])
}

/// Two calls were the parent's, and it has made them: the child has none, not even one that is
/// refused for what it says.
fn used_up() -> Kin {
    let mut driver = world();
    let root = root(&driver, |root| root.budget = root.budget.with(Dimension::Calls, 2));
    let root = driver.issue(&root);
    let child = derive(&mut driver, root, |_| {});
    let (above, below) = (seat(&mut driver, root), seat(&mut driver, child));
    let unfit = r#"{"tool_id":"post","args":{"bytes":"x"}}"#;
    let all = [(above, ECHO), (above, ECHO), (below, ECHO), (below, unfit)];
    let all = all.map(|(session, json)| answer(&mut driver, session, json));
    let over = Some(Reason::OverBudget);
    kin("used_up", driver, all.into(), [None, None, over, over])
}

/// A run of the parent's took more than was set aside for it, and so ended its token.
fn exhausted() -> Kin {
    let mut driver = world();
    let root = root(&driver, |_| {});
    let root = driver.issue(&root);
    let child = derive(&mut driver, root, |_| {});
    let (above, below) = (seat(&mut driver, root), seat(&mut driver, child));
    let mut answers = vec![answer(&mut driver, below, ECHO)];
    driver.run = Run::Later;
    driver.call(above, &call("post", 40));
    let ran = driver.jobs.remove(0).run();
    let measured = Measured { cpu_us: 60_000_000, wall_us: 5 };
    driver.event(Event::Ran(ran, measured));
    driver.run = Run::AtOnce;
    answers.push(answer(&mut driver, below, ECHO));
    kin("exhausted", driver, answers, [None, Some(Reason::Exhausted)])
}

/// The root needs a list of revocations that is new.
fn stale() -> Kin {
    let mut driver = world();
    let root = root(&driver, |root| root.caveats = vec![TokenBody::fresh_within_caveat(1_000)]);
    let root = driver.issue(&root);
    let child = derive(&mut driver, root, |_| {});
    let child = derive(&mut driver, child, |_| {});
    let session = seat(&mut driver, child);
    let mut answers = vec![answer(&mut driver, session, ECHO)];
    let as_of = driver.kernel.now();
    let list = RevocationList { version: 1, as_of, tokens: Vec::new(), cause: None };
    driver.control(Role::Revoker, &list).unwrap();
    answers.push(answer(&mut driver, session, ECHO));
    kin("stale", driver, answers, [Some(Reason::StaleRevocations), None])
}

/// A token of a minute, one of two minutes that renews it, and one that renews that.
fn renewals(driver: &mut World) -> [TokenId; 3] {
    let minute = HOUR_MS / 60;
    let mut before = None;
    [1, 2, 3].map(|nonce| {
        let mut token = body(driver.kernel.home(), nonce, &agent("ada"));
        token.renews = before;
        let end = token.not_before.plus(minute * u64::from(nonce));
        token.caveats = vec![TokenBody::renew_by_caveat(end)];
        let token = driver.issue(&token);
        before = Some(token);
        token
    })
}

/// The first goes on as long as the last does.
fn carried_on() -> Kin {
    let mut driver = world();
    let [first, ..] = renewals(&mut driver);
    let session = seat(&mut driver, first);
    let minute = HOUR_MS / 60;
    let at = |driver: &mut World, minutes: u64| {
        let at = START_MS + minutes * minute + minute / 2;
        let now = driver.kernel.now().get();
        driver.pass(at - now);
        answer(driver, session, ECHO)
    };
    let answers = [0, 1, 2, 3].map(|minutes| at(&mut driver, minutes));
    kin("carried_on", driver, answers.into(), [None, None, None, Some(Reason::Revoked)])
}

/// A call under the first is repeated under the last: it has the first's answer.
fn repeated() -> Kin {
    let mut driver = world();
    let [first, _, last] = renewals(&mut driver);
    let sessions = [first, last].map(|token| seat(&mut driver, token));
    let answers = sessions.map(|session| answer(&mut driver, session, &keyed("post", 40, "k")));
    let kin = kin("repeated", driver, answers.into(), [None, None]);
    assert_eq!(kin.log.places(syscap_format::RecordKind::Intent).len(), 1);
    kin
}

/// What had been read where a token was handed on is known in the sessions of all below it.
fn labelled() -> Kin {
    let mut driver = world();
    let root = root(&driver, |_| {});
    let root = driver.issue(&root);
    let child =
        derive(&mut driver, root, |child| child.ext = TokenBody::ext_with(Label::UNTRUSTED));
    let below = derive(&mut driver, child, |below| below.ext = TokenBody::ext_with(Label::PUBLIC));
    let session = seat(&mut driver, below);
    let answers = vec![answer(&mut driver, session, &call("post", 40))];
    let kin = kin("labelled", driver, answers, [None]);
    let intent = kin.log.places(syscap_format::RecordKind::Intent)[0];
    let Body::Intent(intent) = kin.log.record(intent).body else { unreachable!() };
    assert_eq!(intent.label, Label::UNTRUSTED, "the label of the session");
    kin
}

/// A log of before: its sessions have labels of their own, and the second knows nothing of what the
/// first has read.
fn of_before() -> Kin {
    let mut driver = world();
    let token = root(&driver, |_| {});
    let token = driver.issue(&token);
    let reader = seat(&mut driver, token);
    let trimmed = answer(&mut driver, reader, &call("trim", 9));
    let other = seat(&mut driver, token);
    let answers = vec![trimmed, answer(&mut driver, other, ECHO)];
    let mut kin = kin("of_before", driver, answers, [None, None]);
    kin.log.forge(|records| {
        for record in records.iter_mut() {
            match &mut record.body {
                Body::Session(change) => record.body = Body::SessionAlone(change.clone()),
                Body::Intent(intent) if intent.call.session > Some(reader) => {
                    intent.label = Label::PUBLIC;
                }
                _ => {}
            }
        }
    });
    kin
}
