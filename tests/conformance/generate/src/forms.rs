//! Vectors of `log.md`, and of control events in `tokens.md`: hashes, records, objects, rows of the
//! vault, the trust file.

use serde_json::json;
use syscap_format::{
    ArgsPiece, Body, CONTROL_CONTEXT, Canonical, Control, ControlBody as _, Domain, Encoder,
    FactKey, Item, Label, LateReport, MapBuilder, Object, ObjectId, Opening, POSSESSION_CONTEXT,
    Param, ParamType, PolicyObject, Profile, Proof, Record, RecordError, RecordKind, Revocation,
    Role, RoleSet, Roles, ScopeType, Seq, Snapshot, Status, TOKEN_CONTEXT, ToolId, ToolsObject,
    Trust, VaultEntry, VaultText, args_hash, call_hash, changes_hash, fact_id, leaf,
    matches_digest, possession, preimage, recovery_hash, result_hash, sent_hash, text_hash,
};
use syscap_kernel::object_of;
use syscap_policy::WithinToken;

use crate::case::{Cases, Of, hex, unhex};
use crate::image::image;
use crate::records::{args, changes, records, reserved};
use crate::world::{Log, RECOVERY, REVOKER_TOO, agent, public, salts, seed, signed};

/// The vectors.
pub(crate) fn cases() -> Cases {
    let mut cases = Cases::default();
    domains(&mut cases);
    commitments(&mut cases);
    messages(&mut cases);
    sets(&mut cases);
    kinds(&mut cases);
    newer(&mut cases);
    objects(&mut cases);
    vault(&mut cases);
    trust(&mut cases);
    cases
}

/// The name of a domain in the document.
fn name_of(domain: Domain) -> &'static str {
    let names = [
        "TOKEN_ID",
        "OBJECT_ID",
        "POLICY",
        "TOOLS",
        "SNAPSHOT",
        "ARGUMENTS",
        "ENVELOPE",
        "RESULT",
        "SENT",
        "CALL_DIGEST",
        "REFUSALS",
        "FACT",
        "MATCHES",
        "DEFINITION",
        "RECOVERY",
        "TEXT",
        "STATE",
    ];
    let place = Domain::ALL.iter().position(|one| one.context() == domain.context());
    names[place.expect("a domain")]
}

fn domains(cases: &mut Cases) {
    let of = Of("SYSCAP-HASH-001", "one thing passes for another that has the same bytes");
    for domain in Domain::ALL {
        for bytes in [&b""[..], b"abc", &[0x61; 2_000]] {
            let given = json!({
                "kind": "hash", "domain": name_of(domain), "bytes": hex(bytes), "hash": hex(&domain.hash(&[bytes])),
            });
            cases.valid(of, "", given);
        }
    }
    let of = Of("SYSCAP-HASH-003", "an inner node of the tree passes for a record");
    for record in Log::example().records {
        let given =
            json!({"kind": "leaf", "record": hex(&record), "leaf": leaf(&record).to_string()});
        cases.valid(of, "", given);
    }
    let (image, digest) = image();
    let of = Of("SYSCAP-STATE-001", "a state is restored that no log leads to");
    let given = json!({"kind": "hash", "domain": "STATE", "bytes": hex(&image), "hash": digest.to_string()});
    cases.valid(of, "the state of a home in which something happened", given);
}

