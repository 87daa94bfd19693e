//! What users say to agents: on record, salted, and worth no more than that it was said.

use host_support::new_home;
use kernel_support::sim::{Sim, ok, records, seated};
use syscap::format::{
    AgentId, Body, Confidentiality, Input, Integrity, Label, Reason, Salt, Seq, TEXT_BYTES_MAX,
    VaultText,
};
use syscap::kernel::{Ack, Event, Room, vault_entry};
use syscap::prelude::*;
use syscap::verify::verify_vault;

const SAID: &str = "Tell me about the bees of Aunt Hilda.";

fn text(said: &str, field: u64) -> VaultText {
    VaultText { salt: Salt::from_bytes([7; 32]), field, text: Box::from(said) }
}

fn input(session: Seq, agent: &str, text: &VaultText) -> Input {
    let agent = AgentId::new(agent).unwrap();
    let label = Label::new(Integrity::Trusted, Confidentiality::Private);
    Input { session, agent, text: text.hash(), label }
}

fn heard(sim: &mut Sim, input: Input, text: VaultText) -> Result<Ack, Reason> {
    let ticket = sim.ticket();
    sim.event(Event::Heard(ticket, Box::new(input), text));
    sim.commit();
    sim.acked(ticket).unwrap().clone().map_err(|refused| refused.reason())
}

/// The record commits to the text, which lies in the vault and nowhere else; the session carries
/// what it carries from there on; nothing is paid.
#[test]
fn prompt_is_recorded_in_its_session() {
    let (mut sim, session) = seated();
    let used = sim.kernel.tokens().next().unwrap().used;
    let said = text(SAID, 12);
    let Ok(Ack::Recorded(seq)) = heard(&mut sim, input(session, "a0", &said), said.clone()) else {
        panic!("it was not recorded");
    };
    let entry = vault_entry(&mut sim.store, seq, seq).unwrap();
    assert_eq!(entry.texts, std::slice::from_ref(&said));
    let all = records(&mut sim);
    let Body::Input(on_record) = &all.last().unwrap().body else { panic!("another kind") };
    assert_eq!(**on_record, input(session, "a0", &said));
    let mut log = all.iter().flat_map(|record| record.encode()).collect::<Vec<u8>>();
    log.retain(u8::is_ascii);
    assert!(!String::from_utf8(log).unwrap().contains("Hilda"), "the log has no word of it");
    assert_eq!(sim.kernel.tokens().next().unwrap().used, used);
    let carried = Label::new(Integrity::Trusted, Confidentiality::Private);
    assert_eq!(sim.kernel.sessions().next().unwrap().label, carried);
    ok(&mut sim, session);
    // The same after a crash: what was said is folded in again.
    let image = sim.kernel.state_image();
    assert_eq!(sim.reopened().unwrap().state_image(), image);
    let head = sim.durable_head();
    let report = verify_vault(&mut sim.store, head).unwrap();
    assert_eq!(report.altered, []);
    assert!(report.whole > 0);
    sim.check();
}

/// It is of a session that is open, its agent's, and the text that it commits to; and it comes in
/// time.
#[test]
fn unfit_prompt_is_refused() {
    let (mut sim, session) = seated();
    let said = text(SAID, 12);
    let long = "x".repeat(TEXT_BYTES_MAX + 1);
    let cases = [
        (input(session, "a1", &said), said.clone()),
        (input(Seq::new(0), "a0", &said), said.clone()),
        (input(session.next(), "a0", &said), said.clone()),
        (input(session, "a0", &text("other", 12)), said.clone()),
        (input(session, "a0", &text(SAID, 7)), text(SAID, 7)),
        (input(session, "a0", &text(&long, 12)), text(&long, 12)),
        (input(session, "a0", &text("", 12)), text("", 12)),
    ];
    for (input, text) in cases {
        assert_eq!(heard(&mut sim, input, text), Err(Reason::BadControl));
    }
    assert!(!records(&mut sim).iter().any(|record| matches!(record.body, Body::Input(_))));
    assert_eq!(sim.kernel.sessions().next().unwrap().label, Label::PUBLIC);
    // The reserve of the disk is for what ends.
    sim.event(Event::Room(Room::Reserve));
    let whole = input(session, "a0", &said);
    assert_eq!(heard(&mut sim, whole.clone(), said.clone()), Err(Reason::NoRoom));
    sim.event(Event::Room(Room::Enough));
    let longest = text(&long[1..], 12);
    assert!(heard(&mut sim, input(session, "a0", &longest), longest.clone()).is_ok());
    // Neither stops it that the agent is stopped: it was said all the same.
    sim.freeze(syscap::format::FreezeChange::Freeze);
    assert!(heard(&mut sim, whole.clone(), said.clone()).is_ok());
    let ticket = sim.ticket();
    sim.event(Event::Shutdown(ticket));
    assert_eq!(heard(&mut sim, whole, said), Err(Reason::Closing));
}

