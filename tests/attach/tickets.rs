//! Tools that an agent's programs offer by their ticket.

use std::path::Path;

use host_support::end;
use syscap::Prefix;
use syscap::format::{
    Body, Canonical, EffectClass, Enforcement, Label, Manifest, Param, ParamType, TxOutcome,
};
use syscap::host::{Begun, OwnUse, Reported, Settled, ToolUse};
use syscap::prelude::*;
use syscap::provide::Standing;

use crate::attach::world::*;

fn is_not_bound<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Refused(refused)) if refused.reason() == Reason::NotBound)
}

fn prefix(name: &str, class: EffectClass) -> Prefix {
    Prefix { prefix: tool(name), class }
}

fn token_for(holder: &Runtime, tools: &[&str]) -> TokenId {
    holder.issue(Grant::to("a").tools(tools).budget(budget(1_000))).unwrap()
}

fn of_class(name: &str, effect: EffectClass) -> Manifest {
    Manifest { effect, ..manifest(name) }
}

fn on_record(holder: &Runtime, name: &str) -> EffectClass {
    holder.tool(&tool(name)).unwrap().manifest.effect
}

/// Puts tools on record, as a program does that is started for the first time: a token can grant them
/// then.
fn meet(holder: &Runtime, home: &Path, prefixes: &[Prefix], tools: Vec<Manifest>) {
    let token = token_for(holder, &["echo"]);
    let ticket = holder.ticket(&AgentId::new("a").unwrap(), token, prefixes, false).unwrap();
    let (program, _session) = joined(home, &ticket);
    let offers = program.provide(tools, Gate::opened().provider()).unwrap();
    assert!(offers.iter().all(|offer| offer.standing == Standing::Ready), "{offers:?}");
}

/// A connection that has shown the ticket.
fn joined(home: &Path, ticket: &syscap::SessionTicket) -> (Runtime, Session) {
    let agent = Runtime::agent(home).unwrap();
    let session = agent.take(ticket).unwrap();
    (agent, session)
}

/// What is offered below a prefix is of the operator's class at the least, and its calls go to the
/// ticket's own connections; nobody else's calls do.
#[test]
fn ticket_offers_tools_to_its_own_sessions() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let agent = AgentId::new("a").unwrap();
    let prefixes = [prefix("py", EffectClass::ExternalWrite), prefix("ro", EffectClass::Read)];
    let gate = Gate::opened();
    let offered = [
        of_class("py.find", EffectClass::Read),
        of_class("py.send", EffectClass::Irreversible),
        of_class("ro.look", EffectClass::Pure),
        of_class("ro.keep", EffectClass::LocalWrite),
    ];
    meet(&holder, &home, &prefixes, offered.to_vec());
    let token = token_for(&holder, &["py.find", "py.send", "ro.look", "ro.keep", "echo"]);
    let ticket = holder.ticket(&agent, token, &prefixes, false).unwrap();
    let (first, session) = joined(&home, &ticket);
    let offers = first.provide(offered.to_vec(), gate.provider()).unwrap();
    assert!(offers.iter().all(|offer| offer.standing == Standing::Ready), "{offers:?}");
    let classes = ["py.find", "py.send", "ro.look", "ro.keep"].map(|name| on_record(&holder, name));
    let wanted = [
        EffectClass::ExternalWrite,
        EffectClass::Irreversible,
        EffectClass::Read,
        EffectClass::LocalWrite,
    ];
    assert_eq!(classes, wanted);
    assert_eq!(call(&session, "py.find", args! {}).unwrap().reason(), None);
    // Another program of the same ticket; one of the operator's; one of another ticket.
    let (_second, beside) = joined(&home, &ticket);
    assert_eq!(call(&beside, "py.find", args! {}).unwrap().reason(), None);
    assert_eq!(gate.came().len(), 2);
    let strangers = [
        holder.session("a", token).unwrap(),
        joined(&home, &holder.ticket(&agent, token, &prefixes, false).unwrap()).1,
    ];
    for stranger in &strangers {
        let answer = call(stranger, "py.find", args! {}).unwrap();
        assert_eq!(answer.reason(), Some(Reason::NoProvider));
    }
    assert_eq!(gate.came().len(), 2);
    // What an operator's process offers is everybody's, a ticket's sessions among them.
    let open = Gate::opened();
    holder.provide(vec![manifest("t.any")], open.provider()).unwrap();
    let any = token_for(&holder, &["t.any"]);
    let (_third, caller) = joined(&home, &holder.ticket(&agent, any, &[], false).unwrap());
    assert_eq!(call(&caller, "t.any", args! {}).unwrap().reason(), None);
    // Taken back, it is nobody's.
    first.withdraw(&[tool("py.find")]).unwrap();
    let answer = call(&session, "py.find", args! {}).unwrap();
    assert_eq!(answer.reason(), Some(Reason::NoProvider));
    drop((session, beside, strangers, caller, first));
    end(&holder, &home);
}

