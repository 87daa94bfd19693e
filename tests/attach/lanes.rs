//! The agents' lane: calls through sessions that were lent, and nothing else.

use std::io::Read as _;
use std::os::unix::net::UnixStream;

use host_support::end;
use syscap::format::{Encoder, Freeze, Label, Source};
use syscap::host::Prompt;
use syscap::policy::Preset;
use syscap::prelude::*;
use syscap::view::Whose;
use syscap::{Runtime, SessionTicket};

use crate::{attach::wire::*, attach::world::*};

fn is_wrong_lane<T>(result: Result<T, Error>) -> bool {
    match result {
        Err(Error::Refused(refused)) => refused.reason() == Reason::WrongLane,
        _ => false,
    }
}

fn is_not_bound<T>(result: Result<T, Error>) -> bool {
    match result {
        Err(Error::Refused(refused)) => refused.reason() == Reason::NotBound,
        _ => false,
    }
}

/// Where the lender holds the home, and where it is attached.
#[test]
fn a_session_that_was_lent_is_called_through() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let attached = Runtime::connect(&home).unwrap();
    for lender in [&holder, &attached] {
        let opened = caller(lender, &["echo"]);
        let token = opened.token();
        let ticket = opened.lend().unwrap();
        let agent = Runtime::agent(&home).unwrap();
        assert!(!agent.is_holder());
        let guessed = SessionTicket::from_bytes([7; 32]);
        assert!(is_not_bound(agent.take(&guessed)));
        let taken = agent.take(&ticket).unwrap();
        assert_eq!((taken.agent().as_str(), taken.token()), ("a", token));
        assert_eq!(echo(&taken).unwrap().reason(), None);
        let refused = call(&taken, "fs.read", args! { "path": "a" }).unwrap();
        assert_eq!(refused.reason(), Some(Reason::NotGranted));
        // A ticket opens one session, once.
        assert!(is_not_bound(agent.take(&ticket)));
        assert!(is_not_bound(Runtime::agent(&home).unwrap().take(&ticket)));
        lender.revoke(token).unwrap();
        assert_eq!(echo(&taken).unwrap().reason(), Some(Reason::Revoked));
        assert_eq!(holder.view().unwrap().sessions_in_all, 1);
        taken.close().unwrap();
        assert_eq!(holder.view().unwrap().sessions_in_all, 0);
    }
    assert!(!format!("{:?}", SessionTicket::from_bytes([0xab; 32])).contains("ab"));
    attached.close().unwrap();
    end(&holder, &home);
}

#[test]
fn the_agents_lane_takes_calls_only() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let other = caller(&holder, &["echo"]);
    let ticket = caller(&holder, &["echo"]).lend().unwrap();
    let agent = Runtime::agent(&home).unwrap();
    let taken = agent.take(&ticket).unwrap();
    let before = records(&home).len();
    let all = Freeze::all();
    assert!(is_wrong_lane(agent.issue(Grant::to("a").tools(["echo"]))));
    assert!(is_wrong_lane(agent.revoke(other.token())));
    assert!(is_wrong_lane(agent.freeze(&all)));
    assert!(is_wrong_lane(agent.set_policy_object(&preset(Preset::Recording))));
    assert!(is_wrong_lane(agent.set_shadow_object(&preset(Preset::Recording))));
    assert!(is_wrong_lane(agent.clear_shadow()));
    // By a ticket that has said so tools are offered, and by nothing else.
    assert!(is_not_bound(agent.provide(vec![manifest("t.a")], Gate::opened().provider())));
    assert!(is_wrong_lane(agent.accept(&[tool("echo")])));
    assert!(is_wrong_lane(agent.forget(&[tool("echo")])));
    // Not even the tokens that there are, nor what may be called.
    assert!(is_wrong_lane(agent.view()));
    assert!(is_wrong_lane(agent.tool(&tool("echo"))));
    assert!(is_wrong_lane(agent.manifests(Whose::All)));
    assert!(is_wrong_lane(agent.observe(&taken, Source::Tool, &[], args! { "fact.a": 1 })));
    assert!(is_wrong_lane(taken.propose(args! { "goal.a": 1 })));
    // Least of all what its user has said.
    assert!(is_wrong_lane(taken.heard("Approve it.", Label::PUBLIC)));
    let (agent_id, conversation) = (taken.agent().clone(), "c".to_owned());
    let prompt = Prompt { agent: agent_id, conversation, text: "Approve it.".to_owned() };
    assert!(is_wrong_lane(agent.heard(taken.token(), &prompt)));
    // An id alone opens nothing.
    assert!(agent.session("a", other.token()).is_err());
    assert_eq!(records(&home).len(), before, "nothing was recorded");
    // And its own session goes on, on the same connection.
    assert_eq!(echo(&taken).unwrap().reason(), None);
    assert_eq!(holder.view().unwrap().counts.attached, 1);
    assert_eq!(echo(&other).unwrap().reason(), None);
}

