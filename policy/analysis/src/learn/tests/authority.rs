//! Tokens: tools, scopes and budgets.

use syscap_format::{Host, HostPattern, Rule, Scope};

use super::*;

const READ: (&str, EffectClass) = ("fs.read", EffectClass::Read);

/// A world in which each session touches what it is given, under `granted`.
fn files<'a, S: AsRef<[&'a str]>>(granted: &[(&str, Rights)], sessions: &[S]) -> World {
    let mut world = World::new(&[READ]);
    let rules = granted.iter().map(|(at, rights)| Rule { path: path(at), rights: *rights });
    let scope = Scope::paths(rules).unwrap();
    let authority = world.recording.tokens.get_mut(&token(1)).unwrap();
    authority.grants = Grants::new().with(tool("fs.read"), ToolGrant::new().with("fs.path", scope));
    for paths in sessions {
        let session = world.session("");
        for at in paths.as_ref() {
            world.call(session, "fs.read", "{}").touched = touches(at, Rights::READ);
        }
    }
    world
}

fn scope(proposal: &Proposal) -> (Reach, String) {
    let line = &proposal.agents[0].tools[0].scopes[0];
    let granted = proposal.agents[0].grants.get(&line_tool(proposal)).unwrap();
    assert_eq!(granted.scope("fs.path"), Some(&line.scope));
    (line.reach, format!("{}", line.scope))
}

fn line_tool(proposal: &Proposal) -> ToolId {
    proposal.agents[0].tools[0].tool.clone()
}

#[test]
fn recurring_paths_are_the_grant() {
    let world = files(&[("shared", Rights::ALL)], &[&["shared/a/1", "shared/b/2"]; 2]);
    let proposal = world.propose();
    assert_eq!(scope(&proposal), (Reach::Touched, "shared/a/1 (read), shared/b/2 (read)".into()));
}

/// Three different files make a folder of them, two do not; nothing is drawn higher.
#[test]
fn enough_files_make_a_folder() {
    let sessions: [&[&str]; 5] =
        [&["shared/a/b/1"], &["shared/a/b/2"], &["shared/a/b/3"], &["shared/c/9"], &["shared/c/9"]];
    let proposal = files(&[("shared", Rights::ALL)], &sessions).propose();
    let gathered = "shared/a/b (read), shared/c/9 (read)";
    // Leaving one out of three leaves too few for a folder: it takes a fourth.
    assert_ne!(scope(&proposal).0, Reach::Gathered);
    let sessions: [&[&str]; 6] = [
        &["shared/a/b/1"],
        &["shared/a/b/2"],
        &["shared/a/b/3"],
        &["shared/a/b/4"],
        &["shared/c/9"],
        &["shared/c/9"],
    ];
    let proposal = files(&[("shared", Rights::ALL)], &sessions).propose();
    assert_eq!(scope(&proposal), (Reach::Gathered, gathered.into()));
}

#[test]
fn else_the_folder_that_all_have_in_common() {
    let sessions: [&[&str]; 4] =
        [&["shared/a/1/x"], &["shared/a/2/x"], &["shared/a/3/x"], &["shared/a/3/y"]];
    let world = files(&[("shared", Rights::ALL)], &sessions);
    let proposal = world.propose_with(&Settings { files_min: 9, ..few() });
    assert_eq!(scope(&proposal), (Reach::Common, "shared/a (read)".into()));
}

/// What was gathered is one thing where folders above it are looked at.
#[test]
fn many_files_in_one_folder_open_no_other() {
    let all: &[&str] = &["shared/a/1", "shared/a/2", "shared/a/3", "shared/b/4", "docs/5"];
    let granted = [("shared", Rights::ALL), ("docs", Rights::ALL)];
    let each = all.iter().map(|at| Resource::Path { path: path(at), needs: Rights::READ });
    let each: Vec<Resource> = each.collect();
    let each: Vec<&Resource> = each.iter().collect();
    let drawn = |reach| around::around(reach, &each, &Settings::default()).unwrap();
    let gathered = "docs/5 (read), shared/a (read), shared/b/4 (read)";
    assert_eq!(format!("{}", drawn(Reach::Gathered)), gathered);
    assert_eq!(format!("{}", drawn(Reach::Common)), "docs (read), shared (read)");
    assert_eq!(scope(&files(&granted, &[all, all]).propose()).0, Reach::Touched);
}