#[test]
fn ticket_offers_nothing_beside_its_prefixes() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let agent = AgentId::new("a").unwrap();
    let token = token_for(&holder, &["echo"]);
    // Names of the server's own tools, of agents' clients and of another server's.
    let foreign = Canonical::map(vec![("name", Canonical::text("find").item())]);
    let notes = manifest("notes.find").defined_as(&foreign);
    holder.provide(vec![notes], Gate::opened().provider()).unwrap();
    for taken in ["fs", "fs.read", "echo", "notes", "notes.find", "claude_code", "gemini_cli.x"] {
        let refused = holder.ticket(&agent, token, &[prefix(taken, EffectClass::Read)], false);
        assert!(is_not_bound(refused), "{taken}");
    }
    let external = EffectClass::ExternalWrite;
    let ticket = holder.ticket(&agent, token, &[prefix("py", external)], false).unwrap();
    let (program, _session) = joined(&home, &ticket);
    let before = records(&home).len();
    let offer = |offered| program.provide(vec![offered], Gate::opened().provider());
    for other in ["pyx.find", "other.find", "p", "notes.other"] {
        assert!(is_not_bound(offer(manifest(other))), "{other}");
    }
    assert!(is_not_bound(offer(manifest("py.find").alias(tool("other_find")))));
    assert_eq!(records(&home).len(), before, "nothing was put on record");
    // By whole components, the prefix itself among them.
    for own in ["py", "py.find", "py.a.b"] {
        assert_eq!(offer(manifest(own)).unwrap()[0].standing, Standing::Ready, "{own}");
    }
    // A ticket without prefixes, a session that was lent, and a second ticket on one connection.
    let bare = holder.ticket(&agent, token, &[], false).unwrap();
    let (other, _other_session) = joined(&home, &bare);
    let made = || vec![manifest("py.other")];
    assert!(is_not_bound(other.provide(made(), Gate::opened().provider())));
    let lent = holder.session("a", token).unwrap().lend().unwrap();
    let (third, _third_session) = joined(&home, &lent);
    assert!(is_not_bound(third.provide(made(), Gate::opened().provider())));
    assert!(is_not_bound(other.take(&ticket)));
    drop((program, other, third));
    end(&holder, &home);
}

/// Sessions are on record and paid by nobody: a ticket opens only so many in a minute, whatever ends
/// meanwhile.
#[test]
fn ticket_opens_so_many_sessions_in_a_minute() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let token = token_for(&holder, &["echo"]);
    let ticket = holder.ticket(&AgentId::new("a").unwrap(), token, &[], false).unwrap();
    let program = Runtime::agent(&home).unwrap();
    for _ in 0..256 {
        program.take(&ticket).unwrap().close().unwrap();
    }
    let before = records(&home).len();
    match program.take(&ticket) {
        Err(Error::Refused(refused)) => assert_eq!(refused.reason(), Reason::Overloaded),
        other => panic!("{:?}", other.map(|session| session.number())),
    }
    assert_eq!(records(&home).len(), before);
    // Another ticket has its own.
    let other = holder.ticket(&AgentId::new("a").unwrap(), token, &[], false).unwrap();
    assert!(joined(&home, &other).1.call("echo", args! { "value": 1 }).is_ok());
    drop(program);
    end(&holder, &home);
}

