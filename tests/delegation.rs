//! Tokens that are handed on: a part of what there is, to the same agent or one below, charged to
//! all above.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use host_support::{end, new_home, records};
use kernel_support::sim::keys::{holder, public_of};
use kernel_support::sim::tokens::budget;
use kernel_support::sim::{self, Sim};
use syscap::audit::MemoryStore;
use syscap::format::{
    Amounts, Body, Canonical, ConfigChange, Freeze, HomeId, PublicKey, RecordKind, RefusalKind,
    Rights, Role, TokenBody,
};
use syscap::kernel::{Ack, Event};
use syscap::prelude::*;

struct World {
    _folder: tempfile::TempDir,
    home: std::path::PathBuf,
    rt: Runtime,
}

fn world() -> World {
    let (folder, home) = new_home();
    let rt = Runtime::create(&home).unwrap();
    World { _folder: folder, home, rt }
}

impl World {
    fn issue(&self, grant: Grant) -> TokenId {
        self.rt.issue(grant).unwrap()
    }

    fn used(&self, token: TokenId) -> Amounts {
        self.rt.view().unwrap().token(token).unwrap().used
    }

    fn calls(&self, token: TokenId) -> u64 {
        self.used(token).get(Dimension::Calls)
    }

    /// What is said of a part that is not handed on: on record, with nothing changed.
    fn refused(&self, parent: TokenId, grant: Grant) -> (Reason, Option<String>) {
        let before = self.rt.view().unwrap();
        let Err(Error::Refused(refused)) = self.rt.attenuate(parent, grant) else {
            panic!("handed on");
        };
        let after = self.rt.view().unwrap();
        assert_eq!((&after.tokens, after.tokens_in_all), (&before.tokens, before.tokens_in_all));
        match records(&self.home).pop().unwrap().body {
            Body::Refusal(refusal) => {
                let said = (refusal.refusal_kind, refusal.reason);
                assert_eq!(said, (RefusalKind::Control, refused.reason()));
            }
            body => panic!("{body:?}"),
        }
        let object = refused.error_object(syscap::format::ErrorKind::Refused);
        let field = object.item().get("field").and_then(|field| field.as_text().map(str::to_owned));
        (refused.reason(), field)
    }
}

fn team() -> Grant {
    let grant = Grant::to("team").tools(["fs.read", "fs.write", "fs.list"]).workspace();
    grant.read("shared").delegable(2)
}

#[test]
fn a_part_is_handed_on_and_charged_to_all_above() {
    let world = world();
    let root = world.issue(team());
    let part = Grant::to("team/writer").tools(["fs.write"]).write("workspace/drafts").delegable(1);
    let part = world.rt.attenuate(root, part).unwrap();
    let last = Grant::to("team/writer/b").tools(["fs.write"]).write("workspace/drafts/b");
    let last = world.rt.attenuate(part, last).unwrap();
    let agent = world.rt.session("team/writer/b", last).unwrap();
    let write = |path: &str| {
        let args = args! { "path": path, "text": "x", "parents": true };
        agent.call("fs.write", args).unwrap().reason()
    };
    // `workspace` is that of the agent whose token was handed on.
    assert_eq!(write("workspace/drafts/b/1.txt"), None);
    assert_eq!(write("drafts/b/2.txt"), None);
    assert_eq!(write("drafts/a.txt"), Some(Reason::OutOfScope));
    let folder = world.home.join("files/agents/team/workspace/drafts/b");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 2);
    let read = agent.call("fs.read", args! { "path": "drafts/b/1.txt" }).unwrap();
    assert_eq!(read.reason(), Some(Reason::NotGranted));
    assert_eq!([root, part, last].map(|token| world.calls(token)), [4, 4, 4]);
    // What one below uses is not there any more for one above.
    let beside = world.rt.session("team", root).unwrap();
    assert_eq!(beside.call("fs.list", args! {}).unwrap().reason(), None);
    assert_eq!([root, part, last].map(|token| world.calls(token)), [5, 4, 4]);
    end(&world.rt, &world.home);
    // The log alone says the same.
    let rt = Runtime::open(&world.home).unwrap();
    let again = rt.session("team/writer/b", last).unwrap();
    let args = args! { "path": "drafts/b/3.txt", "text": "x" };
    assert_eq!(again.call("fs.write", args).unwrap().reason(), None);
    rt.close().unwrap();
}