/// Commitments, each as the CBOR array that is hashed.
fn commitments(cases: &mut Cases) {
    let of = Of("SYSCAP-HASH-002", "a commitment to one thing opens to another");
    let (salts, tool, manifest) =
        (salts(), ToolId::new("echo").expect("an id"), ObjectId::from_bytes([0x22; 32]));
    let (args, changes, topic) = (args(), changes(), FactKey::new("goal.topic").expect("a key"));
    let envelope = MapBuilder::new().text("tool_id", "echo").item("args", args.item()).finish();
    let fact = fact_id(&salts.args, &topic, changes.item().get("goal.topic").expect("a value"));
    let salt = |salt: &syscap_format::Salt| hex(salt.as_bytes());
    let value = |item: &Canonical| hex(item.as_bytes());
    let with = json!({"salt": salt(&salts.args), "tool": "echo", "manifest": manifest.to_string(), "args": value(&args)});
    let key = public(RECOVERY);
    for (what, parts, hash) in [
        (
            "args_hash",
            with.clone(),
            args_hash(&salts.args, &tool, &manifest, args.item()).to_string(),
        ),
        ("sent_hash", with, sent_hash(&salts.args, &tool, args.item()).to_string()),
        (
            "call_hash",
            json!({"salt": salt(&salts.call), "envelope": value(&envelope)}),
            call_hash(&salts.call, envelope.as_bytes()).to_string(),
        ),
        (
            "result_hash",
            json!({"salt": salt(&salts.result), "status": 0, "delivered": value(&args)}),
            result_hash(&salts.result, Status::Ok.code(), args.item()).to_string(),
        ),
        (
            "changes_hash",
            json!({"salt": salt(&salts.args), "changes": value(&changes)}),
            changes_hash(&salts.args, changes.item()).to_string(),
        ),
        (
            "fact_id",
            json!({"salt": salt(&salts.args), "key": "goal.topic", "value": "6462656573"}),
            fact.to_string(),
        ),
        ("matches_digest", json!({"places": [0, 2, 300]}), hex(&matches_digest(&[0, 2, 300]))),
        (
            "text_hash",
            json!({"salt": salt(&salts.args), "field": 7, "text": "It may say that."}),
            text_hash(&salts.args, 7, "It may say that.").to_string(),
        ),
        ("recovery_hash", json!({"key": hex(key.as_bytes())}), recovery_hash(&key).to_string()),
    ] {
        cases.valid(
            of,
            what,
            json!({"kind": "commitment", "what": what, "parts": parts, "hash": hash}),
        );
    }
}

/// The signed bytes: context and message of each kind.
fn messages(cases: &mut Cases) {
    let of = Of("SYSCAP-KEY-007", "a signature over one thing passes for another");
    let log = Log::example();
    let body = Revocation::subtree(log.token_id()).to_bytes();
    let (head, key, home) = (log.head(2), public(seed(Role::Revoker)), log.home);
    let (token, challenge) = (log.token_id(), [7; 32]);
    let home_id = home.to_string();
    let control = Control::message(&home, &head, &key, 1, RecordKind::Revoke, &body);
    let too = public(REVOKER_TOO);
    let all = [
        (
            json!({"what": "control", "home": home_id, "seq": 2, "leaf": head.leaf.to_string(), "key": hex(key.as_bytes()),
                "counter": 1, "kind_number": RecordKind::Revoke.code(), "body": hex(&body)}),
            CONTROL_CONTEXT,
            control,
            seed(Role::Revoker),
        ),
        (
            json!({"what": "possession", "home": home_id, "role": 3, "key": hex(too.as_bytes())}),
            POSSESSION_CONTEXT,
            possession(&home, Role::Revoker, &too),
            REVOKER_TOO,
        ),
        (
            json!({"what": "opening", "home": home_id, "token": token.to_string(), "challenge": hex(&challenge)}),
            Opening::CONTEXT,
            Opening::message(&home, &token, &challenge),
            REVOKER_TOO,
        ),
        (
            json!({"what": "proof", "home": home_id, "session": 4, "challenge": hex(&challenge), "counter": 1,
                "envelope": hex(args().as_bytes())}),
            Proof::CONTEXT,
            Proof::message(&home, Seq::new(4), &challenge, 1, args().as_bytes()),
            REVOKER_TOO,
        ),
    ];
    for (parts, context, message, by) in all {
        let signature = signed(by, context, &message);
        let other = signed(by, TOKEN_CONTEXT, &message);
        for (signature, valid) in [(signature, true), (other, false)] {
            let given = json!({
                "kind": "message", "parts": parts, "preimage": hex(&preimage(context, &message)),
                "key": hex(public(by).as_bytes()), "signature": hex(signature.as_bytes()),
            });
            let comment = if valid { "" } else { "signed under another context" };
            cases.add(of, valid, comment, given);
        }
    }
}

/// A shape that must keep to more than its form.
fn shape(cases: &mut Cases, of: Of, comment: &str, name: &str, bytes: &[u8], valid: bool) {
    cases.add(of, valid, comment, json!({"kind": "type", "type": name, "bytes": hex(bytes)}));
}

