//! Why something was ended: a commitment on record, the words beside it.

use syscap::audit::MemoryStore;
use syscap::format::{
    ControlBody, Reason, Revocation, Salt, Seq, TEXT_BYTES_MAX, VaultEntry, VaultText,
};
use syscap::kernel::{Ack, Event, Store, Ticket};

use super::{Sim, logged, refused, revoked, seated, sound};

fn words(field: u64, text: &str) -> VaultText {
    VaultText { salt: Salt::from_bytes([7; 32]), field, text: Box::from(text) }
}

fn because<B: ControlBody>(sim: &mut Sim, body: &B, text: VaultText) -> Ticket {
    let (control, ticket) = (sim.signed(body), sim.ticket());
    sim.event(Event::Control(ticket, B::KIND, control, None, Some(text)));
    ticket
}

/// What lies beside a record.
fn kept(sim: &mut Sim, seq: Seq) -> Option<VaultEntry> {
    sim.store.vault(seq).unwrap().and_then(|row| VaultEntry::from_row(&row))
}

#[test]
fn a_cause_is_kept_beside_its_record() {
    let (mut sim, _) = seated();
    let (token, _) = sim.tokens[0];
    let text = words(5, "left the team");
    let cause = text.hash();
    let ticket = because(&mut sim, &Revocation::subtree(token).because(cause), text);
    sim.commit();
    let Some(Ok(Ack::Recorded(seq))) = sim.acked(ticket).cloned() else { panic!("refused") };
    assert!(revoked(&sim, token));
    let entry = kept(&mut sim, seq).unwrap();
    assert_eq!(entry.text(&cause), Some("left the team"));
    // The log itself has the commitment only.
    let record = logged(&mut sim).pop().unwrap();
    let bytes = record.encode();
    assert!(!bytes.windows(4).any(|part| part == b"left"));
    assert!(bytes.windows(32).any(|part| part == cause.as_bytes()));
    sound(&mut sim);
}

#[test]
fn a_cause_that_is_not_the_one_committed_to_ends_nothing() {
    let (mut sim, _) = seated();
    let (token, _) = sim.tokens[0];
    sim.commit();
    let plain = Revocation::subtree(token);
    let long = "x".repeat(TEXT_BYTES_MAX + 1);
    let rows = |sim: &mut Sim| {
        let last = logged(sim).len() as u64;
        (0..last).filter(|seq| kept(sim, Seq::new(*seq)).is_some()).count()
    };
    let before = rows(&mut sim);
    for (revocation, text) in [
        (plain.clone().because(words(5, "one").hash()), words(5, "another")),
        // Under another field, of another salt, of none.
        (plain.clone().because(words(2, "one").hash()), words(2, "one")),
        (plain.clone().because(words(2, "one").hash()), words(5, "one")),
        (plain.clone(), words(5, "one")),
        (plain.clone().because(words(5, "").hash()), words(5, "")),
        (plain.clone().because(words(5, &long).hash()), words(5, &long)),
    ] {
        let ticket = because(&mut sim, &revocation, text);
        assert_eq!(refused(&mut sim, ticket), (Reason::BadControl, "cause".to_owned()));
    }
    // Nor has what has no cause a text.
    let freeze = syscap::format::Freeze::all();
    let ticket = because(&mut sim, &freeze, words(5, "one"));
    assert_eq!(refused(&mut sim, ticket), (Reason::BadControl, "cause".to_owned()));
    assert!(!revoked(&sim, token) && sim.kernel.frozen().is_empty());
    assert_eq!(rows(&mut sim), before);
    // Without its text a commitment stands: nothing that stops is turned away for its words.
    sim.end(&plain.because(words(5, "one").hash()));
    sim.commit();
    assert!(revoked(&sim, token));
    sound(&mut sim);
}

/// Signed here or elsewhere, by a program.
#[test]
fn a_program_says_why() {
    use syscap::prelude::*;

    let dir = tempfile::tempdir().unwrap();
    let store = MemoryStore::new();
    let rt = Options::new().store(store.share()).create(dir.path().join("home")).unwrap();
    let token = rt.issue(Grant::to("a").tools(["echo"])).unwrap();
    let seq =
        rt.control_because("it leaked", |why| Revocation::subtree(token).because(why)).unwrap();
    let lied = rt.control_because("it leaked", |_| Revocation::subtree(token));
    assert!(matches!(lied, Err(Error::Refused(refused)) if refused.reason() == Reason::BadControl));
    let row = store.share().vault(seq).unwrap().unwrap();
    let entry = VaultEntry::from_row(&row).unwrap();
    assert_eq!(&*entry.texts[0].text, "it leaked");
    rt.close().unwrap();
}
