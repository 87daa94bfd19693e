//! The target's seeds and findings.

use syscap_format::{
    AgentId, Amounts, EffectClass, Freeze, FreezeChange, FreezeTarget, Head, HomeId, Label, Leaf,
    Manifest, ObjectId, Reason, RecordKind, Seq, TokenId, ToolId, UnixMillis,
};

use crate::driver::counters::Counts;
use crate::inspect::view::{Running, SessionInfo, TokenInfo, ToolDetail, ToolInfo, View};
use crate::tools::provide::Standing;
use crate::transport::frozen::{Command, HolderStatus, Phase, Response};
use crate::transport::fuzz::{corpus, frame};
use crate::transport::hello::{Greeting, Hello, Lane};
use crate::transport::reply::Reply;
use crate::transport::tests::frames;
use crate::transport::versions::Versions;

/// The frames that never change.
fn frozen() -> Vec<Vec<u8>> {
    let (home, leaf) = (HomeId::from_bytes([0xaa; 32]), Leaf::from_bytes([0xcc; 32]));
    let (target, change) = (FreezeTarget::Agent, FreezeChange::Freeze);
    let freeze = Freeze { target, name: Box::from("team/a"), change };
    let version = RecordKind::Revoke.version();
    let status = HolderStatus {
        home,
        versions: Versions::OURS,
        phase: Phase::Open,
        head: Head { seq: Seq::new(42), leaf },
        sessions: 2,
        running: 0,
        frozen: 1,
    };
    vec![
        Hello::write(Versions::OURS, Lane::Operator),
        Hello::write(Versions { least: 2, greatest: 4 }, Lane::Agents),
        Greeting::Welcome { version: 2, home }.write(),
        Greeting::turned_away(Reason::UnknownVersion).write(),
        Command::Revoke(TokenId::from_bytes([0xbb; 32])).write(7),
        Command::Freeze(freeze).write(8),
        Command::Status.write(9),
        Command::Shutdown.write(10),
        Command::Signed { kind: RecordKind::Revoke, version, event: vec![0xa0] }.write(11),
        Response::Done(Seq::new(42)).write(7),
        Response::Refused(Reason::UnknownToken.code(), "token".to_owned()).write(7),
        Response::Status(status).write(9),
    ]
}

/// What stands: an answer with a bit of everything, and a tool whole.
fn views() -> [Vec<u8>; 2] {
    let (agent, tool) = (AgentId::new("team/a").unwrap(), ToolId::new("t.a").unwrap());
    let (token, amounts) = (TokenId::from_bytes([1; 32]), Amounts::ZERO);
    let manifest = Manifest::new(tool.clone(), EffectClass::Read);
    let info = ToolInfo {
        tool: tool.clone(),
        effect: EffectClass::Read,
        label: Label::UNTRUSTED,
        title: "A".to_owned(),
        definition: None,
        manifest: manifest.id(),
        standing: Standing::Changed,
        offered: Some(ObjectId::from_bytes([2; 32])),
        provided: true,
        delegated: true,
    };
    let (number, since) = (Seq::new(7), UnixMillis::new(8));
    let held = TokenInfo {
        id: token,
        agent: agent.clone(),
        issued: Seq::new(6),
        expires: UnixMillis::new(9),
        revoked: false,
        tools: vec![tool.clone()],
        limits: amounts,
        used: amounts,
        held: amounts,
        left: amounts,
        exhausted: true,
        label: Label::UNTRUSTED,
        standing: crate::inspect::view::TokenStanding::Spent,
    };
    let counts = Counts { calls: 3, refused: [(Reason::Denied, 1)].into(), ..Counts::default() };
    let freeze = Freeze::all();
    let view = View {
        home: HomeId::from_bytes([0xaa; 32]),
        head: Seq::new(11),
        now: since,
        policy: None,
        shadow: None,
        frozen: vec![freeze],
        frozen_in_all: 1,
        tools: vec![info.clone()],
        tools_in_all: 1,
        tokens: vec![held],
        tokens_in_all: 1,
        sessions: vec![SessionInfo { number, agent: agent.clone(), token, label: Label::PUBLIC }],
        sessions_in_all: 1,
        running: vec![Running { intent: number, tool, agent, since }],
        running_in_all: 1,
        counts,
    };
    let detail = ToolDetail { info, manifest: manifest.clone(), offered: Some(manifest) };
    [Reply::done(&view).frame(5), Reply::done(&detail).frame(5)]
}

fn seeds() -> Vec<(String, Vec<u8>)> {
    let all: Vec<Vec<u8>> = frozen().into_iter().chain(frames()).chain(views()).collect();
    // As they come in: each with its length, the first of them a hello.
    let stream = all.iter().flat_map(|item| {
        let length = u32::try_from(item.len()).unwrap();
        [&length.to_be_bytes()[..], item].concat()
    });
    let stream = ("stream".to_owned(), stream.collect());
    let numbered = all.iter().enumerate();
    let numbered = numbered.map(|(n, item)| (format!("{n:02}"), item.clone()));
    numbered.chain([stream]).collect()
}

#[test]
fn seeds_of_frames_are_what_the_code_makes() {
    corpus::hold("frame", seeds());
}

#[test]
fn frames_that_were_found_hold() {
    assert!(corpus::replay("frame", frame) > 40);
}
