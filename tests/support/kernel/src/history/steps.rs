//! What bytes choose: a step of a simulated home, and the bytes of some histories.

use ed25519_dalek::{Signer as _, SigningKey};
use syscap_audit::MemoryStore;
use syscap_format::{
    AgentId, Amounts, ApprovalAnswer, Confidentiality, ConfigChange, ControlBody, CreditChange,
    Dimension, Freeze, FreezeChange, FreezeTarget, Grants, HomeLimits, Input, KeyChange, Label,
    Notify, POSSESSION_CONTEXT, Possession, PublicKey, Recovered, RedactBody, Resolution,
    Revocation, RevocationList, Rights, Role, RoleSet, Salt, Seq, Signature, Source, TokenId,
    ToolGrant, UnixMillis, VaultText, possession, preimage,
};
use syscap_kernel::{Event, Measured, Room, WithRows};

use super::bytes::Bytes;
use crate::fault::{FaultPoint, FaultStore};
use crate::sim::links::{self, PLACES};
use crate::sim::rule::Rule;
use crate::sim::tokens::rows;
use crate::sim::{self, Ending, Policed, Sim};

/// Bytes that look random, of a number.
pub fn stream(number: u64) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..400).map(|_| next()).collect()
}

/// A history, without what begins it, that has a record of each kind.
pub fn history() -> Vec<u8> {
    let spend = |key: u8| [7, 0, 15, 15, key << 4];
    let end = |how: u8| [36, how, 0];
    let reopen = [3, 0, 0, 47];
    let ask = [7, 0, 21, 21, 240, 47];
    let steps: [&[u8]; 31] = [
        &[25, 0, 200, 36, 0, 0, 47],
        &spend(0),
        &[47],
        &end(0),
        &[47],
        // The same again; and one that comes back late.
        &spend(0),
        &spend(1),
        &[47],
        &end(10),
        &[45, 47],
        // A change of the agent's state, by the agent.
        &[30, 0, 1, 255, 0],
        // A freeze of an agent, and its end.
        &[54, 0, 1, 54, 200, 1, 47],
        // What a person is asked, the answer, and the call that takes it up.
        &ask,
        &[52, 0, 0, 47],
        &ask,
        &[47],
        &end(0),
        // What the host charges, the time that an operator confirms, an issuer's second key.
        &[58, 0, 1, 0, 5, 57, 5, 0, 55, 0, 1, 0, 100, 100, 47],
        // What a user says.
        &[79, 0, 0, 0, 47],
        // A flood of what is no call, and the tick that counts it.
        &[29, 0, 0, 0].repeat(80),
        &[61, 255, 255, 0, 0, 60, 0, 47],
        // What is erased.
        &[106, 0, 3, 47],
        // What an agent is given.
        &[57, 0, 255, 1, 200, 47],
        // A link, what it leads to, and the answer.
        &[67, 0, 1, 64, 0, 0, 255, 68, 0, 0, 47],
        // A revocation between an intent that is on its way and its run.
        &[7, 1, 5, 5, 240, 71, 53, 1, 0, 75, 78, 47],
        // A call is cancelled in its run.
        &[7, 0, 5, 5, 240, 47, 53, 0, 232, 0, 0, 0, 36, 0, 0, 47],
        // The process dies in a run, comes back, ends in order, and comes back.
        &[7, 0, 5, 5, 240, 47, 62, 200],
        &reopen,
        &[62, 0],
        &reopen,
        &stream(1),
    ];
    steps.concat()
}

/// A home with two agents that have something to spend; its store may fail.
pub fn begin(input: &mut Bytes<'_>) -> Sim {
    let first = input.byte();
    let probes = first % 2 == 1;
    let point = match first {
        0..=143 => FaultPoint::Nowhere,
        n @ 144..=171 => FaultPoint::Replaced(u64::from(n) - 140),
        n @ 172..=199 => FaultPoint::Busy(u64::from(n) - 168),
        n @ 200..=227 => FaultPoint::Before(u64::from(n) - 196),
        n => FaultPoint::After(u64::from(n) - 224),
    };
    let store = FaultStore::new(MemoryStore::new(), point);
    let mut sim = Sim::with(store, HomeLimits::default(), Policed::ByRule);
    sim.world.lock().unwrap().probes = probes;
    sim.paths = links::scope(Rights::READ.union(Rights::FOLLOW), Rights::NONE);
    for agent in ["a0", "a1"] {
        if sim.kernel.halted().is_none() {
            let token = sim.issue(agent, 60, 200, 10_000_000);
            sim.open(agent, token);
        }
    }
    if sim.kernel.halted().is_none() {
        sim.commit();
    }
    sim
}