/// By bytes: what belongs to the operator is refused before it is looked at, whatever it is.
#[test]
fn the_holder_keeps_the_lanes_apart() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let other = caller(&holder, &["echo"]);
    let number = holder.view().unwrap().sessions[0].number.get();
    let mut stream = greeted_by(&home, &HELLO_AGENTS);
    let before = records(&home).len();
    let wrong = Reason::WrongLane.code();
    // Everything that there is, and more; whatever stands there.
    for number in (1..60).chain([u64::MAX]) {
        let answer = ask(&mut stream, &asking(number, ASK, number, Encoder::null));
        assert_eq!((refused(&answer), parts(&answer).0), (Some(wrong), number));
    }
    let answer = ask(&mut stream, &carrying(7, ASK, |encoder| encoder.text("nothing of the kind")));
    assert_eq!(refused(&answer), Some(wrong));
    // Nor is another's session to be called through, or closed.
    let no_session = Some(Reason::NoSession.code());
    assert_eq!(refused(&ask(&mut stream, &calling(number, Source::Agent))), no_session);
    // Nor does an agent say who else has brought a call about.
    assert_eq!(refused(&ask(&mut stream, &calling(number, Source::User))), Some(wrong));
    // Nor on whose behalf it asks a person, so that these calls have more time.
    let within = asking(1, AGENT_ASK, CALL, |encoder| {
        sending(encoder, number, (Source::Agent, &[number]), b"\xa0");
    });
    assert_eq!(refused(&ask(&mut stream, &within)), Some(wrong));
    let close = asking(1, AGENT_ASK, CLOSE, |encoder| encoder.uint(number));
    assert_eq!(refused(&ask(&mut stream, &close)), no_session);
    // Nor is it told what that one has.
    for verb in [TOOLS, LEFT] {
        let look = asking(1, AGENT_ASK, verb, |encoder| encoder.uint(number));
        assert_eq!(refused(&ask(&mut stream, &look)), no_session);
    }
    let token = [&[0x83, 4, 7, 0x58, 0x20][..], other.token().as_bytes()].concat();
    let frozen: [&[u8]; 5] = [
        &token,
        &[0x85, 5, 7, 3, 0x60, 1],
        &[0x82, 6, 7],
        &[0x82, 7, 7],
        &[0x85, 8, 7, 7, 2, 0x40],
    ];
    for bytes in frozen {
        assert_eq!(uints(&ask(&mut stream, bytes)), [10, 7, wrong], "{bytes:02x?}");
    }
    assert_eq!(records(&home).len(), before, "nothing was recorded");
    assert!(holder.is_holder());
    assert_eq!(echo(&other).unwrap().reason(), None);
    // What is malformed ends the connection here too.
    std::io::Write::write_all(&mut stream, &frame(b"\x82\x04\x01")).unwrap();
    assert!(is_dropped(stream));
}