fn put<T: syscap_format::field::Field>(value: &T) -> Vec<u8> {
    let mut encoder = Encoder::new();
    value.put(&mut encoder);
    encoder.into_bytes()
}

fn sets(cases: &mut Cases) {
    let set = |role, threshold, seeds: std::ops::Range<u8>| RoleSet {
        threshold,
        ..RoleSet::any_of(role, seeds.map(public))
    };
    let keys = Of("SYSCAP-CTL-001", "one key counts as two");
    let threshold = Of("SYSCAP-CTL-002", "nobody need sign, or nobody can");
    let mut turned = set(Role::Revoker, 1, 1..3);
    turned.keys.reverse();
    let mut twice = set(Role::Revoker, 1, 1..3);
    twice.keys[1] = twice.keys[0].clone();
    for (of, set, valid) in [
        (keys, set(Role::Revoker, 1, 1..2), true),
        (keys, set(Role::Revoker, 1, 1..17), true),
        (keys, set(Role::Revoker, 1, 1..18), false),
        (keys, set(Role::Revoker, 1, 1..1), false),
        (keys, set(Role::Publisher, 1, 1..2), false),
        (keys, turned, false),
        (keys, twice, false),
        (threshold, set(Role::Revoker, 16, 1..17), true),
        (threshold, set(Role::Issuer, 1, 1..17), true),
        (threshold, set(Role::Revoker, 0, 1..2), false),
        (threshold, set(Role::Revoker, 3, 1..3), false),
        (threshold, set(Role::Issuer, 2, 1..3), false),
    ] {
        assert_eq!(set.is_sound(), valid, "{of:?}");
        shape(cases, of, "", "RoleSet", &put(&set), valid);
    }
    let of = Of("SYSCAP-CTL-003", "one key's signature counts twice");
    let log = Log::example();
    let body = Revocation::subtree(log.token_id());
    let event = |seeds: &[u8]| crate::world::event(&log.home, log.head(2), &body, seeds);
    let mut turned = event(&[3, 10]);
    turned.signatures.reverse();
    for (control, valid) in [
        (event(&[3]), true),
        (event(&[3, 10]), true),
        (event(&[]), false),
        (event(&[3, 3]), false),
        (turned, false),
        (event(&(1..18).collect::<Vec<u8>>()), false),
    ] {
        assert_eq!(control.is_sound(), valid);
        shape(cases, of, "", "Control", &put(&control), valid);
    }
}

/// A record, held against ours.
fn record(cases: &mut Cases, of: Of, comment: &str, bytes: &[u8], is_newer: bool, valid: bool) {
    let found = Record::decode(bytes);
    assert_eq!(found.is_ok(), valid, "{of:?} {comment} {found:?}");
    let newer = !matches!(found, Ok(_) | Err(RecordError::Damaged(_) | RecordError::TooOld(_)));
    assert_eq!(newer, is_newer, "{of:?} {comment} {found:?}");
    let mut given = json!({"kind": "record", "bytes": hex(bytes)});
    if newer {
        given["newer"] = json!(true);
    }
    cases.add(of, valid, comment, given);
}

/// Entries of a record, each with its key.
fn entries(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut decoder = syscap_format::Decoder::new(bytes, Profile::CONTROL);
    let count = decoder.map_head().expect("a record");
    (0..count)
        .map(|_| {
            let from = decoder.position();
            decoder.uint().expect("a key");
            decoder.item().expect("a value");
            bytes[from..decoder.position()].to_vec()
        })
        .collect()
}

fn map_of(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut encoder = Encoder::new();
    encoder.map(entries.len());
    let mut bytes = encoder.into_bytes();
    entries.iter().for_each(|entry| bytes.extend_from_slice(entry));
    bytes
}

