//! The document's examples and the forms of envelope, result and trust file.

use std::collections::BTreeSet;

use ed25519_dalek::{Signer as _, SigningKey};
use syscap::{
    Grant, Options, Runtime, Session,
    audit::verify::Trust,
    kernel::{
        budget::{Budget, Dimension},
        cbor::{Decoder, Encoder, Item, MapBuilder, Profile},
        control::{CONTROL_CONTEXT, Control, ControlBody, Revocation, Role, Roles},
        envelope::Status,
        field::List,
        hash::{Domain, args_hash, call_hash, changes_hash, fact_id, leaf, result_hash, sent_hash},
        id::{AgentId, FactKey, HomeId, ObjectId, Salt, TokenId, ToolId},
        kernel::{Event, Kernel, NewHome, Parts, Ticket},
        obligation::Obligation,
        policy::{
            Decision, EngineIdentity, PolicyEngine, PolicyObject, Question, Verdict, matches_digest,
        },
        provenance::Source,
        reason::{ErrorKind, Reason, Refused},
        record::{Body, Durability, HomeLimits, Kind, Record},
        registry::{Registry, ToolsObject},
        scope::{Rights, Root, RootedPath, Rule, Scope},
        sign::{PublicKey, Signature, preimage},
        snapshot::Snapshot,
        time::{Reading, UnixMillis},
        token::{Grant as Scopes, Grants, TOKEN_CONTEXT, Token, TokenBody, TokenFlags},
    },
    policy::WithinToken,
};
use tempfile::TempDir;

use crate::document::{code, dump, hex, spec, table, tables};

fn key(role: Role) -> SigningKey {
    SigningKey::from_bytes(&[u8::try_from(role.code()).unwrap(); 32])
}

fn public(role: Role) -> PublicKey {
    PublicKey::new(key(role).verifying_key().to_bytes()).unwrap()
}

fn signed(role: Role, context: &[u8], message: &[u8]) -> Signature {
    Signature::from_bytes(key(role).sign(&preimage(context, message)).to_bytes())
}

const TIME: u64 = 1_800_000_000_000;

fn reading(ms: u64) -> Reading {
    Reading { wall: UnixMillis::new(TIME + ms), boottime_ms: ms }
}

/// A home that is made, opened and closed.
fn log() -> (HomeId, Vec<Vec<u8>>) {
    let roles = Role::ALL.iter().map(|role| public(*role)).collect::<Vec<_>>();
    let new = NewHome {
        entropy: [0xe1; 32],
        origin: Box::from("syscap"),
        limits: HomeLimits::default(),
        durability: Durability::Full,
        roles: Roles::new(roles.try_into().unwrap()),
    };
    let parts = Parts { engine: Box::new(WithinToken), registry: Registry::new() };
    let mut kernel = Kernel::create(new, parts, reading(0)).unwrap();
    let boot = Event::Boot {
        ticket: Ticket(1),
        id: [0xb0; 16],
        software: Box::from("syscap 0.1.0"),
        durability: Durability::Full,
    };
    kernel.handle(boot, reading(1));
    kernel.handle(Event::Shutdown(Ticket(2)), reading(2));
    let batch = kernel.take_batch().unwrap();
    (kernel.home(), batch.links().iter().map(|link| link.bytes.clone()).collect())
}

/// A token for the example's home.
fn token(home: HomeId) -> Vec<u8> {
    let agent = AgentId::new("team/reader").unwrap();
    let path = RootedPath::new(Root::Workspace(agent.clone()), [""; 0]).unwrap();
    let scope = Scope::paths([Rule { path, rights: Rights::READ }]).unwrap();
    let tool = ToolId::new("fs.read").unwrap();
    let body = TokenBody {
        version: 1,
        nonce: [0xa0; 16],
        issuer: public(Role::Issuer),
        holder: None,
        agent,
        parent: None,
        depth: 0,
        depth_max: 0,
        not_before: UnixMillis::new(TIME),
        expires: UnixMillis::new(TIME + 3_600_000),
        epoch: 0,
        grants: Grants::new().with(tool, Scopes::new().with("path", scope)),
        budget: Budget::none()
            .with(Dimension::Calls, 100)
            .with(Dimension::CpuUs, 1_000_000)
            .with(Dimension::WallUs, 10_000_000)
            .with(Dimension::Concurrent, 1),
        caveats: List(Vec::new()),
        policy: None,
        flags: TokenFlags::READ_ONLY,
        ext: MapBuilder::new().finish(),
        audience: home,
    }
    .to_bytes();
    Token::wire(&body, &signed(Role::Issuer, TOKEN_CONTEXT, &body))
}