/// The process dies, and another one goes on.
fn restart(sim: &mut Sim) {
    sim.crash().unwrap();
    sim.boot();
}

/// What the next bytes choose.
pub fn step(sim: &mut Sim, input: &mut Bytes<'_>) {
    match input.byte() % 128 {
        0..=2 => issue(sim, input),
        3..=6 => open(sim, input),
        7..=15 => call(sim, input, spend),
        16..=24 => call(sim, input, trim),
        25..=28 => call(sim, input, look),
        29 => call(sim, input, |_, input| String::from_utf8_lossy(input.part()).into_owned()),
        30..=34 => propose(sim, input),
        35 => drop(sim.rule(rule(input), (input.byte() < 128).then(|| rule(input)))),
        36..=44 => {
            let endings = [Ending::Runs, Ending::Panics, Ending::TimesOut, Ending::Dropped];
            let ending = endings[input.below(12).saturating_sub(8)];
            sim.end_job(input.below(6), ending);
        }
        45..=46 => {
            if let Some(ran) = sim.late.pop() {
                sim.event(Event::Ran(ran, Measured::default()));
            }
        }
        47..=50 => sim.commit(),
        51 => derive(sim, input),
        52 => answer(sim, input),
        53 => revoke(sim, input),
        54 => freeze(sim, input),
        55 => keys(sim, input),
        56 => resolve(sim, input),
        57 => confirm(sim, input),
        58 => charge(sim, input),
        59 => close(sim, input),
        60 => {
            let room = if input.byte() < 200 { Room::Enough } else { Room::Reserve };
            sim.event(Event::Room(room));
            sim.event(Event::Tick);
        }
        61 => {
            let ahead = i64::from(input.pair()) - 8_192;
            sim.wall = sim.wall.saturating_add_signed(ahead.saturating_mul(100));
            sim.boottime += u64::from(input.pair());
        }
        62 => {
            if input.byte() < 128 {
                let ticket = sim.ticket();
                sim.event(Event::Shutdown(ticket));
                sim.commit();
            }
            if !sim.store.is_down() {
                restart(sim);
            }
        }
        63 => wire(sim, input),
        64..=66 => call(sim, input, walk),
        67 => {
            let (from, to) = (place(input), place(input));
            sim.world.lock().unwrap().links.insert(from, to);
        }
        68..=70 => {
            let ending = if input.byte() < 224 { Ending::Runs } else { Ending::Panics };
            sim.end_lookup(input.below(6), ending);
        }
        // A commit in its parts, so that others come between them.
        71..=74 => sim.take(),
        75..=77 => sim.write(),
        78 => sim.tell(),
        79 => heard(sim, input),
        80..=85 => derive_from_newest(sim, input),
        86..=88 => renew(sim, input),
        89..=91 => ask(sim, input),
        92..=99 => answer_with_terms(sim, input),
        100 => drop(sim.rule(rule(input), Some(rule(input)))),
        101..=102 => call(sim, input, bad),
        103 => {
            if let Some((token, _)) = sim.tokens.get(input.below(sim.tokens.len())).copied() {
                sim.list(token);
            }
        }
        104 => drop(sim.give(&agent(input), 20 + 2 * u64::from(input.byte()))),
        105 | 107 => sim.commit(),
        106 => erase(sim, input),
        108 => {
            let (agent, within) = (agent(input), u64::from(input.pair()) + 1);
            sim.lease(&agent, u64::from(input.byte() % 40), u64::from(input.byte() % 60), within);
        }
        109..=111 => open(sim, input),
        _ => call(sim, input, again),
    }
}

fn rule(input: &mut Bytes<'_>) -> u8 {
    input.byte() % Rule::ALL.end
}