/// Each kind: its record is taken. Without its first or last key, with one more, and with a value
/// of another type it is not.
fn kinds(cases: &mut Cases) {
    let mut all: Vec<Vec<u8>> = Log::example().records;
    all.extend(records().iter().map(Record::encode));
    all.sort_by_key(|bytes| entries(bytes)[3].clone());
    let catches = "a field that is missing or of another type is filled in by the reader";
    let shape = Of("SYSCAP-REC-001", catches);
    for bytes in &all {
        let parts = entries(bytes);
        let code = Item::check(&parts[3][1..], Profile::CONTROL)
            .ok()
            .and_then(Item::as_uint)
            .expect("a kind");
        let kind = RecordKind::from_code(code).expect("a kind");
        let of = Of(format!("SYSCAP-REC-{}", 100 + code).leak(), catches);
        record(cases, of, kind.name(), bytes, kind.is_reserved(), !kind.is_reserved());
        if kind.is_reserved() {
            continue;
        }
        let own = if parts.len() > 7 { 7 } else { 6 };
        let without = |place: usize| map_of(&[&parts[..place], &parts[place + 1..]].concat());
        record(cases, of, "without its first own key", &without(own), false, false);
        record(cases, shape, "without its last key", &without(parts.len() - 1), false, false);
        record(
            cases,
            shape,
            "with a key more",
            &map_of(&[&parts[..], &[vec![0x18, 0xff, 0xf6]]].concat()),
            false,
            false,
        );
        let mut other = parts.clone();
        let key = if other[own][0] == 0x18 { 2 } else { 1 };
        other[own].truncate(key);
        other[own].push(0x80);
        record(cases, of, "an empty list for its first own key", &map_of(&other), false, false);
        record(cases, shape, kind.name(), bytes, false, true);
        record(cases, shape, "a byte more", &[&bytes[..], &[0]].concat(), false, false);
    }
}

fn newer(cases: &mut Cases) {
    let shutdown = Log::example().records[2].clone();
    let with = |place: usize, value: &[u8]| {
        let mut parts = entries(&shutdown);
        parts[place].truncate(1);
        parts[place].extend_from_slice(value);
        map_of(&parts)
    };
    let newer = "a sound log of a later version is called tampered";
    let of = |requirement| Of(requirement, newer);
    for requirement in
        ["SYSCAP-REC-003", "SYSCAP-REC-004", "SYSCAP-REC-005", "SYSCAP-REC-006", "SYSCAP-REC-007"]
    {
        record(cases, of(requirement), "a record of this version", &shutdown, false, true);
    }
    record(cases, of("SYSCAP-REC-003"), "kind 30", &with(3, &[0x18, 30]), true, false);
    record(cases, of("SYSCAP-REC-003"), "kind 0", &with(3, &[0]), true, false);
    record(cases, of("SYSCAP-REC-004"), "version 3", &with(0, &[3]), true, false);
    record(cases, of("SYSCAP-REC-005"), "version 1", &with(0, &[1]), false, false);
    record(cases, of("SYSCAP-REC-005"), "version 0", &with(0, &[0]), false, false);
    for made in records() {
        if let Body::Session(change) = &made.body {
            let (now, of) = (made.encode(), Of("SYSCAP-REC-008", "a log of before is not read"));
            let before = Record { body: Body::SessionAlone(change.clone()), ..made };
            record(cases, of, "a session of now", &now, false, true);
            record(cases, of, "a session of before", &before.encode(), false, true);
            let mut parts = entries(&now);
            parts[0].truncate(1);
            parts[0].push(4);
            record(cases, of, "a session of a later version", &map_of(&parts), true, false);
        }
    }
    // A freeze and a policy with a reason have version 3, without one version 2. The body's form is the
    // log's matter.
    for made in records() {
        let because = match &made.body {
            Body::Freeze(event) => Body::FreezeBecause(event.clone()),
            Body::Policy(event) => Body::PolicyBecause(event.clone()),
            _ => continue,
        };
        let (now, of) = (made.encode(), Of("SYSCAP-REC-009", "a record with a reason is not read"));
        let because = Record { body: because, ..made }.encode();
        record(cases, of, "without a reason", &now, false, true);
        record(cases, of, "with a reason", &because, false, true);
        let mut parts = entries(&because);
        parts[0].truncate(1);
        parts[0].push(4);
        record(cases, of, "a later version", &map_of(&parts), true, false);
    }
    // A late report has version 3, the end of a run of this boot version 2.
    for made in records() {
        let Body::Late(late) = &made.body else { continue };
        let (now, of) = (made.encode(), Of("SYSCAP-REC-010", "a late report is not read"));
        let report = Body::LateReport(Box::new(LateReport {
            intent: late.intent,
            status: late.status,
            result_hash: late.result_hash.expect("it brought something"),
            tx: late.tx,
            label: Label::UNTRUSTED,
        }));
        let report = Record { body: report, ..made }.encode();
        record(cases, of, "the end of a run", &now, false, true);
        record(cases, of, "a late report", &report, false, true);
        let versions = |bytes: &[u8], version| {
            let mut parts = entries(bytes);
            parts[0].truncate(1);
            parts[0].push(version);
            map_of(&parts)
        };
        record(cases, of, "the end of a run as a report", &versions(&now, 3), false, false);
        record(cases, of, "a report as the end of a run", &versions(&report, 2), false, false);
        record(cases, of, "a later version", &versions(&report, 4), true, false);
    }
    for made in records().iter().filter(|record| record.body.kind().is_reserved()) {
        record(cases, of("SYSCAP-REC-006"), made.body.kind().name(), &made.encode(), true, false);
    }
    for made in reserved() {
        record(cases, of("SYSCAP-REC-007"), made.body.kind().name(), &made.encode(), true, false);
    }
}