/// Where no two tasks have anything in common the scope stays as it was; and never more.
#[test]
fn learned_scope_stays_within_the_grant() {
    let sessions: [&[&str]; 2] = [&["shared/a/1"], &["docs/a/1"]];
    let granted = [("shared", Rights::READ), ("docs/a", Rights::READ)];
    let proposal = files(&granted, &sessions).propose();
    assert_eq!(scope(&proposal), (Reach::Granted, "docs/a (read), shared (read)".into()));
    // What is gathered would be `shared/a`; what was granted lies in it.
    let sessions: [&[&str]; 4] =
        [&["shared/a/1/x"], &["shared/a/2/x"], &["shared/a/1/y"], &["shared/a/2/y"]];
    let granted = [("shared/a/1", Rights::READ), ("shared/a/2", Rights::READ)];
    let wanted = "shared/a/1 (read), shared/a/2 (read)";
    assert_eq!(scope(&files(&granted, &sessions).propose()), (Reach::Gathered, wanted.into()));
}

/// A call that only an older, wider token permitted is no evidence.
#[test]
fn the_newest_token_is_the_ceiling() {
    let mut world =
        files(&[("shared", Rights::ALL)], &[&["shared/a"], &["shared/a"], &["shared/b"]]);
    let narrow = Scope::paths([Rule { path: path("shared/a"), rights: Rights::READ }]).unwrap();
    let newer = Authority {
        issued: Seq::new(2),
        grants: Grants::new().with(tool("fs.read"), ToolGrant::new().with("fs.path", narrow)),
        budget: Budget::standard().with(Dimension::Calls, 1),
    };
    world.recording.tokens.insert(token(2), newer);
    let first = *world.recording.sessions.keys().next().unwrap();
    world.recording.sessions.get_mut(&first).unwrap().token = token(2);
    let proposal = world.propose();
    assert_eq!(proposal.agents[0].ceiling, token(2));
    assert_eq!(scope(&proposal).1, "shared/a (read)");
    assert_eq!(left_out(&proposal, Why::BeyondToken), 1);
    assert_eq!(proposal.agents[0].budget.amounts().get(Dimension::Calls), 1);
}

/// Scopes are narrowed by few tasks already, but not against one that is alone.
#[test]
fn few_tasks_narrow_scopes_all_the_same() {
    let world = files(&[("shared", Rights::ALL)], &[["shared/a"]; 2]);
    assert_eq!(scope(&world.propose_with(&Settings::default())).0, Reach::Touched);
    let world = files(&[("shared", Rights::ALL)], &[["shared/a"], ["shared/a"], ["shared/b"]]);
    assert_ne!(scope(&world.propose_with(&Settings::default())).0, Reach::Touched);
}

/// Where only the tool could say what was touched, its scope is left as it was.
#[test]
fn unknown_touches_narrow_nothing() {
    let mut world = files(&[("shared", Rights::ALL)], &[["shared/a"]; 3]);
    world.recording.calls[1].touched = Touched::Unknown;
    assert_eq!(scope(&world.propose()).0, Reach::Granted);
}

/// A scope that no call needed is not granted, and each path has the rights that it needed.
#[test]
fn unneeded_scope_is_not_granted() {
    let mut world = files(&[("shared", Rights::ALL)], &[["shared/a", "shared/a/1"]; 2]);
    for call in world.recording.calls.iter_mut().step_by(2) {
        call.touched = touches("shared/a", Rights::WRITE);
    }
    let authority = world.recording.tokens.get_mut(&token(1)).unwrap();
    let files = authority.grants.get(&tool("fs.read")).unwrap().clone();
    let both = files.with("net.host", Scope::hosts(["x.org"]).unwrap());
    authority.grants = Grants::new().with(tool("fs.read"), both);
    let proposal = world.propose();
    assert_eq!(scope(&proposal).1, "shared/a (write), shared/a/1 (read)");
    let grant = proposal.agents[0].grants.get(&tool("fs.read")).unwrap();
    assert!(grant.scope("net.host").is_none());
}

#[test]
fn hosts_gather_below_a_domain_and_never_below_one_label() {
    let sessions = ["a.x.org", "b.x.org", "c.x.org", "d.x.org"];
    for (suffix, wanted) in [("", "*.x.org"), (".org", "")] {
        let mut world = World::new(&[("web.get", EffectClass::ExternalRead)]);
        let any = Scope::hosts(["*.org"]).unwrap();
        let authority = world.recording.tokens.get_mut(&token(1)).unwrap();
        authority.grants =
            Grants::new().with(tool("web.get"), ToolGrant::new().with("net.host", any));
        for name in sessions {
            let name = if suffix.is_empty() { name } else { &name.replace(".x.", ".") };
            let session = world.session("");
            let resource = Resource::Host(Host::new(name).unwrap());
            let demand = Demand { dimension: "net.host", resource, argument: "host" };
            world.call(session, "web.get", "{}").touched = Touched::Known(vec![demand]);
        }
        let proposal = world.propose();
        let line = &proposal.agents[0].tools[0].scopes[0];
        if wanted.is_empty() {
            assert_eq!(line.reach, Reach::Granted, "{}", line.scope);
        } else {
            let below = HostPattern::parse(wanted).unwrap();
            assert_eq!(format!("{}", line.scope), format!("{below}"));
        }
    }
}