#[test]
fn the_example_is_what_the_code_makes() {
    let (home, records) = log();
    for (name, record) in ["genesis", "boot", "shutdown"].into_iter().zip(&records) {
        assert_eq!(hex(&dump(name)), hex(record), "{name}");
        assert_eq!(Record::decode(record).unwrap().body.kind().name(), name);
    }
    let spec = spec();
    let last = leaf(&records[2]);
    assert!(spec.contains(&format!("Home id, leaf of record 0: `{home}`\n")));
    assert!(spec.contains(&format!("Head: position 2, leaf `{last}`\n")));
    let wire = token(home);
    assert_eq!(hex(&dump("token")), hex(&wire));
    assert!(spec.contains(&format!("Token id: `{}`\n", Token::read(&wire).unwrap().id())));
    assert!(spec.contains("byte string of 207 bytes"));
}

/// Each line of a dump that is not a string's content begins at an item, so that no comment
/// slips to another one.
#[test]
fn dumps_are_cut_between_items() {
    for name in ["genesis", "boot", "shutdown", "token"] {
        let bytes = dump(name);
        Item::check(&bytes, Profile::CONTROL).unwrap();
        let mut places = BTreeSet::new();
        heads(&bytes, 0, &mut places);
        if name == "token" {
            let mut decoder = Decoder::new(&bytes, Profile::CONTROL);
            decoder.array().unwrap();
            decoder.uint().unwrap();
            decoder.uint().unwrap();
            let body = decoder.bytes().unwrap();
            heads(body, decoder.position() - body.len(), &mut places);
        }
        let spec = spec();
        let block = spec.split(&format!("```hex {name}\n")).nth(1).unwrap();
        let mut at = 0;
        for line in block.split("```").next().unwrap().lines() {
            let commented = line.contains(';');
            assert!(places.contains(&at) || !commented, "{name}: {line}");
            let digits = line.split(';').next().unwrap().replace(' ', "");
            at += digits.len() / 2;
        }
    }
}

/// Where heads stand.
fn heads(bytes: &[u8], offset: usize, places: &mut BTreeSet<usize>) {
    let mut at = 0;
    while at < bytes.len() {
        places.insert(offset + at);
        let (major, info) = (bytes[at] >> 5, bytes[at] & 31);
        let width = if info < 24 { 0 } else { 1 << (info - 24) };
        let argument = &bytes[at + 1..=at + width];
        let value = argument.iter().fold(0, |value, byte| (value << 8) | usize::from(*byte));
        let value = if width == 0 { usize::from(info) } else { value };
        at += 1 + width + if matches!(major, 2 | 3) { value } else { 0 };
    }
}