#[test]
fn wider_delegation_is_refused() {
    let world = world();
    let most = Budget::standard().with(Dimension::Calls, 10);
    let root = world.issue(team().budget(most).expires_in(Duration::from_secs(600)));
    let part = || Grant::to("team/a").tools(["fs.read"]).read("workspace");
    for (wider, field) in [
        (Grant::to("other").tools(["fs.read"]), "agent"),
        (Grant::to("teamster").tools(["fs.read"]), "agent"),
        (part().tools(["echo"]), "grants"),
        (part().write("shared"), "grants"),
        (part().path("workspace", Rights::READ.union(Rights::FOLLOW)), "grants"),
        (part().read("secrets"), "grants"),
        (part().budget(most.with(Dimension::Calls, 11)), "budget"),
        (part().expires_in(Duration::from_secs(3_600)), "expires"),
        (part().delegable(2), "depth_max"),
    ] {
        assert_eq!(world.refused(root, wider), (Reason::OutOfScope, Some(field.to_owned())));
    }
    // Nor anything of what can't be handed on, or not by this home.
    let kept = world.issue(Grant::to("team").tools(["fs.read"]).workspace());
    assert_eq!(world.refused(kept, part()).0, Reason::NoDelegation);
    let other = PublicKey::new(holder().verifying_key().to_bytes()).unwrap();
    let others = world.issue(team().held_by(other));
    assert_eq!(world.refused(others, part()), (Reason::WrongIssuer, Some("issuer".to_owned())));
    let ended = world.issue(team());
    world.rt.revoke(ended).unwrap();
    assert_eq!(world.refused(ended, part()), (Reason::Revoked, Some("parent".to_owned())));
    let none = TokenId::from_bytes([9; 32]);
    assert!(matches!(world.rt.attenuate(none, part()), Err(Error::NoSuch { .. })));
    // A flag stays with what is handed on.
    let reads = world.issue(team().read_only());
    let below = Grant::to("team/a").tools(["fs.write"]).write("workspace");
    let agent = world.rt.session("team/a", world.rt.attenuate(reads, below).unwrap()).unwrap();
    let wrote = agent.call("fs.write", args! { "path": "a", "text": "x" }).unwrap();
    assert_eq!(wrote.reason(), Some(Reason::ReadOnlyToken));
    end(&world.rt, &world.home);
}

#[test]
fn sixteen_levels_and_no_more() {
    let world = world();
    let refused = world.rt.issue(team().delegable(17));
    assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
    let mut agent = "t".to_owned();
    let mut tokens = vec![world.issue(Grant::to("t").tools(["echo"]).delegable(16))];
    for level in 1..=16 {
        agent.push_str("/x");
        let grant = Grant::to(&agent).tools(["echo"]).delegable(16 - level);
        tokens.push(world.rt.attenuate(*tokens.last().unwrap(), grant).unwrap());
    }
    let last = *tokens.last().unwrap();
    // A seventeenth is not of the form of a token.
    assert_eq!(world.refused(last, Grant::to(&agent).tools(["echo"])).0, Reason::BadToken);
    let deep = world.rt.session(&agent, last).unwrap();
    assert_eq!(deep.call("echo", args! { "value": 1_u64 }).unwrap().reason(), None);
    assert!(tokens.iter().all(|token| world.calls(*token) == 1));
    // Whichever ends, what was derived from it ends.
    world.rt.revoke(tokens[7]).unwrap();
    let refused = deep.call("echo", args! { "value": 1_u64 }).unwrap();
    assert_eq!(refused.reason(), Some(Reason::Revoked));
    let above = world.rt.session("t/x/x/x/x/x/x", tokens[6]).unwrap();
    assert_eq!(above.call("echo", args! { "value": 1_u64 }).unwrap().reason(), None);
    end(&world.rt, &world.home);
}

