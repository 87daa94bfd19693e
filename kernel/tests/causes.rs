//! A freeze or a policy with a reason: the text beside it is the one that the signed body commits to.

use kernel_support::driver::kin::{World, world};
use kernel_support::driver::log::Log;
use kernel_support::driver::{Driver, agent, key};
use syscap_format::{
    Body, ControlBody, Freeze, FreezeBecause, PolicyBecause, PolicyChange, Reason, Record,
    RecordKind, Role, Salt, Seq, VaultText,
};
use syscap_kernel::{Event, WithRows, record_at, vault_entry};

fn text(field: u64, text: &str) -> VaultText {
    VaultText { salt: Salt::from_bytes([3; 32]), field, text: text.into() }
}

/// Submits a body with that text beside it; the record, or why it was refused.
fn submit<B: ControlBody>(
    driver: &mut World,
    role: Role,
    body: &B,
    text: Option<VaultText>,
) -> Result<Record, Reason> {
    let control = driver.sign(&key(role), B::KIND, body.to_bytes());
    let ticket = driver.ticket();
    driver.event(match B::KIND {
        RecordKind::Policy => Event::Policy(ticket, control, None, Vec::new(), text),
        kind => Event::Control(ticket, kind, control, None, text),
    });
    driver.flush();
    driver.acked(ticket).map_err(|why| why.reason())?;
    let seq = driver.kernel.head().seq;
    Ok(Record::decode(&record_at(&mut driver.store, seq).unwrap().unwrap()).unwrap())
}

#[test]
fn reason_is_the_text_that_its_event_commits_to() {
    let mut driver = world();
    let why = text(FreezeBecause::CAUSE, "a fire");
    let freeze = FreezeBecause::new(Freeze::agent(&agent("ada")), why.hash());
    let bad = Err(Reason::BadControl);
    for other in [text(FreezeBecause::CAUSE, "another"), text(5, "a fire")] {
        assert_eq!(submit(&mut driver, Role::Revoker, &freeze, Some(other)), bad);
        assert!(driver.kernel.frozen().is_empty());
    }
    let plain = Freeze::agent(&agent("ada"));
    assert_eq!(submit(&mut driver, Role::Revoker, &plain, Some(why.clone())), bad);
    // With its text, and without one, which counts as erased.
    let record = submit(&mut driver, Role::Revoker, &freeze, Some(why)).unwrap();
    assert!(matches!(record.body, Body::FreezeBecause(_)));
    assert_eq!(texts(&mut driver, record.seq), ["a fire"]);
    assert!(WithRows::find(&mut driver.store, &[record.seq]).unwrap().is_ok());
    let record = submit(&mut driver, Role::Revoker, &freeze, None).unwrap();
    assert_eq!(texts(&mut driver, record.seq), [""; 0]);
    assert_eq!(driver.kernel.frozen(), std::slice::from_ref(&plain));
    // Its end is the operator's, with a reason, too.
    let thaw = FreezeBecause::new(plain.clone().thaw(), text(4, "over").hash());
    let refused = submit(&mut driver, Role::Revoker, &thaw, None);
    assert_eq!(refused, Err(Reason::BadSignature));
    submit(&mut driver, Role::Operator, &thaw, Some(text(4, "over"))).unwrap();
    assert!(driver.kernel.frozen().is_empty());
    // A record without a reason is of the kind's own version, and has no row.
    let record = submit(&mut driver, Role::Revoker, &plain, None).unwrap();
    assert!(matches!(record.body, Body::Freeze(_)));
    assert!(WithRows::find(&mut driver.store, &[record.seq]).unwrap().is_err());
    let policy = driver.kernel.policy_hash().unwrap();
    let why = text(PolicyBecause::CAUSE, "as before");
    let because = PolicyBecause::new(PolicyChange { policy, shadow: None }, why.hash());
    assert_eq!(submit(&mut driver, Role::Policy, &because, Some(text(3, "other"))), bad);
    let record = submit(&mut driver, Role::Policy, &because, Some(why)).unwrap();
    assert!(matches!(record.body, Body::PolicyBecause(_)));
    assert_eq!(texts(&mut driver, record.seq), ["as before"]);
    // What is known is what the log makes again, and the log is sound.
    driver.shutdown();
    driver.flush();
    let live = kernel_support::history::sound::seen(&driver.kernel);
    let reading = driver.reading;
    let store = driver.crash();
    assert_eq!(Log::of(&store).faults(), []);
    let again = Driver::open(store, reading, 0).unwrap();
    assert_eq!(kernel_support::history::sound::seen(&again.kernel), live);
}

fn texts(driver: &mut World, seq: Seq) -> Vec<String> {
    let entry = vault_entry(&mut driver.store, seq, seq).unwrap();
    entry.texts.into_iter().map(|text| text.text.to_string()).collect()
}