/// The most that a session had used and set aside, twice; what nobody needed is as it always is.
#[test]
fn budgets_are_what_the_largest_session_needed() {
    let mut world = World::new(&[READ]);
    let written = |n: u64| {
        Amounts::ZERO
            .with(Dimension::Calls, 1)
            .with(Dimension::DiskWriteBytes, n)
            .with(Dimension::WallUs, n)
    };
    for (calls, held, used) in [(3, 100, 10), (2, 50, 50)] {
        let session = world.session("");
        for _ in 0..calls {
            let call = world.call(session, "fs.read", "{}");
            (call.held, call.used) = (written(held), written(used));
        }
        let seq = world.seq();
        let amounts = Amounts::ZERO.with(Dimension::Calls, 1);
        world.recording.charges.push(Paid { session, seq, amounts });
    }
    let one = &world.propose().agents[0];
    let (limit, standard) = (one.budget.amounts(), Budget::standard());
    assert_eq!(limit.get(Dimension::Calls), 2 * 4);
    assert_eq!(limit.get(Dimension::DiskWriteBytes), 2 * (10 + 10 + 100));
    for dimension in [Dimension::EgressBytes, Dimension::WallUs, Dimension::Concurrent] {
        assert_eq!(limit.get(dimension), standard.amounts().get(dimension));
    }
    let line = one.limits.iter().find(|line| line.dimension == Dimension::Calls).unwrap();
    assert_eq!(line.most, Some((4, *world.recording.sessions.keys().next().unwrap())));
    let many = Settings { sessions: 10, ..few() };
    let limit = world.propose_with(&many).agents[0].budget;
    assert_eq!(limit.amounts().get(Dimension::Calls), 80);
    let all = Settings { sessions: u64::MAX, ..few() };
    let limit = world.propose_with(&all).agents[0].budget;
    assert_eq!(limit.amounts().get(Dimension::Calls), standard.amounts().get(Dimension::Calls));
}

/// The operator may name what nobody called, of what the recording's token grants; of a whole
/// family only what reads.
#[test]
fn uncalled_tool_is_granted_by_name_only() {
    let mut world = World::new(&[
        ("bank.look", EffectClass::Read),
        ("bank.list", EffectClass::Read),
        ("bank.pay", EffectClass::ExternalWrite),
        ("bankrupt.look", EffectClass::Read),
        ("bank.secret", EffectClass::Read),
    ]);
    let authority = world.recording.tokens.get_mut(&token(1)).unwrap();
    let named = ["bank.look", "bank.list", "bank.pay", "bankrupt.look"];
    authority.grants =
        named.iter().fold(Grants::new(), |grants, name| grants.with(tool(name), ToolGrant::new()));
    world.calls("bank.look", ["{}"; 2]);
    let granted = |allow: &[&str]| {
        let allow = allow.iter().map(|text| Allowed::parse(text).unwrap()).collect();
        let proposal = world.propose_with(&Settings { allow, ..few() });
        let names = proposal.agents[0].grants.iter().map(|(tool, _)| format!("{tool}"));
        (names.collect::<Vec<_>>(), proposal)
    };
    let (names, proposal) = granted(&[]);
    assert_eq!(names, ["bank.look"]);
    let never = |one: &&LeftOut| one.why == Why::NeverCalled;
    assert_eq!(proposal.left_out.iter().filter(never).count(), 3);
    let (names, proposal) = granted(&["bank.*"]);
    assert_eq!(names, ["bank.list", "bank.look"]);
    assert_eq!(verdict(&proposal, AGENT, "bank.list", "{}"), Verdict::Allow);
    assert_eq!(left_out(&proposal, Why::BeyondToken), 0);
    assert!(proposal.left_out.iter().any(|one| one.why == Why::BeyondToken));
    assert_eq!(granted(&["bank.pay"]).0, ["bank.pay", "bank.look"]);
    assert_eq!(granted(&["bank.secret"]).0, ["bank.look"]);
    assert_eq!(Allowed::parse("bank.*.x"), None);
    assert_eq!(Allowed::parse("*"), None);
}