fn objects(cases: &mut Cases) {
    let named = Of("SYSCAP-OBJ-001", "a document of one kind passes for another");
    let formed = Of("SYSCAP-OBJ-002", "a document is read that a verifier can't read");
    let mut add = |of, comment: &str, object: &Object, valid| {
        assert_eq!(object.is_sound(), valid, "{comment}");
        let given = json!({
            "kind": "object", "object": object.kind.name(), "bytes": hex(&object.bytes), "name": object.id.to_string(),
        });
        cases.add(of, valid, comment, given);
    };
    let log = Log::example();
    let manifest = syscap_format::Manifest::new(
        ToolId::new("echo").expect("an id"),
        syscap_format::EffectClass::Pure,
    );
    // Each key that may be absent is there.
    let mut whole = manifest
        .clone()
        .param(Param::required("page", ParamType::Text, "").within(1, 9))
        .param(Param::optional("by", ParamType::Text, "").or(Canonical::text("one")))
        .resource("page", "page", ScopeType::Names)
        .compensated_by(ToolId::new("undo").expect("an id"))
        .set_to(MapBuilder::new().uint("a", 1).finish())
        .defined_as(&MapBuilder::new().text("name", "echo").finish());
    whole.wall_ms_max = Some(1);
    let policy: PolicyObject = object_of(&WithinToken);
    let all = [
        Object::token(log.token_id(), log.token()),
        Object::manifest(&manifest),
        Object::manifest(&whole),
        Object::tools(&ToolsObject { tools: Vec::new() }),
        Object::policy(&policy),
        Object::snapshot(&Snapshot::genesis(agent())),
    ];
    for object in &all {
        add(named, "named by its hash", object, true);
        add(formed, "of its form", object, true);
        let other = ObjectId::from_bytes([1; 32]);
        add(named, "another name", &Object { id: other, ..object.clone() }, false);
        for wrong in all.iter().filter(|wrong| wrong.kind != object.kind) {
            add(
                named,
                "the name of another kind",
                &Object { kind: wrong.kind, ..object.clone() },
                false,
            );
        }
        let mut longer = object.bytes.clone();
        longer.push(0);
        let id = Object { bytes: longer, ..object.clone() };
        add(formed, "a byte more", &id, false);
    }
}

