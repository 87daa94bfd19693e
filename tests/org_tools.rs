//! `org.list_agents` and `org.create_agent`: who is seen, and that nobody makes an agent that can
//! more than itself. Messages are in `org_messages.rs`.

use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::{fs, thread};

use crate::stranger::{World, options, world};
use host_support::{end, last_label, new_home};
use syscap::format::{Item, Label, PublicKey, Role, Scope, Signature, TokenBody, TxOutcome};
use syscap::keys::{FileKeys, Signer, SignerError};
use syscap::prelude::*;

const TOOLS: [&str; 7] = [
    "fs.read",
    "fs.write",
    "memory.read",
    "org.list_agents",
    "org.create_agent",
    "org.send_message",
    "stranger.say",
];

/// What a maker of agents is granted in these tests.
fn team() -> Grant {
    Grant::to("team")
        .tools(TOOLS)
        .workspace()
        .read("shared/docs")
        .scope("outbox", Scope::names(["team/a", "boss"]).unwrap())
        .limit(Dimension::Calls, 5_000)
        .delegable(2)
}

impl World {
    fn tokens(&self) -> usize {
        self.rt.look(|kernel| kernel.tokens().count()).unwrap()
    }

    fn body(&self, token: TokenId) -> TokenBody {
        self.rt.look(|kernel| kernel.token(&token).unwrap().body.clone()).unwrap()
    }
}

fn create(maker: &Session, args: &str) -> ToolResult {
    maker.request("create_agent").json(args, Escapes::Data).wait().unwrap()
}

/// Agent and token of one that was made.
fn made(result: &ToolResult) -> (String, TokenId) {
    let value = result.value().unwrap_or_else(|_| panic!("{:?}", result.reason()));
    let text = |key| value.get(key).and_then(Item::as_text).unwrap().to_owned();
    (text("agent"), TokenId::from_hex(&text("token")).unwrap())
}

/// An agent, and how many tokens and tools it has, where that is told.
type Told = (String, Option<(u64, usize)>);

/// What is listed: names, and for each how many tokens and tools, where that is told.
fn listed(session: &Session, args: &str) -> (Vec<Told>, bool) {
    let result = session.request("list_agents").json(args, Escapes::Data).wait().unwrap();
    let value = result.value().unwrap_or_else(|_| panic!("{:?}", result.reason()));
    let one = |one: Item<'_>| {
        let name = one.get("agent").and_then(Item::as_text).unwrap().to_owned();
        let tokens = one.get("tokens").and_then(Item::as_uint);
        (name, tokens.map(|tokens| (tokens, one.get("tools").unwrap().count())))
    };
    let more = value.get("more").and_then(Item::as_bool).unwrap();
    (value.get("agents").unwrap().elements().map(one).collect(), more)
}

#[test]
fn a_made_agent_can_a_part_of_what_its_maker_can() {
    let world = world();
    let workspace = world.home.join("files/agents/team/workspace/notes");
    let parent = world.rt.issue(team()).unwrap();
    let maker = world.rt.session("team", parent).unwrap();
    fs::create_dir_all(&workspace).unwrap();
    fs::write(workspace.join("a.txt"), "hives").unwrap();
    let result = create(
        &maker,
        r#"{"name": "reader", "tools": ["fs_read"], "read": ["workspace/notes"],
            "budget": {"calls": 10}, "expires_in_s": 600}"#,
    );
    assert_eq!(result.tx_outcome(), TxOutcome::Committed);
    let (agent, token) = made(&result);
    assert_eq!(agent, "team/reader");
    // It is a token as any other, derived from that of the call.
    let child = world.body(token);
    let above = world.body(parent);
    assert_eq!((child.parent, child.depth, child.depth_max), (Some(parent), 1, 1));
    assert_eq!((Some(child.issuer), child.holder), (above.holder, None));
    assert_eq!(child.budget.amounts().get(Dimension::Calls), 10);
    assert_eq!(child.expires.since(child.not_before), 600_000);
    assert!(child.grants.leq(&above.grants) && child.grants.iter().count() == 1);
    let reader = world.rt.session("team/reader", token).unwrap();
    let read = reader.call("fs.read", args! { "path": "workspace/notes/a.txt" }).unwrap();
    assert_eq!(read.value().unwrap().get("text").and_then(Item::as_text), Some("hives"));
    for (tool, args, reason) in [
        ("fs.read", args! { "path": "workspace/b.txt" }, Reason::OutOfScope),
        ("fs.read", args! { "path": "shared/docs/a" }, Reason::OutOfScope),
        ("fs.write", args! { "path": "workspace/notes/a.txt", "text": "" }, Reason::NotGranted),
        ("memory.read", args! { "key": "plan" }, Reason::NotGranted),
        ("org.create_agent", args! { "name": "x" }, Reason::NotGranted),
    ] {
        assert_eq!(reader.call(tool, args).unwrap().reason(), Some(reason), "{tool}");
    }
    drop((maker, reader));
    end(&world.rt, &world.home);
}

