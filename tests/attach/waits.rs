//! On the agents' lane: waiting for a person's answer, and what a token grants and has left.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::net::UnixStream;

use host_support::{Still, alone, end, new_home};
use syscap::approvals::{Stands, Waited};
use syscap::format::{
    ASK_LIFE_MS, ApprovalAnswer, Canonical, Decoder, EffectClass, Item, Label, Param, ParamType,
    Profile, Seq,
};
use syscap::host::HostTool;
use syscap::policy::Policy;
use syscap::prelude::*;
use syscap::provide::Standing;

use crate::{attach::wire::*, attach::world::*};

const WAIT: u64 = 5;
/// The longest wait that is taken, in milliseconds.
const LONGEST: u64 = 600_000;

const POLICY: &str = r#"{"v": 1, "constraints": [{"id": "writes", "effect": "allow",
    "subject": {"tool_id": "fs.write"}, "when": {"op": "eq", "args": ["args.path", ""]},
    "on_fail": "ask", "reason": "Somebody looks."}]}"#;

fn served() -> (tempfile::TempDir, std::path::PathBuf, Still, Runtime) {
    let ((dir, home), clock) = (new_home(), Still::default());
    let policy = Policy::from_json(POLICY.as_bytes()).unwrap();
    Options::new().policy(policy).clock(clock.clone()).create(&home).unwrap().close().unwrap();
    let holder = Options::new().clock(clock.clone()).open(&home).unwrap();
    (dir, home, clock, holder)
}

fn wait(id: u64, session: u64, ask: Seq, limit: u64) -> Vec<u8> {
    asking(id, AGENT_ASK, WAIT, |encoder| {
        encoder.map(3);
        for (key, value) in [(1, session), (2, ask.get()), (3, limit)] {
            encoder.uint(key);
            encoder.uint(value);
        }
    })
}

