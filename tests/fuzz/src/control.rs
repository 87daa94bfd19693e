//! Control documents: what is accepted has one encoding, and a signed one leaves the kernel going.

use syscap::format::{
    ConfigChange, ControlBody, CreditChange, DecodeError, Freeze, Item, KeyChange, Manifest,
    Object, ObjectId, ObjectKind, PolicyChange, PolicyObject, Profile, RecordKind, Resolution,
    Revocation, Role, Snapshot, ToolsChange, ToolsObject, Trust,
};
use syscap::kernel::{Event, ToolsDelta};

use super::{sim, sound};

pub fn control(data: &[u8]) {
    if let Some(change) = body::<KeyChange>(data) {
        let sim = sim::home();
        let before = sim.kernel.roles().set(change.set.role);
        let proved = before.is_some_and(|set| change.is_proved(&sim.kernel.home(), set));
        assert!(change.set.is_sound() || !proved);
    }
    body::<Revocation>(data);
    body::<Freeze>(data);
    body::<PolicyChange>(data);
    body::<ToolsChange>(data);
    body::<ConfigChange>(data);
    body::<Resolution>(data);
    body::<CreditChange>(data);
    objects(data);
    if let Some(trust) = one_encoding(data, Trust::from_bytes, Trust::to_bytes) {
        assert!(Role::IN_USE.iter().all(|role| trust.roles.set(*role).is_some()));
    }
}

/// Documents that stand apart: each hashes to its name.
fn objects(data: &[u8]) {
    let is_sound = |kind, id| Object { kind, id, bytes: data.to_vec() }.is_sound();
    if let Some(manifest) = one_encoding(data, Manifest::from_bytes, Manifest::to_bytes) {
        assert!(is_sound(ObjectKind::Manifest, manifest.id()), "a manifest is no object");
    }
    if let Some(policy) = one_encoding(data, PolicyObject::from_bytes, PolicyObject::to_bytes) {
        let id = ObjectId::from_bytes(*policy.hash().as_bytes());
        assert!(is_sound(ObjectKind::Policy, id), "a policy is no object");
    }
    if let Some(snapshot) = one_encoding(data, Snapshot::from_bytes, Snapshot::to_bytes) {
        let id = ObjectId::from_bytes(*snapshot.id().as_bytes());
        assert!(is_sound(ObjectKind::Snapshot, id), "a snapshot is no object");
        drop(snapshot.fact_ids());
    }
    if let Some(tools) = one_encoding(data, ToolsObject::from_bytes, ToolsObject::to_bytes) {
        // One whose tools are out of order is none.
        let id = ObjectId::from_bytes(*tools.hash().as_bytes());
        is_sound(ObjectKind::Tools, id);
    }
}

/// What was read, where it is accepted: then it is canonical, and its bytes are the only ones.
fn one_encoding<T>(
    data: &[u8],
    read: impl Fn(&[u8]) -> Result<T, DecodeError>,
    write: impl Fn(&T) -> Vec<u8>,
) -> Option<T> {
    let value = match read(data) {
        Ok(value) => value,
        Err(error) => {
            assert!(error.at <= data.len());
            return None;
        }
    };
    assert_eq!(write(&value), data);
    Item::check(data, Profile::CONTROL).unwrap();
    Some(value)
}

fn body<B: ControlBody>(data: &[u8]) -> Option<B> {
    let body = one_encoding(data, B::from_bytes, B::to_bytes)?;
    let mut sim = sim::home();
    let (control, ticket) = (sim.signed(&body), sim.ticket());
    sim.event(match B::KIND {
        RecordKind::Policy => Event::Policy(ticket, control, None, Vec::new(), None),
        RecordKind::Tools => Event::Tools(ticket, control, None, ToolsDelta::default()),
        kind => Event::Control(ticket, kind, control, None, None),
    });
    sim.commit();
    let answer = sim.acked(ticket).expect("answered").clone();
    if let Err(refused) = answer {
        sound::known(&refused);
    }
    sound::sound(&mut sim);
    Some(body)
}