fn vault(cases: &mut Cases) {
    let mut row = |requirement, comment: &str, bytes: &[u8], valid| {
        assert_eq!(VaultEntry::from_row(bytes).is_some(), valid, "{requirement} {comment}");
        let of = Of(requirement, "what was erased is shown, or what is there is not");
        cases.add(of, valid, comment, json!({"kind": "row", "bytes": hex(bytes)}));
    };
    let args = args().into_bytes();
    let before =
        VaultEntry { salts: Some(salts()), args: Some(args.clone()), ..VaultEntry::default() };
    let after = VaultEntry { result: Some(args.clone()), ..VaultEntry::default() };
    let text =
        |len: usize| VaultText { salt: salts().args, field: 5, text: "x".repeat(len).into() };
    let texts = |texts| VaultEntry { texts, ..VaultEntry::default() }.to_row();
    let path = Canonical::check(unhex("8261611903e8"), Profile::DATA).expect("a path");
    let piece = ArgsPiece::Part(Seq::new(70_000), path);
    let pieces =
        |count| VaultEntry { pieces: vec![piece.clone(); count], ..VaultEntry::default() }.to_row();
    let whole = before.to_row();
    for (requirement, row_of) in
        [("SYSCAP-VLT-001", &before), ("SYSCAP-VLT-002", &after), ("SYSCAP-VLT-005", &before)]
    {
        row(requirement, "of a call", &row_of.to_row(), true);
    }
    row("SYSCAP-VLT-001", "version 3", &[&whole[..1], &[3], &whole[2..]].concat(), false);
    row("SYSCAP-VLT-001", "a key's id", &[&whole[..2], &[0x40], &whole[3..]].concat(), false);
    row("SYSCAP-VLT-001", "a byte more", &[&whole[..], &[0]].concat(), false);
    let payload = |digits: &str| {
        let inner = unhex(digits);
        let mut encoder = Encoder::new();
        encoder.array(5);
        encoder.uint(1);
        (0..3).for_each(|_| encoder.null());
        encoder.bytes(&inner);
        encoder.into_bytes()
    };
    row("SYSCAP-VLT-002", "nothing", &payload("a401f602f603f60480"), true);
    for (comment, digits) in [
        ("three keys", "a301f602f603f6"),
        ("a key more", "a501f602f603f6048005f6"),
        ("salts of another form", "a4018002f603f60480"),
        ("no list of texts", "a401f602f603f604f6"),
    ] {
        row("SYSCAP-VLT-002", comment, &payload(digits), false);
    }
    row("SYSCAP-VLT-003", "one piece", &pieces(1), true);
    row("SYSCAP-VLT-003", "33 pieces", &pieces(33), true);
    row("SYSCAP-VLT-003", "34 pieces", &pieces(34), false);
    row("SYSCAP-VLT-004", "a text as long as may be", &texts(vec![text(4_096)]), true);
    row("SYSCAP-VLT-004", "a byte longer", &texts(vec![text(4_097)]), false);
    row("SYSCAP-VLT-004", "128 texts", &texts(vec![text(1); 128]), true);
    row("SYSCAP-VLT-004", "129 texts", &texts(vec![text(1); 129]), false);
    row("SYSCAP-VLT-005", "no array", &unhex("a0"), false);
}

fn trust(cases: &mut Cases) {
    let of = Of("SYSCAP-TRUST-001", "a log of somebody else's keys passes");
    let log = Log::example();
    let good =
        Trust::new(log.home, Roles::new(Role::IN_USE.map(|role| public(seed(role))))).to_bytes();
    let older = [&good[..2], &[1], &good[3..]].concat();
    for (comment, bytes, valid) in [
        ("version 2", good.clone(), true),
        ("version 1", older, false),
        ("a byte more", [&good[..], &[0]].concat(), false),
    ] {
        assert_eq!(Trust::from_bytes(&bytes).is_ok(), valid, "{comment}");
        shape(cases, of, comment, "Trust", &bytes, valid);
    }
    // A record at its limit, and one more byte.
    let of = Of("SYSCAP-REC-002", "a record is written that no verifier takes");
    let genesis = Record::decode(&log.records[0]).expect("a record");
    let with = |len: usize| {
        let mut record = genesis.clone();
        if let syscap_format::Body::Genesis(genesis) = &mut record.body {
            genesis.origin = "x".repeat(len).into();
        }
        record.encode()
    };
    let room = 65_535 - with(60_000).len() + 60_000;
    for (len, valid) in [(room, true), (room + 1, false)] {
        let bytes = with(len);
        assert_eq!(bytes.len() <= 65_535, valid);
        cases.add(of, valid, "", json!({"kind": "record", "bytes": hex(&bytes)}));
    }
}