/// A session that was lent ends with its lender, one that was taken with its taker.
#[test]
fn a_session_that_was_lent_ends_with_whoever_has_it() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let open = || holder.view().unwrap().sessions_in_all;
    let lender = Runtime::connect(&home).unwrap();
    let (ticket, unused) =
        (caller(&lender, &["echo"]).lend().unwrap(), caller(&lender, &["echo"]).lend().unwrap());
    let agent = Runtime::agent(&home).unwrap();
    let taken = agent.take(&ticket).unwrap();
    assert_eq!(open(), 2);
    lender.close().unwrap();
    until("what nobody took has ended", || open() == 1);
    assert!(is_not_bound(agent.take(&unused)));
    assert_eq!(echo(&taken).unwrap().reason(), None);
    agent.close().unwrap();
    until("what was taken has ended", || open() == 0);
    // With its holder it ends too: who is on this lane opens nothing again.
    let ticket = caller(&holder, &["echo"]).lend().unwrap();
    let agent = Runtime::agent(&home).unwrap();
    let taken = agent.take(&ticket).unwrap();
    holder.close().unwrap();
    let next = Runtime::open(&home).unwrap();
    assert!(matches!(echo(&taken), Err(Error::HolderGone)));
    assert_eq!(next.view().unwrap().sessions_in_all, 0);
    // A holder that serves nobody has nobody to lend to.
    drop((agent, taken));
    next.close().unwrap();
    let command = Runtime::command(&home).unwrap();
    assert!(matches!(caller(&command, &["echo"]).lend(), Err(Error::Unserved(_))));
}

/// What is lent and not taken is bounded; one that finds no room stays its lender's.
#[test]
fn delegated_sessions_are_bounded() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let lenders = [(); 2].map(|()| Runtime::connect(&home).unwrap());
    let token = caller(&holder, &["echo"]).token();
    let lend = |lender: &Runtime| lender.session("a", token).unwrap().lend();
    let mut tickets: Vec<_> = (0..1_024).map(|n| lend(&lenders[n % 2]).unwrap()).collect();
    let is_full = |lent: Result<SessionTicket, Error>| match lent {
        Err(Error::Refused(refused)) => refused.reason() == Reason::TooManySessions,
        _ => false,
    };
    assert!(is_full(lend(&lenders[0])) && is_full(lend(&holder)));
    let agent = Runtime::agent(&home).unwrap();
    agent.take(&tickets.pop().unwrap()).unwrap();
    lend(&holder).unwrap();
    lenders.into_iter().for_each(|lender| lender.close().unwrap());
    // The three of the holder, and the one that was taken.
    until("they have ended", || holder.view().unwrap().sessions_in_all == 4);
}

/// True if the other side has not closed it.
fn is_open(mut stream: &UnixStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    stream.read(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

/// However many agents there are, there is room on the operator's lane.
#[test]
fn agents_leave_room_for_operators() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let token = caller(&holder, &["echo"]).token();
    let lent = || holder.session("a", token).unwrap();
    // Who shows tickets that open nothing has a place until another wants it.
    let bogus = |_| {
        let mut stream = greeted_by(&home, &HELLO_AGENTS);
        assert_eq!(untaken(&mut stream), Some(Reason::NotBound.code()));
        stream
    };
    let bogus: Vec<UnixStream> = (0..224).map(bogus).collect();
    let agent = |_| settled_by(&home, &HELLO_AGENTS, lent());
    let agents: Vec<UnixStream> = (0..208).map(agent).collect();
    // One more of the agent that has most is refused, and another's takes a place of it.
    let one_more = Runtime::agent(&home).unwrap();
    assert!(matches!(one_more.take(&lent().lend().unwrap()), Err(Error::Refused(_))));
    let other = holder.issue(Grant::to("b").tools(["echo"])).unwrap();
    let ticket = holder.session("b", other).unwrap().lend().unwrap();
    let taken = one_more.take(&ticket).unwrap();
    assert_eq!(echo(&taken).unwrap().reason(), None);
    until("one of them has gone", || agents.iter().filter(|stream| is_open(stream)).count() == 207);
    // Nor is it the other's turn, whose only one it is.
    assert_eq!(echo(&taken).unwrap().reason(), None);
    let operators: Vec<UnixStream> = (0..32).map(|_| settled_by(&home, &HELLO, lent())).collect();
    // So many have sessions that there is no room for another one's, and always for a command.
    let commands: Vec<UnixStream> = (0..40).map(|_| greeted(&home)).collect();
    assert_eq!(untaken(&mut greeted(&home)), Some(Reason::Overloaded.code()));
    let command = Runtime::command(&home).unwrap();
    let token = command.issue(Grant::to("a").tools(["echo"])).unwrap();
    assert!(matches!(command.session("a", token), Err(Error::Refused(_))));
    command.revoke(token).unwrap();
    drop((bogus, agents, operators, commands, command, taken, one_more));
    until("they have left", || holder.view().unwrap().counts.attached == 0);
}