/// What an answer says: how the call stands, and why.
fn stands(answer: &Canonical) -> (u64, Option<String>) {
    let (_, carries, body) = parts(answer);
    assert_eq!(carries, DONE, "{answer:?}");
    let mut decoder = Decoder::new(body, Profile::CONTROL);
    decoder.shape(2).unwrap();
    decoder.key(1).unwrap();
    let stands = decoder.uint().unwrap();
    decoder.key(2).unwrap();
    (stands, decoder.item().unwrap().as_text().map(str::to_owned))
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// A client that has taken a session that was lent.
fn client(home: &std::path::Path, holder: &Runtime, token: TokenId) -> (UnixStream, u64) {
    let lent = holder.session("a", token).unwrap();
    let number = lent.number().get();
    (settled_by(home, &HELLO_AGENTS, lent), number)
}

/// Whoever waits is told what became of that call, at once where it has come already; it costs no
/// thread and no record.
#[test]
fn waits_hold_no_thread() {
    alone("attach::waits::waits_hold_no_thread", || {
        let (_dir, home, clock, holder) = served();
        let token = holder
            .issue(Grant::to("a").tools(["fs.write"]).workspace().budget(budget(100)))
            .unwrap();
        let asker = holder.session("a", token).unwrap();
        let asks: Vec<Seq> = (0..5)
            .map(|n| {
                let args = args! { "path": format!("{n}.txt"), "text": "x" };
                call(&asker, "fs.write", args).unwrap().ask().unwrap()
            })
            .collect();
        let mut clients: Vec<(UnixStream, u64)> =
            (0..100).map(|_| client(&home, &holder, token)).collect();
        // What the last ones used goes on its own.
        std::thread::sleep(Duration::from_millis(200));
        let (before, on_record) = (threads(), records(&home).len());
        for (stream, session) in &mut clients {
            for (id, ask) in (10..).zip(&asks) {
                send(stream, &wait(id, *session, *ask, LONGEST));
            }
        }
        // Answered one after another: all before have been taken by then.
        for (stream, session) in &mut clients {
            send(stream, &wait(99, *session, Seq::new(1), LONGEST));
            assert_eq!(stands(&receive(stream).unwrap()).0, Waited::Over.code());
        }
        let more = threads().saturating_sub(before);
        assert!(more <= 8, "{more} threads more for 500 waits");
        assert_eq!(records(&home).len(), on_record);
        holder.answer(asks[0], ApprovalAnswer::Once, None).unwrap();
        holder.answer(asks[1], ApprovalAnswer::Deny, Some("not now")).unwrap();
        let mut told = |count: usize| -> Vec<BTreeMap<u64, (u64, Option<String>)>> {
            let told = clients.iter_mut().map(|(stream, _)| {
                let answers = (0..count).map(|_| receive(stream).unwrap());
                answers.map(|answer| (parts(&answer).0, stands(&answer))).collect()
            });
            told.collect()
        };
        for told in told(2) {
            assert_eq!(told[&10], (Waited::Approved.code(), None));
            assert_eq!(told[&11], (Waited::Denied.code(), Some("not now".to_owned())));
        }
        let answered = records(&home).len();
        clock.forward(ASK_LIFE_MS);
        for told in told(3) {
            assert!(told.values().all(|it| *it == (Waited::Expired.code(), None)), "{told:?}");
        }
        // That a request expired is on record once, by whoever does something next.
        assert!(records(&home).len() <= answered + 1);
        drop(clients);
        end(&holder, &home);
    });
}

#[test]
fn wait_ends_with_its_session_and_with_the_server() {
    let (_dir, home, _, holder) = served();
    let token = holder.issue(Grant::to("a").tools(["fs.write"]).workspace()).unwrap();
    let asker = holder.session("a", token).unwrap();
    let args = args! { "path": "a.txt", "text": "x" };
    let pending = call(&asker, "fs.write", args).unwrap().ask().unwrap();
    let (mut stream, session) = client(&home, &holder, token);
    // Too long, of nobody's session, of another agent's, of what there is not; no time at all.
    let too_long = ask(&mut stream, &wait(1, session, pending, LONGEST + 1));
    assert_eq!(refused(&too_long), Some(Reason::TooLarge.code()));
    let nobodys = ask(&mut stream, &wait(1, asker.number().get(), pending, 0));
    assert_eq!(refused(&nobodys), Some(Reason::NoSession.code()));
    let other = holder.issue(Grant::to("b").tools(["fs.write"]).workspace()).unwrap();
    let lent = holder.session("b", other).unwrap();
    let others = lent.number().get();
    let mut stranger = settled_by(&home, &HELLO_AGENTS, lent);
    for none in [pending, Seq::new(0), Seq::new(1 << 40)] {
        let answer = ask(&mut stranger, &wait(1, others, none, LONGEST));
        assert_eq!(stands(&answer), (Waited::Over.code(), None));
    }
    let answer = ask(&mut stream, &wait(1, session, pending, 0));
    assert_eq!(stands(&answer), (Waited::Waiting.code(), None));
    // Two for one request; the session ends.
    send(&mut stream, &wait(2, session, pending, LONGEST));
    send(&mut stream, &wait(3, session, pending, LONGEST));
    send(&mut stream, &asking(4, AGENT_ASK, CLOSE, |encoder| encoder.uint(session)));
    let mut answers: Vec<Canonical> = (0..3).map(|_| receive(&mut stream).unwrap()).collect();
    answers.sort_by_key(|answer| parts(answer).0);
    for answer in &answers[..2] {
        assert_eq!(refused(answer), Some(Reason::NoSession.code()));
    }
    assert_eq!(parts(&answers[2]).1, DONE);
    // One that is cut off in a wait, and one that waits when the server ends.
    let (mut gone, number) = client(&home, &holder, token);
    gone.write_all(&frame(&wait(1, number, pending, LONGEST))).unwrap();
    drop(gone);
    let (mut last, number) = client(&home, &holder, token);
    send(&mut last, &wait(7, number, pending, LONGEST));
    let since = std::time::Instant::now();
    let closing = std::thread::spawn({
        let home = home.clone();
        move || end(&holder, &home)
    });
    let answer = loop {
        let answer = receive(&mut last).unwrap();
        if parts(&answer).1 != ORDER {
            break answer;
        }
    };
    assert_eq!((parts(&answer).0, refused(&answer)), (7, Some(Reason::Closing.code())));
    drop(last);
    closing.join().unwrap();
    assert!(since.elapsed() < Duration::from_secs(10));
}

#[test]
fn session_on_the_agents_lane_waits_and_sees_what_it_has() {
    let (_dir, home) = new_home();
    let find = HostTool::new("notes.find", EffectClass::Read).unwrap();
    let find = find.labelled(Label::UNTRUSTED).run(|_| Ok("found"));
    let policy = Policy::from_json(POLICY.as_bytes()).unwrap();
    let options = || Options::new().tool(find.clone()).unwrap();
    options().policy(policy).create(&home).unwrap().close().unwrap();
    let holder = options().open(&home).unwrap();
    let grant = Grant::to("a").tools(["fs.write", "notes.find", "echo"]).workspace();
    let token = holder.issue(grant.budget(budget(9).with(Dimension::Concurrent, 3))).unwrap();
    let ticket = holder.session("a", token).unwrap().lend().unwrap();
    let agent = Runtime::agent(&home).unwrap().take(&ticket).unwrap();
    let args = || args! { "path": "a.txt", "text": "x" };
    let pending = call(&agent, "fs.write", args()).unwrap().ask().unwrap();
    assert_eq!(agent.wait(pending, Duration::ZERO).unwrap(), Waited::Waiting);
    let heard = std::thread::scope(|scope| {
        let waits = scope.spawn(|| agent.standing(pending, Duration::from_secs(60)).unwrap());
        holder.answer(pending, ApprovalAnswer::Deny, Some("not now")).unwrap();
        waits.join().unwrap()
    });
    assert_eq!(heard, Stands { waited: Waited::Denied, why: Some("not now".to_owned()) });
    let on_record = records(&home).len();
    // On either lane the same, and without a record.
    let own = holder.session("a", token).unwrap();
    let before = records(&home).len();
    assert_eq!(before, on_record + 1);
    let granted = agent.tools().unwrap();
    assert_eq!(granted, own.tools().unwrap());
    let names: Vec<&str> = granted.tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!((names, granted.in_all), (vec!["echo", "fs_write", "notes_find"], 3));
    let write = &granted.tools[1];
    assert_eq!((write.tool.as_str(), write.effect), ("fs.write", EffectClass::LocalWrite));
    assert_eq!((write.standing, write.provided), (Standing::Ready, true));
    let schema = write.schema.item();
    let path = schema.get("properties").unwrap().get("path").unwrap();
    assert_eq!(path.get("type").and_then(Item::as_text), Some("string"));
    let required = schema.get("required").unwrap().elements().filter_map(Item::as_text);
    assert_eq!(required.collect::<Vec<_>>(), ["path"]);
    assert_eq!(schema.get("additionalProperties").and_then(Item::as_bool), Some(false));
    assert_eq!(granted.tools[2].label, Label::UNTRUSTED);
    let left = agent.left().unwrap();
    let of = |dimension| (left.limits.get(dimension), left.left.get(dimension));
    assert_eq!((of(Dimension::Calls), of(Dimension::Concurrent)), ((9, 8), (3, 3)));
    assert_eq!(left, syscap::Left { now: left.now, ..own.left().unwrap() });
    assert_eq!(records(&home).len(), before);
    echo(&agent).unwrap();
    assert_eq!(agent.left().unwrap().left.get(Dimension::Calls), 7);
    holder.revoke(token).unwrap();
    let revoked = agent.left().unwrap();
    assert_eq!(revoked.standing, syscap::view::TokenStanding::Revoked);
    drop(agent);
    end(&holder, &home);
}

/// Names for a model differ, also where those of the tools do by a character alone that no provider of
/// models takes; the schema of a foreign definition is its own.
#[test]
fn granted_tools_have_names_of_their_own() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let long = ["t.", "t_"].map(|begin| begin.to_owned() + &"x".repeat(ToolId::BYTES_MAX - 2));
    let ids = ["t.a_b", "t.a.b", "t_a.b", &long[0], &long[1]];
    let odd = Param::required("n", ParamType::Int, "A number.").within(2, 7);
    let made = ids.map(|id| manifest(id).param(odd.clone()));
    holder.provide(made.to_vec(), Gate::opened().provider()).unwrap();
    let own = caller(&holder, &ids);
    let granted = own.tools().unwrap();
    let names: Vec<&str> = granted.tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>().len(), 5, "{names:?}");
    let fits = |name: &&&str| {
        name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
    };
    assert_eq!(names.iter().filter(fits).count(), 5, "{names:?}");
    let schema = &granted.tools[0].schema;
    let number = schema.item().get("properties").unwrap().get("n").unwrap();
    let bound = |name| number.get(name).and_then(Item::as_uint);
    assert_eq!((bound("minimum"), bound("maximum")), (Some(2), Some(7)));
    end(&holder, &home);
}