/// New names are bounded, and a definition that changed waits for the operator.
#[test]
fn new_names_of_a_ticket_are_bounded_and_changed_ones_wait() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let agent = AgentId::new("a").unwrap();
    let named = |from: usize, to: usize| -> Vec<Manifest> {
        (from..to).map(|n| manifest(&format!("py.t{n}"))).collect()
    };
    let prefixes = [prefix("py", EffectClass::ExternalWrite)];
    meet(&holder, &home, &prefixes, named(0, 1));
    let token = token_for(&holder, &["py.t0"]);
    let ticket = holder.ticket(&agent, token, &prefixes, false).unwrap();
    let (program, session) = joined(&home, &ticket);
    let offers = program.provide(named(0, 65), Gate::opened().provider()).unwrap();
    assert!(offers.iter().all(|offer| offer.standing == Standing::Ready));
    // By another of its connections, too.
    let (more, _session) = joined(&home, &ticket);
    let offers = more.provide(named(65, 66), Gate::opened().provider()).unwrap();
    assert_eq!(offers[0].standing, Standing::New);
    assert_eq!(call(&session, "py.t0", args! {}).unwrap().reason(), None);
    let mut changed = named(0, 1);
    changed[0].description = "Does something else.".into();
    let offers = program.provide(changed, Gate::opened().provider()).unwrap();
    assert_eq!(offers[0].standing, Standing::Changed);
    assert_eq!(call(&session, "py.t0", args! {}).unwrap().reason(), Some(Reason::ToolChanged));
    holder.accept(&[tool("py.t0"), tool("py.t65")]).unwrap();
    assert_eq!(call(&session, "py.t0", args! {}).unwrap().reason(), None);
    drop((session, program, more));
    end(&holder, &home);
}