#[test]
fn vectors_are_what_the_code_makes() {
    let (home, _) = log();
    let (salt, tool) = (Salt::from_bytes([0x11; 32]), ToolId::new("echo").unwrap());
    let manifest = ObjectId::from_bytes([0x22; 32]);
    let args = MapBuilder::new().text("text", "hi").finish();
    let envelope = MapBuilder::new().text("tool_id", "echo").item("args", args.item()).finish();
    let mut refusals = Encoder::new();
    for (time, reason) in [(TIME, Reason::OutOfScope), (TIME + 1, Reason::OverBudget)] {
        refusals.array(2);
        refusals.uint(time);
        refusals.uint(reason.code());
    }
    let policy = PolicyObject::of(&WithinToken);
    let tools = ToolsObject { tools: List(Vec::new()) };
    let snapshot = Snapshot::genesis(AgentId::new("team/reader").unwrap());
    let topic = FactKey::new("goal.topic").unwrap();
    let changes = MapBuilder::new().text("goal.topic", "bees").finish();
    let fact = fact_id(&salt, &topic, changes.item().get("goal.topic").unwrap());
    let next = snapshot.next(&[(topic, fact)].into());
    let revocation = Revocation { token: Token::read(&token(home)).unwrap().id() }.to_bytes();
    let revoker = public(Role::Revoker);
    let message = Control::message(&home, &revoker, 1, Kind::Revoke, &revocation);
    let signature = signed(Role::Revoker, CONTROL_CONTEXT, &message);
    let control = Control { key: revoker, counter: 1, body: revocation.clone(), signature };
    assert_eq!(control.verify(&home, Kind::Revoke), Ok(()));
    let shown = |bytes: &[u8]| format!("h'{}'", hex(bytes));
    let wanted = [
        (String::new(), args_hash(&salt, &tool, &manifest, args.item()).to_string()),
        (String::new(), sent_hash(&salt, &tool, args.item()).to_string()),
        (shown(envelope.as_bytes()), call_hash(&salt, envelope.as_bytes()).to_string()),
        (String::new(), result_hash(&salt, Status::Ok.code(), args.item()).to_string()),
        (String::new(), hex(&Domain::REFUSALS.hash(&[&refusals.into_bytes()]))),
        (shown(&policy.to_bytes()), policy.hash().to_string()),
        (shown(&tools.to_bytes()), tools.hash().to_string()),
        (shown(&snapshot.to_bytes()), snapshot.id().to_string()),
        (String::new(), changes_hash(&salt, changes.item()).to_string()),
        (String::new(), fact.to_string()),
        (shown(&next.to_bytes()), next.id().to_string()),
        (String::new(), hex(&matches_digest(&[0, 2, 300]))),
        (shown(&revocation), hex(&message)),
        (String::new(), hex(signature.as_bytes())),
    ];
    let rows = table("What | Of | Value");
    assert_eq!(rows.len(), wanted.len());
    for (row, (of, value)) in rows.iter().zip(wanted) {
        assert!(row[1].contains(&of), "{}: {of}", row[0]);
        assert_eq!(row[2], format!("`{value}`"), "{}", row[0]);
    }
    assert!(spec().contains(&shown(args.as_bytes())));
}

#[test]
fn the_trust_file_has_its_form() {
    let (home, records) = log();
    let Body::Genesis(genesis) = Record::decode(&records[0]).unwrap().body else {
        panic!("no genesis");
    };
    let roles = genesis.roles;
    let mut wanted = Encoder::new();
    wanted.map(3);
    wanted.uint(1);
    wanted.uint(1);
    wanted.uint(2);
    wanted.bytes(home.as_bytes());
    wanted.uint(3);
    wanted.array(5);
    Role::ALL.iter().for_each(|role| wanted.bytes(public(*role).as_bytes()));
    assert_eq!(Trust { home, roles }.to_bytes(), wanted.into_bytes());
    let text = "{1: version, which is 1; 2: the home's id, bstr of 32; 3: [issuer, policy, \
                revoker, approver, operator], each bstr of 32 key}";
    assert!(spec().replace('\n', " ").contains(text));
}

/// The keys in the first column of a table.
fn keys(head: &str, heading: &str) -> BTreeSet<String> {
    let found = tables()
        .into_iter()
        .find(|table| table.heading.starts_with(heading) && table.head.join(" | ") == head);
    let rows = found.expect(heading).rows;
    rows.iter().flat_map(|row| code(&row[0])).map(str::to_owned).collect()
}

fn entries(item: Item<'_>) -> BTreeSet<String> {
    item.entries().map(|(key, _)| key.to_owned()).collect()
}

/// Lets everything run, and takes something away from what asks for it.
struct Less;

impl PolicyEngine for Less {
    fn identity(&self) -> EngineIdentity {
        EngineIdentity { name: Box::from("less"), version: 1 }
    }
    fn document(&self) -> Vec<u8> {
        vec![0xa0]
    }
    fn decide(&self, question: &Question<'_>) -> Decision {
        if question.args.get("value").and_then(Item::as_text) != Some("less") {
            return Decision::plain(Verdict::Allow);
        }
        let obligations = List(vec![Obligation::read_only()]);
        Decision { obligations, ..Decision::plain(Verdict::Degrade) }
    }
}