/// 64 threads on a tree of tokens: as many calls are let through as the root has.
#[test]
fn a_tree_shares_one_budget() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new().store(MemoryStore::new());
    let rt = options.create(folder.path().join("home")).unwrap();
    let most = Budget::standard().with(Dimension::Calls, 100).with(Dimension::Concurrent, 64);
    let root = Grant::to("t").tools(["fs.write"]).workspace().budget(most).delegable(2);
    let root = rt.issue(root).unwrap();
    let mut agents = Vec::new();
    for branch in 0..4 {
        let agent = format!("t/{branch}");
        let grant = Grant::to(&agent).tools(["fs.write"]).workspace().delegable(1);
        let middle = rt.attenuate(root, grant).unwrap();
        for leaf in 0..16 {
            let agent = format!("t/{branch}/{leaf}");
            let grant = Grant::to(&agent).tools(["fs.write"]).workspace();
            agents.push(rt.session(&agent, rt.attenuate(middle, grant).unwrap()).unwrap());
        }
    }
    let written = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for (n, agent) in agents.iter().enumerate() {
            let written = &written;
            scope.spawn(move || {
                for m in 0..4 {
                    let args = args! { "path": &format!("{n}-{m}.txt"), "text": "x" };
                    match agent.call("fs.write", args).unwrap().reason() {
                        None => drop(written.fetch_add(1, Ordering::SeqCst)),
                        Some(reason) => assert_eq!(reason, Reason::OverBudget),
                    }
                }
            });
        }
    });
    assert_eq!(written.load(Ordering::SeqCst), 100);
    let files = folder.path().join("home/files/agents/t/workspace");
    assert_eq!(fs::read_dir(files).unwrap().count(), 100);
    let view = rt.view().unwrap();
    let used = |token| view.token(token).unwrap().used.get(Dimension::Calls);
    assert_eq!(used(root), 100);
    rt.close().unwrap();
}

/// A part that is made after the clock went far ahead is as old as what it is a part of.
#[test]
fn a_part_waits_for_the_time_as_its_root_does() {
    let mut sim = sim::home();
    let mut body = sim.token_body("a0", budget(50, 50), 1_000);
    body.not_before = body.not_before.plus(5_000_000_000);
    body.expires = body.not_before.plus(7_000_000_000);
    (body.holder, body.depth_max) = (Some(public_of(&holder())), 2);
    let root = TokenBody::id_of(&body.to_bytes());
    let ticket = sim.ticket();
    sim.event(Event::Issue(ticket, Sim::wire(&body), None));
    sim.commit();
    sim.crash().unwrap();
    sim.wall += 8_000_000_000;
    sim.boot();
    let mut part = root;
    for _ in 0..2 {
        let body = sim.derived(part, budget(5, 5), 1_000_000).unwrap();
        part = TokenBody::id_of(&body.to_bytes());
        let ticket = sim.ticket();
        sim.event(Event::Issue(ticket, Sim::wire_by(&holder(), &body), None));
        sim.commit();
    }
    let session = sim.seat(part);
    let look = r#"{"tool_id": "look", "args": {"at": 1}}"#;
    sim::refused_with(&mut sim, session, look, Reason::ClockUnconfirmed);
    let now = sim.kernel.now();
    let control = sim.signed(&ConfigChange { confirm_time: Some(now) });
    let ticket = sim.ticket();
    sim.event(Event::Control(ticket, RecordKind::Config, control, None, None));
    sim::ok(&mut sim, session);
}