/// Through a session: what is longer than a text may be is several records, in order, none of
/// which cuts a letter in two; and what is too long, or nothing, is none.
#[test]
fn a_session_hears_long_texts_whole() {
    let (_folder, home) = new_home();
    let rt = Runtime::create(&home).unwrap();
    let agent = rt.session("a", rt.issue(Grant::to("a").tools(["echo"])).unwrap()).unwrap();
    let long = "\u{1f41d} and ".repeat(1_000);
    let first = agent.heard(&long, Label::PUBLIC).unwrap();
    for wrong in [String::new(), "x".repeat((1 << 20) + 1)] {
        match agent.heard(&wrong, Label::PUBLIC) {
            Err(Error::Refused(refused)) => assert_eq!(refused.reason(), Reason::TooLarge),
            other => panic!("{other:?}"),
        }
    }
    let most = agent.heard(&"y".repeat(1 << 20), Label::PUBLIC).unwrap();
    assert!(agent.call("echo", args! { "value": 1 }).unwrap().reason().is_none());
    rt.close().unwrap();
    let mut store = syscap::audit::SqliteReader::open(&home).unwrap();
    let mut said = Vec::new();
    let mut found = Vec::new();
    store
        .records(Seq::GENESIS, &mut |seq, bytes| {
            let record = syscap::format::Record::decode(bytes).unwrap();
            if let Body::Input(input) = record.body {
                found.push((seq, input.text));
            }
            syscap::kernel::Next::More
        })
        .unwrap();
    assert_eq!(found.first().map(|(seq, _)| *seq), Some(first));
    assert_eq!(found.iter().filter(|(seq, _)| *seq >= most).count(), 256);
    for (seq, hash) in found.iter().filter(|(seq, _)| *seq < most) {
        said.push(vault_entry(&mut store, *seq, *seq).unwrap().text(hash).unwrap().to_owned());
    }
    assert!(said.len() > 1 && said.iter().all(|part| part.len() <= TEXT_BYTES_MAX));
    assert_eq!(said.concat(), long);
}

/// What a client tells of costs nothing, and an agent's program can tell it as well: so there is a
/// bound for each agent, whatever its conversations are called.
#[test]
fn prompts_of_an_agent_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let rt = Runtime::create(folder.path().join("home")).unwrap();
    let [one, other] = ["a", "b"].map(|agent| rt.issue(Grant::to(agent).tools(["echo"])).unwrap());
    let told = |agent: &str, token, conversation: usize| {
        let (agent, text) = (AgentId::new(agent).unwrap(), "x".repeat(1 << 20));
        let conversation = format!("c{conversation}");
        rt.heard(token, &syscap::host::Prompt { agent, conversation, text })
    };
    let fits = (0..40).take_while(|n| told("a", one, *n).is_ok()).count();
    assert!((8..=16).contains(&fits), "{fits}");
    match told("a", one, 0) {
        Err(Error::Refused(refused)) => assert_eq!(refused.reason(), Reason::Overloaded),
        other => panic!("{other:?}"),
    }
    told("b", other, 0).unwrap();
    rt.close().unwrap();
}
