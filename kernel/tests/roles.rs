//! The keys of the roles: how many must sign, who gives them, what a recovery key can do.

use ed25519_dalek::{Signer as _, SigningKey};
use kernel_support::FromStore;
use kernel_support::fault::{FaultPoint, FaultStore};
use kernel_support::sim::{self, Sim, home, key, ok, records};
use syscap_audit::MemoryStore;
use syscap_format::{
    Algorithm, Body, CONTROL_CONTEXT, Control, ControlBody, Durability, Freeze, FreezeChange,
    FreezeTarget, Head, HomeLimits, KeyChange, POSSESSION_CONTEXT, PolicyChange, Possession,
    PublicKey, ROLE_KEYS_MAX, Reason, RecordKind, Refused, Role, RoleKey, RoleSet, Seq, Signature,
    Signed, ToolsChange, possession, preimage, recovery_hash,
};
use syscap_kernel::{Ack, Anchor, Event, Kernel, NewHome, Ticket, ToolsDelta};
use syscap_verify::{Extent, Options, verify};

fn seeded(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn public(key: &SigningKey) -> PublicKey {
    PublicKey::new(key.verifying_key().to_bytes()).unwrap()
}

fn sign(key: &SigningKey, context: &[u8], message: &[u8]) -> Signature {
    Signature::from_bytes(key.sign(&preimage(context, message)).to_bytes())
}

/// A set of keys for a role, with a proof for each of `new`.
fn change(
    sim: &Sim,
    role: Role,
    keys: &[&SigningKey],
    threshold: u64,
    new: &[&SigningKey],
) -> KeyChange {
    let mut sorted: Vec<PublicKey> = keys.iter().map(|key| public(key)).collect();
    sorted.sort_unstable();
    let algorithm = Algorithm::Ed25519;
    let keys = sorted.into_iter().map(|key| RoleKey { algorithm, key }).collect();
    let set = RoleSet { role, threshold, keys };
    let home = sim.kernel.home();
    let prove = |key: &&SigningKey| Possession {
        key: public(key),
        signature: sign(key, POSSESSION_CONTEXT, &possession(&home, role, &public(key))),
    };
    let mut proofs: Vec<Possession> = new.iter().map(prove).collect();
    proofs.sort_by_key(|proof| proof.key);
    KeyChange { set, proofs, cut_off: None }
}

/// An event with the signatures of some keys, in the order that it must have.
fn event<B: ControlBody>(sim: &mut Sim, keys: &[&SigningKey], body: &B) -> Control {
    sim.commit();
    let head = sim.kernel.durable().unwrap();
    event_over(sim, head, keys, body)
}

fn event_over<B: ControlBody>(sim: &Sim, head: Head, keys: &[&SigningKey], body: &B) -> Control {
    let (home, body) = (sim.kernel.home(), body.to_bytes());
    let signed = |key: &&SigningKey| {
        let (counter, key_of) = (sim.kernel.counter(&public(key)) + 1, public(key));
        let message = Control::message(&home, &head, &key_of, counter, B::KIND, &body);
        Signed { key: key_of, counter, signature: sign(key, CONTROL_CONTEXT, &message) }
    };
    let mut signatures: Vec<Signed> = keys.iter().map(signed).collect();
    signatures.sort_by_key(|signed| signed.key);
    Control { head, body, signatures }
}

fn submit(sim: &mut Sim, kind: RecordKind, control: Control) -> Result<Seq, Refused> {
    let ticket = sim.ticket();
    sim.event(Event::Control(ticket, kind, control, None, None));
    sim.commit();
    match sim.acked(ticket).unwrap().clone()? {
        Ack::Recorded(seq) => Ok(seq),
        other => panic!("{other:?}"),
    }
}

fn send<B: ControlBody>(sim: &mut Sim, keys: &[&SigningKey], body: &B) -> Result<Seq, Reason> {
    let control = event(sim, keys, body);
    submit(sim, B::KIND, control).map_err(|refused| refused.reason())
}

fn freeze(change: FreezeChange) -> Freeze {
    Freeze { target: FreezeTarget::Kernel, name: Box::from(""), change }
}

/// The log is sound, and opens again with all its keys.
fn sound(sim: &mut Sim) {
    sim.commit();
    let mut source = FromStore(&mut sim.store);
    let report = verify(&mut source, Extent::AtRest, &Options::default()).unwrap();
    assert_eq!(report.findings, []);
    let again = Kernel::open(&mut sim.store, sim::parts(&sim.world), &Anchor::default()).unwrap();
    assert_eq!(again.state_image(), sim.kernel.state_image());
}

/// A stop is easy, and to go on is the operator's: the revoker's key is never sealed. Homes that
/// were made before are as they were.
#[test]
fn role_that_unfreezes_is_fixed_at_creation() {
    for (thaws, may, may_not) in [
        (Some(Role::Operator), Role::Operator, Role::Revoker),
        (None, Role::Revoker, Role::Operator),
    ] {
        let nowhere = FaultStore::new(MemoryStore::new(), FaultPoint::Nowhere);
        let mut sim = Sim::with_limits(nowhere, HomeLimits { thaws, ..HomeLimits::default() });
        let (on, off) = (freeze(FreezeChange::Freeze), freeze(FreezeChange::Thaw));
        assert_eq!(send(&mut sim, &[&key(Role::Operator)], &on), Err(Reason::BadSignature));
        send(&mut sim, &[&key(Role::Revoker)], &on).unwrap();
        assert_eq!(send(&mut sim, &[&key(may_not)], &off), Err(Reason::BadSignature));
        assert_eq!(sim.kernel.frozen().len(), 1, "{may_not}");
        send(&mut sim, &[&key(may)], &off).unwrap();
        assert!(sim.kernel.frozen().is_empty(), "{may}");
        sound(&mut sim);
    }
}

#[test]
fn as_many_keys_sign_as_the_role_asks_for() {
    let mut sim = home();
    let (one, two, three) = (seeded(41), seeded(42), seeded(43));
    let operator = key(Role::Operator);
    let set = change(&sim, Role::Revoker, &[&one, &two, &three], 2, &[&one, &two, &three]);
    send(&mut sim, &[&operator], &set).unwrap();
    let on = freeze(FreezeChange::Freeze);
    assert_eq!(send(&mut sim, &[&one], &on), Err(Reason::BadSignature));
    assert_eq!(send(&mut sim, &[&key(Role::Revoker), &one], &on), Err(Reason::BadSignature));
    // One key twice is one key.
    let mut twice = event(&mut sim, &[&one, &two], &on);
    twice.signatures[1] = twice.signatures[0].clone();
    assert_eq!(
        submit(&mut sim, RecordKind::Freeze, twice).unwrap_err().reason(),
        Reason::BadControl
    );
    // Of two signatures one that does not verify is as good as none.
    let mut forged = event(&mut sim, &[&one, &two], &on);
    forged.signatures[1].signature = Signature::from_bytes([0; 64]);
    assert_eq!(
        submit(&mut sim, RecordKind::Freeze, forged).unwrap_err().reason(),
        Reason::BadSignature
    );
    assert!(sim.kernel.frozen().is_empty());
    send(&mut sim, &[&three, &one], &on).unwrap();
    assert_eq!(sim.kernel.frozen().len(), 1);
    send(&mut sim, &[&two, &one, &three], &on).unwrap();
    send(&mut sim, &[&operator], &freeze(FreezeChange::Thaw)).unwrap();
    assert!(sim.kernel.frozen().is_empty());
    sound(&mut sim);
}

#[test]
fn a_set_of_keys_keeps_to_its_rules() {
    let mut sim = home();
    let (operator, one, two) = (key(Role::Operator), seeded(41), seeded(42));
    let good = change(&sim, Role::Policy, &[&one, &two], 1, &[&one, &two]);
    let bad = |edit: &dyn Fn(&mut KeyChange)| {
        let mut changed = good.clone();
        edit(&mut changed);
        changed
    };
    let many: Vec<SigningKey> = (100..=116).map(seeded).collect();
    let many: Vec<&SigningKey> = many.iter().collect();
    assert_eq!(many.len(), ROLE_KEYS_MAX + 1);
    let (form, proof) = (Reason::BadControl, Reason::BadSignature);
    let cases = [
        ("no key", bad(&|change| change.set.keys.clear()), form),
        ("nobody must sign", bad(&|change| change.set.threshold = 0), form),
        ("more than there are", bad(&|change| change.set.threshold = 3), form),
        ("out of order", bad(&|change| change.set.keys.reverse()), form),
        ("a cut-off of another role", bad(&|change| change.cut_off = Some(Seq::new(1))), form),
        ("a reserved role", bad(&|change| change.set.role = Role::Publisher), form),
        ("too many keys", change(&sim, Role::Policy, &many, 1, &many), form),
        ("two issuers at once", change(&sim, Role::Issuer, &[&one, &two], 2, &[&one, &two]), form),
        ("a proof missing", bad(&|change| change.proofs.truncate(1)), proof),
        ("proofs out of order", bad(&|change| change.proofs.reverse()), proof),
        (
            "of another role",
            {
                let other = change(&sim, Role::Approver, &[&one, &two], 1, &[&one, &two]);
                bad(&|change| change.proofs = other.proofs.clone())
            },
            proof,
        ),
        (
            "of a key that is none of them",
            {
                let all = [&one, &two, &operator];
                change(&sim, Role::Policy, &[&one, &two], 1, &all)
            },
            proof,
        ),
    ];
    for (what, change, reason) in cases {
        assert_eq!(send(&mut sim, &[&operator], &change), Err(reason), "{what}");
    }
    send(&mut sim, &[&operator], &good).unwrap();
    // A key that the role has needs no proof again.
    let fewer = change(&sim, Role::Policy, &[&two], 1, &[]);
    send(&mut sim, &[&operator], &fewer).unwrap();
    sound(&mut sim);
}

/// Tokens by a key that was cut off end, those from before and those by other keys don't.
#[test]
fn a_cut_off_ends_what_the_key_issued_after_it() {
    let mut sim = home();
    let before = sim.issue("a0", 10, 10, 1_000_000);
    sim.commit();
    let cut_off = sim.kernel.durable().unwrap().seq;
    let after = sim.issue("a1", 10, 10, 1_000_000);
    sim.commit();
    let (operator, new) = (key(Role::Operator), seeded(41));
    let mut change = change(&sim, Role::Issuer, &[&new], 1, &[&new]);
    change.cut_off = Some(sim.kernel.durable().unwrap().seq.next());
    assert_eq!(send(&mut sim, &[&operator], &change), Err(Reason::BadControl), "not yet");
    change.cut_off = Some(cut_off);
    send(&mut sim, &[&operator], &change).unwrap();
    let revoked = |sim: &Sim, token| sim.kernel.token(&token).unwrap().revoked;
    assert_eq!((revoked(&sim, before), revoked(&sim, after)), (false, true));
    sim.open("a0", before);
    sim.open("a1", after);
    sim.commit();
    let (live, ended) = (sim.sessions[0], sim.sessions[1]);
    ok(&mut sim, live);
    let call = r#"{"tool_id": "look", "args": {"at": 1}}"#;
    sim::refused_with(&mut sim, ended, call, Reason::Revoked);
    sound(&mut sim);
}

/// A home with a recovery key, of seed 90.
fn recoverable() -> Sim {
    let mut sim = Sim::new(FaultStore::new(MemoryStore::new(), FaultPoint::Nowhere));
    let new = NewHome {
        entropy: [8; 32],
        origin: Box::from("sim"),
        limits: HomeLimits::default(),
        durability: Durability::Memory,
        roles: sim::roles(),
        recovery: Some(recovery_hash(&public(&seeded(90)))),
    };
    sim.store = FaultStore::new(MemoryStore::new(), FaultPoint::Nowhere);
    sim.kernel = Kernel::create(new, sim::parts(&sim.world), sim.reading()).unwrap();
    sim.boot();
    sim
}

/// Who has stolen the operator's key gives every role a key of its own; the owner takes them back.
#[test]
fn a_thief_of_the_operators_key_locks_nobody_out_for_good() {
    let mut sim = recoverable();
    let (thief, operator) = (seeded(66), key(Role::Operator));
    for role in [Role::Revoker, Role::Operator] {
        let stolen = change(&sim, role, &[&thief], 1, &[&thief]);
        send(&mut sim, &[&operator], &stolen).unwrap();
    }
    let (recovery, mine) = (seeded(90), seeded(91));
    let back = change(&sim, Role::Operator, &[&mine], 1, &[&mine]);
    assert_eq!(send(&mut sim, &[&operator], &back), Err(Reason::BadSignature), "locked out");
    assert_eq!(send(&mut sim, &[&seeded(92)], &back), Err(Reason::BadSignature), "nobody's key");
    // The recovery key signs alone, and nothing but keys.
    assert_eq!(send(&mut sim, &[&recovery, &thief], &back), Err(Reason::BadSignature));
    let on = freeze(FreezeChange::Freeze);
    assert_eq!(send(&mut sim, &[&recovery], &on), Err(Reason::BadSignature));
    send(&mut sim, &[&recovery], &back).unwrap();
    assert_eq!(send(&mut sim, &[&thief], &back), Err(Reason::BadSignature), "the thief is out");
    let revoker = change(&sim, Role::Revoker, &[&mine], 1, &[&mine]);
    send(&mut sim, &[&mine], &revoker).unwrap();
    send(&mut sim, &[&mine], &on).unwrap();
    assert!(records(&mut sim).iter().any(|record| matches!(record.body, Body::Key(_))));
    sound(&mut sim);
}

/// Each event that replaces something whole names a head from after the last one that did so, also
/// where another key signed that: what one operator adds no other takes away unseen.
#[test]
fn replacement_without_the_last_head_is_refused() {
    let mut sim = recoverable();
    let (one, two, three) = (key(Role::Operator), seeded(51), seeded(52));
    let policies = (key(Role::Policy), seeded(53));
    let both = change(&sim, Role::Operator, &[&one, &two], 1, &[&two]);
    send(&mut sim, &[&one], &both).unwrap();
    let both = change(&sim, Role::Policy, &[&policies.0, &policies.1], 1, &[&policies.1]);
    send(&mut sim, &[&one], &both).unwrap();
    let before = sim.kernel.durable().unwrap();

    // Keys, of the role that was changed since; those of another one were not.
    let adds = change(&sim, Role::Operator, &[&one, &two, &three], 1, &[&three]);
    send(&mut sim, &[&one], &adds).unwrap();
    let undoes = change(&sim, Role::Operator, &[&one, &two], 1, &[]);
    let stale = event_over(&sim, before, &[&two], &undoes);
    assert_eq!(submit(&mut sim, RecordKind::Key, stale).unwrap_err().reason(), Reason::StaleHead);
    let set = sim.kernel.roles().set(Role::Operator).unwrap().clone();
    assert!(set.holds(&public(&three)), "it was added, and stays");
    let other = change(&sim, Role::Revoker, &[&three], 1, &[&three]);
    let other = event_over(&sim, before, &[&two], &other);
    submit(&mut sim, RecordKind::Key, other).unwrap();

    // Tools.
    let before = sim.kernel.durable().unwrap();
    let tools = ToolsChange { tools: sim.kernel.registry_hash() };
    let made = |control, ticket| Event::Tools(ticket, control, None, ToolsDelta::default());
    let control = event(&mut sim, &[&one], &tools);
    replace(&mut sim, control, made).unwrap();
    let stale = event_over(&sim, before, &[&three], &tools);
    assert_eq!(replace(&mut sim, stale, made), Err(Reason::StaleHead));
    let control = event(&mut sim, &[&three], &tools);
    replace(&mut sim, control, made).unwrap();

    // Policies.
    let before = sim.kernel.durable().unwrap();
    let policy = PolicyChange { policy: sim.kernel.engine_hash(), shadow: None };
    let made = |control, ticket| Event::Policy(ticket, control, None, Vec::new(), None);
    let control = event(&mut sim, &[&policies.0], &policy);
    replace(&mut sim, control, made).unwrap();
    let stale = event_over(&sim, before, &[&policies.1], &policy);
    assert_eq!(replace(&mut sim, stale, made), Err(Reason::StaleHead));
    let control = event(&mut sim, &[&policies.1], &policy);
    replace(&mut sim, control, made).unwrap();

    // Whoever goes on changing keys does not keep the recovery key out.
    let back = change(&sim, Role::Operator, &[&seeded(91)], 1, &[&seeded(91)]);
    let back = event_over(&sim, before, &[&seeded(90)], &back);
    send(&mut sim, &[&three], &undoes).unwrap();
    submit(&mut sim, RecordKind::Key, back).unwrap();
    sound(&mut sim);
}

fn replace(
    sim: &mut Sim,
    control: Control,
    made: impl Fn(Control, Ticket) -> Event,
) -> Result<(), Reason> {
    let ticket = sim.ticket();
    sim.event(made(control, ticket));
    sim.commit();
    sim.acked(ticket).unwrap().clone().map(drop).map_err(|refused| refused.reason())
}

/// A home that was made without one takes no key for it.
#[test]
fn without_a_recovery_key_there_is_none() {
    let mut sim = home();
    let mine = seeded(91);
    let back = change(&sim, Role::Operator, &[&mine], 1, &[&mine]);
    assert_eq!(send(&mut sim, &[&seeded(90)], &back), Err(Reason::BadSignature));
}