/// What is signed wrongly opens nothing: each is refused, on record, and no token is registered.
#[test]
fn forged_token_is_not_registered() {
    let mut sim = sim::home();
    let root = sim.issue("a0", 10, 10, 1_000_000);
    sim.commit();
    let good = sim.derived(root, budget(5, 5), 1_000).unwrap();
    let with = |change: &dyn Fn(&mut TokenBody)| {
        let mut body = good.clone();
        change(&mut body);
        Sim::wire_by(&holder(), &body)
    };
    let strange = ed25519_dalek::SigningKey::from_bytes(&[78; 32]);
    let mut by_stranger = good.clone();
    by_stranger.issuer = public_of(&strange);
    let mut cut = with(&|_| {});
    *cut.last_mut().unwrap() ^= 1;
    let root_wire = Sim::wire(&sim.kernel.token(&root).unwrap().body.clone());
    let cases = [
        // The parent's wire, replayed.
        (root_wire, Reason::AlreadyIssued),
        (cut, Reason::BadSignature),
        (Sim::wire_by(&strange, &good), Reason::BadSignature),
        (Sim::wire_by(&strange, &by_stranger), Reason::WrongIssuer),
        // The issuer of the root is not its holder.
        (
            Sim::wire(&TokenBody { issuer: public_of(&sim::key(Role::Issuer)), ..good.clone() }),
            Reason::WrongIssuer,
        ),
        (with(&|body| body.audience = HomeId::from_bytes([7; 32])), Reason::WrongAudience),
        (with(&|body| body.parent = Some(TokenId::from_bytes([1; 32]))), Reason::UnknownToken),
        (with(&|body| body.depth = 2), Reason::OutOfScope),
        (with(&|body| body.depth = 0), Reason::BadToken),
        (with(&|body| body.parent = None), Reason::BadToken),
        (with(&|body| body.head = sim.kernel.durable()), Reason::BadToken),
        (with(&|body| body.caveats = vec![Canonical::null()]), Reason::UnknownAuthority),
        (with(&|body| body.budget = Budget::standard()), Reason::OutOfScope),
    ];
    let tokens = sim.kernel.tokens().count();
    for (wire, reason) in cases {
        let ticket = sim.ticket();
        sim.event(Event::Issue(ticket, wire, None));
        sim.commit();
        let (_, ack) = sim.acks.pop().unwrap();
        assert_eq!(ack.unwrap_err().reason(), reason);
        assert_eq!(sim.kernel.tokens().count(), tokens);
    }
    let ticket = sim.ticket();
    sim.event(Event::Issue(ticket, with(&|_| {}), None));
    sim.commit();
    assert!(matches!(sim.acks.pop().unwrap().1, Ok(Ack::Token(_))));
    let replayed = sim.reopened().unwrap();
    assert_eq!(replayed.state_image(), sim.kernel.state_image());
}

/// A freeze of an agent stops all below it, also with a token of its own; it stops nobody beside
/// or above.
#[test]
fn frozen_parent_stops_child_agent() {
    let world = world();
    let team = world.issue(Grant::to("team").tools(["echo"]).delegable(1));
    let part = world.rt.attenuate(team, Grant::to("team/x").tools(["echo"])).unwrap();
    let own = world.issue(Grant::to("team/x").tools(["echo"]));
    let beside = world.issue(Grant::to("team-x").tools(["echo"]));
    let session = |agent, token| world.rt.session(agent, token).unwrap();
    let (parent, other) = (session("team", team), session("team-x", beside));
    let children = [session("team/x", part), session("team/x", own)];
    let says = |session: &Session| session.call("echo", args! { "value": 1 }).unwrap().reason();
    let freeze = Freeze::agent(&AgentId::new("team").unwrap());
    world.rt.freeze(&freeze).unwrap();
    for child in &children {
        assert_eq!(says(child), Some(Reason::Frozen));
    }
    assert_eq!((says(&parent), says(&other)), (Some(Reason::Frozen), None));
    world.rt.freeze(&freeze.thaw()).unwrap();
    world.rt.freeze(&Freeze::agent(&AgentId::new("team/x").unwrap())).unwrap();
    for child in &children {
        assert_eq!(says(child), Some(Reason::Frozen));
    }
    assert_eq!((says(&parent), says(&other)), (None, None));
    drop((parent, other, children));
    end(&world.rt, &world.home);
}