fn agent(input: &mut Bytes<'_>) -> String {
    format!("a{}", input.below(3))
}

fn session(sim: &Sim, input: &mut Bytes<'_>) -> Option<Seq> {
    // Now and then one that there is not.
    match input.byte() {
        255 => Some(Seq::new(u64::from(input.byte()))),
        place => sim.sessions.get(usize::from(place) % sim.sessions.len().max(1)).copied(),
    }
}

fn issue(sim: &mut Sim, input: &mut Bytes<'_>) {
    let (agent, calls, units) = (agent(input), input.byte() % 40, input.byte() % 60);
    sim.issue(&agent, calls.into(), units.into(), u64::from(input.pair()) + 1);
}

fn derive(sim: &mut Sim, input: &mut Bytes<'_>) {
    let (calls, units) = (input.byte() % 40, input.byte() % 60);
    if let Some((token, _)) = sim.tokens.get(input.below(sim.tokens.len())).copied() {
        sim.derive(token, calls.into(), units.into(), u64::from(input.pair()) + 1);
    }
}

/// Of the last ones: so that there are children of children.
fn derive_from_newest(sim: &mut Sim, input: &mut Bytes<'_>) {
    let (calls, units) = (input.byte() % 40, input.byte() % 60);
    if let Some((token, _)) = sim.tokens.iter().rev().nth(input.below(3)).copied() {
        sim.derive(token, calls.into(), units.into(), u64::from(input.pair()) + 1);
    }
}

fn renew(sim: &mut Sim, input: &mut Bytes<'_>) {
    let (calls, units) = (10 + input.byte() % 30, 10 + input.byte() % 50);
    let Some((old, _)) = sim.tokens.iter().rev().nth(input.below(6)).copied() else { return };
    sim.renew(old, calls.into(), units.into());
    // Its keys are the other's, too.
    if let Some((new, _)) = sim.tokens.last().copied()
        && let Some(agent) = sim.kernel.token(&new).map(|view| view.body.agent.to_string())
    {
        sim.open(&agent, new);
    }
}