/// A home with one agent, which may call `echo`.
fn seat() -> (TempDir, Runtime, Session, TokenId) {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new().durability(Durability::Process).policy(Less);
    let runtime = options.create(folder.path().join("home")).unwrap();
    let token = runtime.issue(Grant::to("reader").tools(["echo"])).unwrap();
    let session = runtime.session("reader", token).unwrap();
    (folder, runtime, session, token)
}

#[test]
fn results_have_the_keys_that_stand_there() {
    let (_folder, runtime, session, _) = seat();
    let call = |envelope: &str| session.send_json(envelope.as_bytes()).unwrap();
    let good = call(r#"{"tool_id": "echo", "args": {"value": "hi"}}"#);
    let bad = call(r#"{"tool_id": "echo", "args": {"value": "hi", "bcc": 1}}"#);
    assert_eq!((good.status(), bad.status()), (Status::Ok, Status::Error));
    let less = call(r#"{"tool_id": "echo", "args": {"value": "less"}}"#);
    let mut both = entries(good.to_canonical().item());
    both.extend(entries(bad.to_canonical().item()));
    assert!(!both.contains("degraded"));
    both.extend(entries(less.to_canonical().item()));
    assert_eq!(keys("Key | Form", "6.2"), both);
    let good = good.to_canonical();
    let receipt = good.item().get("receipt").unwrap();
    assert_eq!(keys("Key of the receipt | Form", "6.2"), entries(receipt));
    runtime.close().unwrap();
}

#[test]
fn errors_have_the_keys_that_stand_there() {
    let refused = Refused::new(Reason::Denied).field("a").got("b").allowed("c");
    let object = refused.error_object(ErrorKind::Refused);
    let text = "`{kind, code, reason, retry, hint}`, and `field`, `got`, `allowed`";
    assert!(spec().contains(text));
    let wanted: BTreeSet<String> = text
        .split(|c: char| !c.is_ascii_lowercase())
        .filter(|word| !matches!(*word, "" | "and"))
        .map(str::to_owned)
        .collect();
    assert_eq!(entries(object.item()), wanted);
}

/// An envelope with all fields passes; one without a filled-in field passes; one without
/// another is refused for it.
#[test]
fn envelopes_are_completed_as_it_says() {
    let (_folder, runtime, session, token) = seat();
    let agent = AgentId::new("reader").unwrap();
    let snapshot = Snapshot::genesis(agent).id();
    let policy = runtime.look(|kernel| kernel.policy_hash().unwrap());
    let args = MapBuilder::new().text("value", "hi").finish();
    let source = MapBuilder::new().text("source", Source::User.name()).finish();
    let value = |map: MapBuilder, key: &str| match key {
        "v" => map.uint(key, 1),
        "tool_id" => map.text(key, "echo"),
        "args" => map.item(key, args.item()),
        "agent_id" => map.text(key, "reader"),
        "capability_token_id" => map.bytes(key, token.as_bytes()),
        "state_snapshot_id" => map.text(key, &snapshot.to_string()),
        "policy_hash" => map.bytes(key, policy.as_bytes()),
        "provenance" => map.item(key, source.item()),
        "idempotency_key" => map,
        _ => panic!("what is {key}?"),
    };
    let rows = table("Key | Form | Where absent");
    let named: Vec<(&str, &str)> = rows
        .iter()
        .filter(|row| row[2] != "must be absent" && row[0] != "any other")
        .map(|row| (code(&row[0])[0], row[2].split(':').next().unwrap()))
        .collect();
    for absent in named.iter().map(|(key, _)| *key).chain(["none"]) {
        let present = named.iter().filter(|(key, _)| *key != absent);
        let envelope = present.fold(MapBuilder::new(), |map, (key, _)| value(map, key));
        let result = session.send_cbor(envelope.finish().as_bytes()).unwrap();
        let refused = named.contains(&(absent, "refused"));
        assert_eq!(result.reason(), refused.then_some(Reason::MissingField), "{absent}");
    }
    let proof = value(value(MapBuilder::new(), "tool_id"), "args").uint("proof", 1).finish();
    let result = session.send_cbor(proof.as_bytes()).unwrap();
    assert_eq!(result.reason(), Some(Reason::BadProof));
    runtime.close().unwrap();
}