/// Absence means nothing: what is not said is not handed on.
#[test]
fn unnamed_grants_are_not_delegated() {
    let world = world();
    let parent = world.rt.issue(team()).unwrap();
    let maker = world.rt.session("team", parent).unwrap();
    let tools = r#"{"name": "a", "tools": ["fs.read", "org.send_message"]"#;
    let (_, bare) = made(&create(&maker, &format!("{tools}}}")));
    assert_eq!(
        world.body(bare).grants.iter().map(|(_, grant)| grant.iter().count()).sum::<usize>(),
        0
    );
    let all = r#"{"name": "b", "tools": ["fs.read", "org.send_message"],
        "scopes": {"path": true, "outbox": ["boss"]}}"#;
    let (_, all) = made(&create(&maker, all));
    let grants = world.body(all).grants;
    let outbox = grants.get(&ToolId::new("org.send_message").unwrap()).unwrap().scope("outbox");
    assert_eq!(outbox, Some(&Scope::names(["boss"]).unwrap()));
    let above = world.body(parent).grants;
    let read = ToolId::new("fs.read").unwrap();
    assert_eq!(grants.get(&read).unwrap().scope("path"), above.get(&read).unwrap().scope("path"));
}

#[test]
fn wider_agent_is_refused() {
    let world = world();
    world.rt.issue(Grant::to("boss").tools(["fs.read"])).unwrap();
    let maker = world.open("team", team());
    let before = world.tokens();
    for (args, reason, field) in [
        // Names: above, beside, the maker itself, what only looks like one below.
        (r#""name": "../boss", "tools": ["fs.read"]"#, Reason::BadArgument, "name"),
        (r#""name": "..", "tools": ["fs.read"]"#, Reason::BadArgument, "name"),
        (r#""name": ".", "tools": ["fs.read"]"#, Reason::BadArgument, "name"),
        (r#""name": "a/../../boss", "tools": ["fs.read"]"#, Reason::BadArgument, "name"),
        (r#""name": "a/b", "tools": ["fs.read"]"#, Reason::BadArgument, "name"),
        (r#""name": "/boss", "tools": ["fs.read"]"#, Reason::BadArgument, "name"),
        (r#""name": "a/", "tools": ["fs.read"]"#, Reason::BadArgument, "name"),
        (r#""name": "", "tools": ["fs.read"]"#, Reason::BadArgument, "name"),
        (r#""name": "A", "tools": ["fs.read"]"#, Reason::BadArgument, "name"),
        (r#""name": "a+b", "tools": ["fs.read"]"#, Reason::BadArgument, "name"),
        (r#""name": "a b", "tools": ["fs.read"]"#, Reason::BadArgument, "name"),
        (r#""name": "\u0430", "tools": ["fs.read"]"#, Reason::BadArgument, "name"),
        (r#""name": "a\u0000", "tools": ["fs.read"]"#, Reason::BadArgument, "name"),
        (r#""name": "a\u202e", "tools": ["fs.read"]"#, Reason::BadArgument, "name"),
        (r#""name": "..\\boss", "tools": ["fs.read"]"#, Reason::BadArgument, "name"),
        (r#""name": "a", "agent": "boss", "tools": ["fs.read"]"#, Reason::UnknownArgument, "agent"),
        // Tools that the maker has not, or that there are not.
        (r#""name": "a", "tools": ["shell"]"#, Reason::OutOfScope, "tools"),
        (r#""name": "a", "tools": ["fs.read", "memory.write"]"#, Reason::OutOfScope, "tools"),
        (r#""name": "a", "tools": ["*"]"#, Reason::BadArgument, "tools"),
        (r#""name": "a", "tools": ["no.such"]"#, Reason::OutOfScope, "tools"),
        (r#""name": "a", "tools": ["fs.read", "fs_read"]"#, Reason::BadArgument, "tools"),
        (r#""name": "a", "tools": [7]"#, Reason::BadArgument, "tools"),
        (r#""name": "a", "tools": []"#, Reason::BadArgument, "tools"),
        (r#""name": "a""#, Reason::MissingArgument, "tools"),
        // Paths.
        (r#""name": "a", "tools": ["fs.read"], "read": ["shared"]"#, Reason::OutOfScope, "read"),
        (r#""name": "a", "tools": ["fs.read"], "read": ["home"]"#, Reason::OutOfScope, "read"),
        (
            r#""name": "a", "tools": ["fs.read"], "write": ["shared/docs"]"#,
            Reason::OutOfScope,
            "write",
        ),
        (
            r#""name": "a", "tools": ["fs.read"], "read": ["workspace/../../boss/workspace"]"#,
            Reason::BadArgument,
            "read",
        ),
        (r#""name": "a", "tools": ["fs.read"], "read": [".."]"#, Reason::BadArgument, "read"),
        (r#""name": "a", "tools": ["fs.read"], "read": ["/etc"]"#, Reason::BadArgument, "read"),
        (r#""name": "a", "tools": ["fs.read"], "read": [""]"#, Reason::BadArgument, "read"),
        (r#""name": "a", "tools": ["fs.read"], "read": [1]"#, Reason::BadArgument, "read"),
        (
            r#""name": "a", "tools": ["fs.read"], "read": ["workspace"], "scopes": {"path": true}"#,
            Reason::BadArgument,
            "scopes",
        ),
        // Other scopes.
        (
            r#""name": "a", "tools": ["org.send_message"], "scopes": {"outbox": ["eve"]}"#,
            Reason::OutOfScope,
            "scopes",
        ),
        (
            r#""name": "a", "tools": ["org.send_message"], "scopes": {"outbox": ["BOSS"]}"#,
            Reason::OutOfScope,
            "scopes",
        ),
        (
            r#""name": "a", "tools": ["org.send_message"], "scopes": {"outbox": ["boss", "eve"]}"#,
            Reason::OutOfScope,
            "scopes",
        ),
        (
            r#""name": "a", "tools": ["org.send_message"], "scopes": {"outbox": []}"#,
            Reason::BadArgument,
            "scopes",
        ),
        (
            r#""name": "a", "tools": ["org.send_message"], "scopes": {"outbox": false}"#,
            Reason::BadArgument,
            "scopes",
        ),
        (
            r#""name": "a", "tools": ["org.send_message"], "scopes": {"agent": true}"#,
            Reason::OutOfScope,
            "scopes",
        ),
        // Budget, time, depth.
        (
            r#""name": "a", "tools": ["fs.read"], "budget": {"calls": 5001}"#,
            Reason::OutOfScope,
            "budget",
        ),
        (
            r#""name": "a", "tools": ["fs.read"], "budget": {"disk_files": 18446744073709551615}"#,
            Reason::OutOfScope,
            "budget",
        ),
        (
            r#""name": "a", "tools": ["fs.read"], "budget": {"calls": -1}"#,
            Reason::BadArgument,
            "budget",
        ),
        (
            r#""name": "a", "tools": ["fs.read"], "budget": {"money": 1}"#,
            Reason::BadArgument,
            "budget",
        ),
        (
            r#""name": "a", "tools": ["fs.read"], "expires_in_s": 7776000"#,
            Reason::OutOfScope,
            "expires_in_s",
        ),
        (
            r#""name": "a", "tools": ["fs.read"], "expires_in_s": 0"#,
            Reason::BadArgument,
            "expires_in_s",
        ),
        (
            r#""name": "a", "tools": ["fs.read"], "expires_in_s": -1"#,
            Reason::BadArgument,
            "expires_in_s",
        ),
        (r#""name": "a", "tools": ["fs.read"], "levels": 2"#, Reason::OutOfScope, "levels"),
        (r#""name": "a", "tools": ["fs.read"], "levels": 17"#, Reason::BadArgument, "levels"),
    ] {
        let result = create(&maker, &format!("{{{args}}}"));
        assert_eq!(result.reason(), Some(reason), "{args}");
        let error = result.value().unwrap_err();
        assert_eq!(error.object().get("field").and_then(Item::as_text), Some(field), "{args}");
        assert_eq!(result.tx_outcome(), TxOutcome::NoOp, "{args}");
    }
    assert_eq!(world.tokens(), before);
    assert_eq!(listed(&maker, "{}").0.len(), 1);
}

#[test]
fn creator_without_delegation_creates_no_agent() {
    let world = world();
    let args = r#"{"name": "a", "tools": ["org.create_agent"]}"#;
    let maker = world.open("team", Grant::to("team").tools(["org.create_agent"]));
    assert_eq!(create(&maker, args).reason(), Some(Reason::NoDelegation));
    // One that another holds can't be handed on by this home.
    let other = PublicKey::new({
        let mut point = [0x66; 32];
        point[0] = 0x58;
        point
    });
    let held = Grant::to("team").tools(["org.create_agent"]).delegable(1).held_by(other.unwrap());
    let result = create(&world.open("team", held), args);
    assert_eq!(result.reason(), Some(Reason::NotHandedOn));
    assert_eq!((result.tx_outcome(), world.tokens()), (TxOutcome::NoOp, 2));
    // Two levels: the agent's agent can't make another.
    let maker = world.open("team", team());
    let deeper =
        |name| format!(r#"{{"name": "{name}", "tools": ["create_agent"], "levels": LEFT}}"#);
    let (agent, token) = made(&create(&maker, &deeper("b").replace("LEFT", "1")));
    let below = world.rt.session(&agent, token).unwrap();
    assert_eq!(
        create(&below, &deeper("c").replace("LEFT", "1")).reason(),
        Some(Reason::OutOfScope)
    );
    let (agent, token) = made(&create(&below, &deeper("c").replace("LEFT", "0")));
    assert_eq!(agent, "team/b/c");
    let last = world.rt.session(&agent, token).unwrap();
    assert_eq!(
        create(&last, &deeper("d").replace("LEFT", "0")).reason(),
        Some(Reason::NoDelegation)
    );
    // Only what reads may be called with a token that is read only.
    let reads = world.open("team", team().read_only());
    assert_eq!(create(&reads, args).reason(), Some(Reason::ReadOnlyToken));
}

/// What it uses is charged to its maker, and it ends with its maker.
#[test]
fn even_permitted_calls_run_only_while_there_are_credits() {
    let world = world();
    let maker = world.open("team", team().limit(Dimension::Calls, 6));
    let read =
        |session: &Session| session.call("memory.read", args! { "key": "k" }).unwrap().reason();
    let args = |name| format!(r#"{{"name": "{name}", "tools": ["memory.read"]}}"#);
    let [a, b] = ["a", "b"].map(|name| {
        let (agent, token) = made(&create(&maker, &args(name)));
        world.rt.session(&agent, token).unwrap()
    });
    for session in [&a, &b, &a, &b] {
        assert_eq!(read(session), Some(Reason::NotFound));
    }
    for session in [&a, &b, &maker] {
        assert_eq!(read(session), Some(Reason::OverBudget));
    }
    assert_eq!(create(&maker, &args("c")).reason(), Some(Reason::OverBudget));
}

#[test]
fn created_agent_ends_with_its_creator() {
    let world = world();
    let token = world.rt.issue(team()).unwrap();
    let maker = world.rt.session("team", token).unwrap();
    let (agent, part) = made(&create(&maker, r#"{"name": "a", "tools": ["memory.read"]}"#));
    let below = world.rt.session(&agent, part).unwrap();
    let call = || below.call("memory.read", args! { "key": "k" }).unwrap().reason();
    assert_eq!(call(), Some(Reason::NotFound));
    world.rt.revoke(token).unwrap();
    assert_eq!(call(), Some(Reason::Revoked));
    let refused = create(&maker, r#"{"name": "b", "tools": ["memory.read"]}"#);
    assert_eq!(refused.reason(), Some(Reason::Revoked));
}

/// Signs as the files do, and does something else first when it signs as a holder.
struct Between {
    keys: FileKeys,
    act: Arc<OnceLock<Box<dyn Fn() + Send + Sync>>>,
}

impl Signer for Between {
    fn public_key(&self, role: Role) -> Result<PublicKey, SignerError> {
        self.keys.public_key(role)
    }

    fn sign(&self, role: Role, message: &[u8]) -> Result<Signature, SignerError> {
        self.keys.sign(role, message)
    }

    fn holder_key(&self) -> Result<PublicKey, SignerError> {
        self.keys.holder_key()
    }

    fn sign_as_holder(&self, message: &[u8]) -> Result<Signature, SignerError> {
        self.act.get().into_iter().for_each(|act| act());
        self.keys.sign_as_holder(message)
    }
}

/// Its intent is on record, it runs, and then its token is revoked.
#[test]
fn a_maker_that_is_revoked_in_the_middle_makes_nobody() {
    let (_dir, home) = new_home();
    options().create(&home).unwrap().close().unwrap();
    let act = Arc::<OnceLock<Box<dyn Fn() + Send + Sync>>>::default();
    let keys = FileKeys::open(&syscap::Home::at(&home).keys()).unwrap();
    let rt = options().signer(Between { keys, act: Arc::clone(&act) }).open(&home).unwrap();
    let token = rt.issue(team()).unwrap();
    let maker = rt.session("team", token).unwrap();
    let before = rt.look(|kernel| kernel.tokens().count()).unwrap();
    let (once, revoker) = (Mutex::new(()), rt.clone());
    let revoke = move || {
        let _once = once.lock().unwrap();
        revoker.revoke(token).unwrap();
    };
    assert!(act.set(Box::new(revoke)).is_ok());
    let result = create(&maker, r#"{"name": "a", "tools": ["memory.read"]}"#);
    assert_eq!(result.reason(), Some(Reason::NotHandedOn));
    assert_eq!(result.tx_outcome(), TxOutcome::NoOp);
    assert_eq!(rt.look(|kernel| kernel.tokens().count()).unwrap(), before);
    drop(maker);
}

/// Whoever made an agent by a stranger's word made a stranger's agent.
#[test]
fn created_agent_begins_with_its_creators_label() {
    let world = world();
    let maker = world.open("team", team());
    let args = |name, levels| {
        let tools = r#"["org.create_agent", "memory.read", "list_agents"]"#;
        format!(r#"{{"name": "{name}", "tools": {tools}, "levels": {levels}}}"#)
    };
    let begins = |agent: &str, token| {
        let session = world.rt.session(agent, token).unwrap();
        listed(&session, "{}");
        (last_label(&world.home), session)
    };
    let (agent, clean) = made(&create(&maker, &args("clean", 0)));
    assert_eq!(begins(&agent, clean).0, Label::PUBLIC);
    maker.call("stranger.say", args! {}).unwrap();
    let (agent, tainted) = made(&create(&maker, &args("tainted", 1)));
    let (label, below) = begins(&agent, tainted);
    assert_eq!(label, Label::UNTRUSTED);
    // So do those that it makes, and whoever is handed a part of its token by other means.
    let (agent, token) = made(&create(&below, &args("more", 0)));
    assert_eq!(begins(&agent, token).0, Label::UNTRUSTED);
    let part = Grant::to("team/tainted").tools(["org.list_agents"]);
    let part = world.rt.attenuate(tainted, part).unwrap();
    assert_eq!(begins("team/tainted", part).0, Label::UNTRUSTED);
    // One that is begun now begins with what its maker has read since.
    assert_eq!(begins("team/clean", clean).0, Label::UNTRUSTED);
    // A name is words of whoever gave it: who lists it has read them.
    let lists = world.open("team", team());
    listed(&lists, "{}");
    assert_eq!(last_label(&world.home), Label::PUBLIC);
    listed(&lists, "{}");
    assert_eq!(last_label(&world.home), Label::UNTRUSTED);
    drop((maker, below, lists));
    // After a replay too, and to who verifies.
    let World { _dir, home, rt } = world;
    rt.close().unwrap();
    let rt = options().open(&home).unwrap();
    let session = rt.session("team/tainted", tainted).unwrap();
    listed(&session, "{}");
    let world = World { _dir, home, rt };
    assert_eq!(last_label(&world.home), Label::UNTRUSTED);
    drop(session);
    end(&world.rt, &world.home);
}

/// What an agent kept is not another's to read, because that one takes its name.
#[test]
fn an_agent_that_is_there_is_not_made_again() {
    let world = world();
    let args = |name| format!(r#"{{"name": "{name}", "tools": ["memory.read"]}}"#);
    let vault = world.rt.issue(Grant::to("team/vault").tools(["memory.read"])).unwrap();
    let maker = world.open("team", team());
    assert_eq!(create(&maker, &args("vault")).reason(), Some(Reason::Exists));
    world.rt.revoke(vault).unwrap();
    assert_eq!(create(&maker, &args("vault")).reason(), Some(Reason::Exists), "nor afterwards");
    // Its own agent can be made again, when it has ended.
    let (_, token) = made(&create(&maker, &args("a")));
    assert_eq!(create(&maker, &args("a")).reason(), Some(Reason::Exists));
    world.rt.revoke(token).unwrap();
    made(&create(&maker, &args("a")));
    // One further up has no part in that: what `team/b` made is not `team`'s to take.
    let (agent, token) = made(&create(
        &maker,
        r#"{"name": "b", "tools": ["create_agent", "memory.read"], "levels": 1}"#,
    ));
    let below = world.rt.session(&agent, token).unwrap();
    assert_eq!(made(&create(&below, &args("c"))).0, "team/b/c");
}

#[test]
fn equal_creations_at_once_make_one_agent() {
    let world = world();
    let makers: Vec<Session> = (0..8).map(|_| world.open("team", team())).collect();
    let start = Barrier::new(makers.len());
    let results: Vec<Option<Reason>> = thread::scope(|scope| {
        let run = |maker| {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                create(maker, r#"{"name": "a", "tools": ["memory.read"]}"#).reason()
            })
        };
        let threads: Vec<_> = makers.iter().map(run).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(results.iter().filter(|reason| reason.is_none()).count(), 1);
    assert_eq!(results.iter().filter(|reason| **reason == Some(Reason::Exists)).count(), 7);
}

#[test]
fn an_agent_sees_itself_and_those_below() {
    let world = world();
    for agent in ["boss", "boss/a", "team-b", "team.c", "team0", "tea", "team/x/y", "zoe"] {
        world.rt.issue(Grant::to(agent).tools(["fs.read"])).unwrap();
    }
    let ended = world.rt.issue(Grant::to("team/gone").tools(["fs.read"])).unwrap();
    world.rt.revoke(ended).unwrap();
    let maker = world.open("team", team());
    made(&create(&maker, r#"{"name": "a", "tools": ["memory.read", "fs.read"]}"#));
    let name = |name: &str, tokens, tools| (name.to_owned(), Some((tokens, tools)));
    let own = vec![
        name("team", 1, TOOLS.len()),
        name("team/a", 1, 2),
        name("team/gone", 0, 0),
        name("team/x/y", 1, 1),
    ];
    assert_eq!(listed(&maker, "{}"), (own.clone(), false));
    // By pages, each after the last of the one before.
    let (mut after, mut pages) = (String::new(), Vec::new());
    loop {
        let after_it =
            if after.is_empty() { String::new() } else { format!(r#""after": "{after}", "#) };
        let (page, more) = listed(&maker, &format!(r#"{{{after_it}"limit": 1}}"#));
        after.clone_from(&page[0].0);
        pages.extend(page);
        if !more {
            break;
        }
    }
    assert_eq!(pages, own);
    assert_eq!(listed(&maker, r#"{"after": "team/zzz"}"#), (Vec::new(), false));
    assert_eq!(listed(&maker, r#"{"after": "zzz"}"#), (Vec::new(), false));
    // Others, where the grant names them and they are there: their names and nothing else. What
    // it doesn't name is not told, not even by where a page begins or ends.
    let seen = Scope::names(["boss", "nobody", "team/a", "zoe"]).unwrap();
    let sees =
        world.open("team/x", Grant::to("team/x").tools(["org.list_agents"]).scope("agent", seen));
    let other = |name: &str| (name.to_owned(), None);
    let all = vec![
        other("boss"),
        other("team/a"),
        name("team/x", 1, 1),
        name("team/x/y", 1, 1),
        other("zoe"),
    ];
    assert_eq!(listed(&sees, "{}"), (all, false));
    assert_eq!(listed(&sees, r#"{"after": "tea", "limit": 1}"#), (vec![other("team/a")], true));
    assert_eq!(listed(&sees, r#"{"after": "team/y", "limit": 1}"#), (vec![other("zoe")], false));
    let bad = sees.call("list_agents", args! { "limit": 101 }).unwrap();
    assert_eq!(bad.reason(), Some(Reason::BadArgument));
    // Who was not granted the tool sees nobody.
    let none = world.open("boss/a", Grant::to("boss/a").tools(["echo"]));
    assert_eq!(none.call("list_agents", args! {}).unwrap().reason(), Some(Reason::NotGranted));
}