/// A program runs what it offers itself, after leave, where its ticket says so. Only the session that
/// began a use settles it, and what was done is the program's own word.
#[test]
fn program_runs_its_own_tools_where_its_ticket_says_so() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let agent = AgentId::new("a").unwrap();
    let prefixes = [prefix("py", EffectClass::Read)];
    let offered = || {
        let mut slow = of_class("py.slow", EffectClass::LocalWrite);
        slow.wall_ms_max = Some(100);
        vec![of_class("py.find", EffectClass::Read).labelled(Label::UNTRUSTED), slow]
    };
    meet(&holder, &home, &prefixes, offered());
    let token = token_for(&holder, &["py.find", "py.slow", "echo"]);
    let (gate, ticket) = (Gate::opened(), holder.ticket(&agent, token, &prefixes, true).unwrap());
    let (program, session) = joined(&home, &ticket);
    program.provide(offered(), gate.provider()).unwrap();
    let (_second, beside) = joined(&home, &ticket);
    let used = |name: &str| OwnUse {
        id: None,
        tool: tool(name),
        args: args! {}.finish(),
        location: None,
        part: None,
    };
    let out = |session: &Session, name: &str| match session.begin_use(&used(name)).unwrap() {
        Begun::Out(intent) => intent,
        Begun::Answered(answer) => panic!("{answer:?}"),
    };
    let is_unknown = |settled: Result<Settled, Error>| match settled {
        Err(Error::Refused(refused)) => refused.reason() == Reason::UnknownReference,
        _ => false,
    };
    let came = || Reported::Result(Canonical::text("found"));
    // Its intent is durable before the program hears of it.
    let intent = out(&session, "py.find");
    let Body::Intent(on_record) = record(&home, intent).body else { panic!("no intent") };
    assert_eq!(on_record.call.session, Some(session.number()));
    assert_eq!(on_record.call.agent_id, Some(agent.clone()));
    // Nobody else settles it: not another session of the ticket, not who has the operator's channel.
    assert!(is_unknown(beside.settle_use(intent, &came())));
    let (conversation, place) = (String::new(), None);
    let OwnUse { id, tool: name, args, location, part } = used("py.find");
    let theirs =
        ToolUse { agent: agent.clone(), conversation, id, tool: name, args, place, location, part };
    assert!(is_unknown(holder.settle_use(token, &theirs, &came())));
    let Settled::Answered(answer) = session.settle_use(intent, &came()).unwrap() else { panic!() };
    assert_eq!(answer.text().unwrap(), "found");
    let outcome_of = outcome(&home, &answer);
    assert_eq!(outcome_of.call.enforcement, Some(Enforcement::Hearsay));
    assert_eq!(gate.came().len(), 0, "nobody was ordered to run it");
    assert!(is_unknown(session.settle_use(intent, &came())), "once");
    // It failed by its own word; it was not made.
    let failed = Reported::Failed("no such page".to_owned());
    let intent = out(&session, "py.find");
    // The first has brought a stranger's word.
    assert_eq!(host_support::last_label(&home), Label::UNTRUSTED);
    let Settled::Answered(answer) = session.settle_use(intent, &failed).unwrap() else { panic!() };
    assert_eq!(answer.reason(), Some(Reason::ToolFailed));
    let intent = out(&session, "py.slow");
    let not_made = Reported::NotMade("the user said no".to_owned());
    let Settled::Answered(answer) = session.settle_use(intent, &not_made).unwrap() else {
        panic!()
    };
    assert_eq!(
        (answer.reason(), outcome(&home, &answer).tx),
        (Some(Reason::Cancelled), TxOutcome::NoOp)
    );
    // A call of the same tool is the provider's.
    assert_eq!(call(&session, "py.find", args! {}).unwrap().reason(), None);
    assert_eq!(gate.came().len(), 1);
    // Its time is over: unknown, and what is said then is on record as late, once.
    let intent = out(&session, "py.slow");
    until("its time is over", || {
        records(&home)
            .iter()
            .any(|one| matches!(&one.body, Body::Outcome(out) if out.intent == intent))
    });
    assert!(is_unknown(beside.settle_use(intent, &came())));
    assert!(matches!(session.settle_use(intent, &came()), Ok(Settled::Late(_))));
    assert!(is_unknown(session.settle_use(intent, &came())));
    // What isn't granted, isn't offered by this connection, is the server's own, or by another ticket.
    let answered = |session: &Session, name: &str| match session.begin_use(&used(name)) {
        Ok(Begun::Answered(answer)) => answer.reason(),
        other => panic!("{other:?}"),
    };
    let poor = holder.ticket(&agent, token_for(&holder, &["echo"]), &prefixes, true).unwrap();
    let (third, third_session) = joined(&home, &poor);
    third.provide(offered(), gate.provider()).unwrap();
    assert_eq!(answered(&third_session, "py.find"), Some(Reason::NotGranted));
    assert!(is_not_bound(session.begin_use(&used("echo"))));
    assert!(is_not_bound(session.begin_use(&used("py.other"))));
    assert!(is_not_bound(beside.begin_use(&used("py.find"))));
    let plain = holder.ticket(&agent, token, &prefixes, false).unwrap();
    let (fourth, fourth_session) = joined(&home, &plain);
    fourth.provide(offered(), gate.provider()).unwrap();
    assert!(is_not_bound(fourth_session.begin_use(&used("py.find"))));
    // What a shell's `place` decides is nobody's to write.
    let shell = Manifest::new(tool("py.sh"), EffectClass::ExternalWrite)
        .param(Param::required("command", ParamType::Code, "What is run."))
        .param(Param::optional("place", ParamType::Map, "Where."));
    program.provide(vec![shell], gate.provider()).unwrap();
    let place = args! { "command": "ls", "place": args! { "effect": "read" }.finish() };
    let place = OwnUse { args: place.finish(), ..used("py.sh") };
    match session.begin_use(&place) {
        Err(Error::Refused(refused)) => assert_eq!(refused.reason(), Reason::BadArgument),
        other => panic!("{other:?}"),
    }
    // A session that ends leaves what is out unknown.
    let intent = out(&session, "py.find");
    session.close().unwrap();
    until("it is given up", || {
        records(&home).iter().any(|one| match &one.body {
            Body::Outcome(out) => out.intent == intent && out.call.decision.is_some(),
            _ => false,
        })
    });
    drop((program, beside, third, third_session, fourth, fourth_session));
    end(&holder, &home);
    assert_eq!(verdict(&home), syscap::verify::Soundness::Sound);
}

/// A ticket goes on by the token that narrowed its own, and by no other.
#[test]
fn ticket_goes_on_by_the_token_that_renews_its_own() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let token = token_for(&holder, &["echo", "fs.list"]);
    let ticket = holder.ticket(&AgentId::new("a").unwrap(), token, &[], false).unwrap();
    let (_first, session) = joined(&home, &ticket);
    assert_eq!(session.token(), token);
    let narrowed = Grant::to("a").tools(["echo"]).budget(budget(900)).renews(token);
    let narrowed = holder.issue(narrowed).unwrap();
    token_for(&holder, &["echo", "fs.list"]);
    holder.revoke(token).unwrap();
    assert_eq!(echo(&session).unwrap().reason(), Some(Reason::Revoked));
    let (_second, session) = joined(&home, &ticket);
    assert_eq!(session.token(), narrowed);
    assert_eq!(echo(&session).unwrap().reason(), None);
    holder.revoke(narrowed).unwrap();
    let (_third, session) = joined(&home, &ticket);
    assert_eq!(echo(&session).unwrap().reason(), Some(Reason::Revoked));
    drop(session);
    end(&holder, &home);
}