/// A call that is asked about, as often alike as it takes until somebody has answered.
fn ask(sim: &mut Sim, input: &mut Bytes<'_>) {
    if let Some(session) = sim.sessions.get(input.below(2)).copied() {
        let args = r#"{"units": 21, "tries": 21, "credits": 1}"#;
        sim.submit_json(session, &format!(r#"{{"tool_id": "spend", "args": {args}}}"#));
    }
}

/// A request or a standing approval is answered, by all terms that there are.
fn answer_with_terms(sim: &mut Sim, input: &mut Bytes<'_>) {
    let waiting = sim.kernel.asks().map(|found| (found.leaf, found.tool));
    let sets = sim.kernel.sets().map(|found| (found.leaf, found.tool));
    let all: Vec<_> = waiting.chain(sets).collect();
    let Some((leaf, tool)) = all.get(input.below(all.len())) else { return };
    let until = Some(sim.kernel.now().plus(20_000));
    let rows = Grants::new().with(tool.clone(), ToolGrant::new().with("row", rows(0, 2)));
    let (answer, terms) = match input.byte() % 12 {
        0 => (ApprovalAnswer::Deny, (None, None, None)),
        1 | 2 => (ApprovalAnswer::Once, (None, None, None)),
        3 => (ApprovalAnswer::Set, (Some(2), None, None)),
        4 => (ApprovalAnswer::Set, (Some(3), None, until)),
        5 => (ApprovalAnswer::Set, (Some(0), None, until)),
        6 => (ApprovalAnswer::Set, (Some(0), Some(rows), until)),
        _ => (ApprovalAnswer::Set, (Some(4), Some(rows), until)),
    };
    sim.answer_set(*leaf, answer, terms, Role::Approver);
}

/// A call with a key that most likely was made before.
fn again(_: &Sim, input: &mut Bytes<'_>) -> String {
    let key = input.byte() % 2;
    let units = key + 12;
    let args = format!(r#"{{"units": {units}, "tries": {units}, "credits": 1}}"#);
    format!(r#"{{"tool_id": "spend", "args": {args}, "idempotency_key": "k{key}"}}"#)
}

fn bad(_: &Sim, input: &mut Bytes<'_>) -> String {
    const BAD: [&str; 8] = [
        "",
        "{",
        r#"{"tool_id": "look", "tool_id": "look", "args": {}}"#,
        r#"{"tool_id": "nothing", "args": {}}"#,
        r#"{"tool_id": "look", "args": {"at": 1, "bcc": 2}}"#,
        r#"{"tool_id": "look", "args": {"at": 1}, "agent_id": "other"}"#,
        r#"{"tool_id": "look", "args": {"at": 1}, "v": 2}"#,
        r#"{"tool_id": "spend", "args": {"units": -1}}"#,
    ];
    BAD[input.below(BAD.len())].to_owned()
}

/// Mostly by who may.
fn answer(sim: &mut Sim, input: &mut Bytes<'_>) {
    let place = input.below(sim.kernel.asks().count());
    let Some(leaf) = sim.kernel.asks().nth(place).map(|ask| ask.leaf) else { return };
    let (said, role) = match input.byte() {
        0..=159 => (ApprovalAnswer::Once, Role::Approver),
        160..=223 => (ApprovalAnswer::Deny, Role::Approver),
        _ => (ApprovalAnswer::Once, Role::Operator),
    };
    sim.answer(leaf, said, role);
}

fn open(sim: &mut Sim, input: &mut Bytes<'_>) {
    let agent = agent(input);
    if let Some((token, _)) = sim.tokens.get(input.below(sim.tokens.len())).copied() {
        sim.open(&agent, token);
    }
}

fn call(sim: &mut Sim, input: &mut Bytes<'_>, write: fn(&Sim, &mut Bytes<'_>) -> String) {
    if let Some(session) = session(sim, input) {
        let envelope = write(sim, input);
        sim.submit_json(session, &envelope);
    }
}

fn spend(_: &Sim, input: &mut Bytes<'_>) -> String {
    let (units, tries) = (input.byte() % 30, input.byte() % 40);
    let odd = input.byte();
    let lost = if odd & 7 == 7 { r#", "lost": true"# } else { "" };
    let key = match odd >> 4 {
        key @ 0..=3 => format!(r#", "idempotency_key": "k{key}""#),
        _ => String::new(),
    };
    let credits = if odd & 8 == 8 { units % 4 } else { 0 };
    let args = format!(r#"{{"units": {units}, "tries": {tries}, "credits": {credits}{lost}}}"#);
    format!(r#"{{"tool_id": "spend", "args": {args}{key}}}"#)
}

fn trim(sim: &Sim, input: &mut Bytes<'_>) -> String {
    let units = input.byte() % 24;
    let lie = ["", "", r#", "greedy": true"#, r#", "long": true"#][input.below(4)];
    let named = match input.byte() {
        place @ 0..=159 => sim.snapshots.get(usize::from(place) % sim.snapshots.len().max(1)),
        _ => None,
    };
    let named = named.map_or(String::new(), |id| format!(r#", "state_snapshot_id": "{id}""#));
    format!(r#"{{"tool_id": "trim", "args": {{"units": {units}{lie}}}{named}}}"#)
}

fn look(_: &Sim, input: &mut Bytes<'_>) -> String {
    let at = match input.byte() {
        record @ 0..=100 => {
            format!(r#"{{"$ref": {{"record": {record}, "path": ["saw"]}}}}"#)
        }
        _ => r#"[1, "x"]"#.to_owned(),
    };
    format!(r#"{{"tool_id": "look", "args": {{"at": {at}}}}}"#)
}

fn place(input: &mut Bytes<'_>) -> String {
    PLACES[input.below(PLACES.len())].to_owned()
}

fn walk(_: &Sim, input: &mut Bytes<'_>) -> String {
    let at = place(input);
    let note = match input.byte() {
        record @ 0..=80 => format!(r#"{{"$ref": {{"record": {record}, "path": []}}}}"#),
        _ => "1".to_owned(),
    };
    format!(r#"{{"tool_id": "open", "args": {{"at": "{at}", "note": {note}}}}}"#)
}

/// Changes of a state, most of them sound for one writer or another.
const CHANGES: [&str; 12] = [
    r#"{"goal.aim": 1}"#,
    r#"{"goal.aim": 7}"#,
    r#"{"goal.aim": "high", "goal.b": [1, {"c": 2.5}]}"#,
    r#"{"goal.aim": null, "goal.b": 3}"#,
    r#"{"fact.seen": true, "fact.b": {"x": 1}}"#,
    r#"{"fact.seen": null}"#,
    r#"{"goal.aim": 2, "fact.seen": 1}"#,
    r#"{"policy.x": 1}"#,
    r#"{"goal.none": null}"#,
    r#"{"fact.seen": 2}"#,
    r#"{"goal.Bad": 1}"#,
    "[]",
];

fn propose(sim: &mut Sim, input: &mut Bytes<'_>) {
    let Some(session) = session(sim, input) else { return };
    let writer = Source::ALL[input.below(Source::ALL.len())];
    let base = match input.byte() {
        place @ 0..=80 => sim.snapshots.get(usize::from(place) % sim.snapshots.len().max(1)),
        _ => None,
    };
    let base = base.copied();
    sim.propose_from(session, writer, base, CHANGES[input.below(CHANGES.len())]);
}

fn signed<B: ControlBody>(sim: &mut Sim, body: &B) {
    let (control, ticket) = (sim.signed(body), sim.ticket());
    sim.event(Event::Control(ticket, B::KIND, control, None, None));
}

fn revoke(sim: &mut Sim, input: &mut Bytes<'_>) {
    let Some((token, _)) = sim.tokens.get(input.below(sim.tokens.len())).copied() else { return };
    let body = |sim: &Sim| sim.kernel.token(&token).map(|view| view.body.clone());
    match input.byte() {
        0..=159 => sim.revoke(token),
        160..=191 => {
            sim.end(&Revocation::children(token));
        }
        192..=223 => {
            let least = sim.kernel.epoch() + u64::from(input.byte() % 2);
            sim.end(&Revocation::epoch(least));
        }
        224..=231 => {
            if let Some(body) = body(sim) {
                let key = body.holder.unwrap_or(body.issuer);
                sim.end(&Revocation::key(key));
            }
        }
        n => cancel(sim, n % 2 == 0, input),
    }
}

/// A call is cancelled, by the revoker or by a session.
fn cancel(sim: &mut Sim, signed: bool, input: &mut Bytes<'_>) {
    let running: Vec<Seq> = sim.kernel.running().map(|(intent, ..)| intent).collect();
    let intent = match running.get(input.below(running.len().max(1))) {
        Some(intent) if input.byte() < 224 => *intent,
        _ => Seq::new(input.byte().into()),
    };
    match session(sim, input) {
        Some(session) if !signed => sim.cancel_by(session, intent),
        _ => sim.cancel(intent),
    };
}

fn freeze(sim: &mut Sim, input: &mut Bytes<'_>) {
    let change = if input.byte() < 80 { FreezeChange::Freeze } else { FreezeChange::Thaw };
    let (target, name) = [
        (FreezeTarget::Kernel, ""),
        (FreezeTarget::Agent, "a0"),
        (FreezeTarget::Tool, "spend"),
        (FreezeTarget::Tool, "no such tool"),
    ][input.below(4)];
    signed(sim, &Freeze { target, name: Box::from(name), change });
}

/// Rows are erased, of the last records that have any.
fn erase(sim: &mut Sim, input: &mut Bytes<'_>) {
    if sim.store.is_down() {
        return;
    }
    let with_rows = sim::records(sim).into_iter().rev();
    let with_rows = with_rows.filter(|record| record.body.may_have_row());
    let all: Vec<Seq> = with_rows.map(|record| record.seq).take(16).collect();
    let mut records: Vec<Seq> =
        (0..=input.below(3)).filter_map(|_| all.get(input.below(16)).copied()).collect();
    records.sort_unstable();
    records.dedup();
    let Ok(Ok(rows)) = WithRows::find(&mut sim.store, &records) else { return };
    let control = sim.signed(&RedactBody { records, cause: None });
    let ticket = sim.ticket();
    sim.event(Event::Redact(ticket, control, None, rows, None));
}

/// A role gets another key beside the simulator's, or instead of it: then that role is lost.
fn keys(sim: &mut Sim, input: &mut Bytes<'_>) {
    let role = Role::ALL[input.below(Role::ALL.len())];
    let new = SigningKey::from_bytes(&[input.byte() | 0x80; 32]);
    let key = PublicKey::new(new.verifying_key().to_bytes()).unwrap();
    let home = sim.kernel.home();
    let old = sim.kernel.roles().set(role).cloned();
    let stays = input.byte() < 224;
    let kept = old.iter().flat_map(|set| set.keys()).filter(|_| stays);
    let mut set = RoleSet::any_of(role, kept.chain([key]));
    set.threshold = if input.byte() < 16 { 2 } else { 1 };
    let message = preimage(POSSESSION_CONTEXT, &possession(&home, role, &key));
    let signature = Signature::from_bytes(new.sign(&message).to_bytes());
    let proofs = match old {
        Some(old) if old.holds(&key) => Vec::new(),
        _ => vec![Possession { key, signature }],
    };
    let cut_off = (input.byte() < 64).then(|| Seq::new(input.byte().into()));
    signed(sim, &KeyChange { set, proofs, cut_off });
}

fn resolve(sim: &mut Sim, input: &mut Bytes<'_>) {
    let intent = Seq::new(input.byte().into());
    let verdict = Recovered::ALL[input.below(Recovered::ALL.len())];
    signed(sim, &Resolution { intent, verdict });
}

fn confirm(sim: &mut Sim, input: &mut Bytes<'_>) {
    let at = UnixMillis::new(sim.wall.saturating_add(u64::from(input.byte()) * 1_000));
    match input.byte() {
        0..=211 => signed(sim, &ConfigChange { confirm_time: Some(at) }),
        212..=219 => {
            let (ceiling, limit_ms) = (Confidentiality::Internal, input.pair().into());
            signed(sim, &Notify { program: Box::from("/told"), ceiling, limit_ms });
        }
        220..=227 => {
            let tokens = sim.tokens.iter().take(input.below(3)).map(|(token, _)| *token);
            let mut tokens: Vec<_> =
                tokens.chain([TokenId::from_bytes([input.byte(); 32])]).collect();
            tokens.sort_unstable();
            let version = input.byte().into();
            signed(sim, &RevocationList { version, as_of: at, tokens, cause: None });
        }
        228..=231 => signed(sim, &ConfigChange { confirm_time: None }),
        _ => {
            let agent = AgentId::new(&agent(input)).unwrap();
            signed(sim, &CreditChange { agent, added: input.byte().into() });
        }
    }
}

fn charge(sim: &mut Sim, input: &mut Bytes<'_>) {
    let Some(session) = session(sim, input) else { return };
    let dimension = Dimension::ALL[input.below(Dimension::ALL.len())];
    let ticket = sim.ticket();
    let amounts = Amounts::ZERO.with(dimension, u64::from(input.pair()));
    sim.posted += amounts.get(Dimension::CreditsMicro);
    sim.event(Event::Charge(ticket, session, amounts));
}

fn heard(sim: &mut Sim, input: &mut Bytes<'_>) {
    let Some(session) = session(sim, input) else { return };
    let (salt, field) = (Salt::from_bytes([7; 32]), 12 + u64::from(input.byte() > 240));
    let text = VaultText { salt, field, text: Box::from("bees") };
    let agent = AgentId::new(&agent(input)).unwrap();
    let label = Label::UNTRUSTED;
    let said = Input { session, agent, text: text.hash(), label };
    let ticket = sim.ticket();
    sim.event(Event::Heard(ticket, Box::new(said), text));
}

fn close(sim: &mut Sim, input: &mut Bytes<'_>) {
    if let Some(session) = session(sim, input) {
        let ticket = sim.ticket();
        sim.event(Event::CloseSession(ticket, session));
    }
}

/// Something that is no token's wire, or one that was changed.
fn wire(sim: &mut Sim, input: &mut Bytes<'_>) {
    let body = sim.token_body("a0", syscap_format::Budget::none(), 1_000);
    let mut wire = Sim::wire(&body);
    let place = usize::from(input.pair()) % wire.len();
    wire[place] ^= input.byte();
    let ticket = sim.ticket();
    sim.event(Event::Issue(ticket, wire, None));
}
