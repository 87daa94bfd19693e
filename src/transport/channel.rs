//! Our readers take of the agents' channel what the vectors of `docs/spec/channel.md` say, and the page
//! has the verbs and limits of the code.

use std::{fs, path::Path};

use serde_json::Value;
use syscap_format::{Reason, Seq, TxOutcome};

use crate::inspect::granted::{Granted, Left};
use crate::runtime::session::Stands;
use crate::tools::host::uses::Reported;
use crate::transport::frame::{Carries, Frame};
use crate::transport::limits::{
    AGENTS_FRAME_BYTES_MAX, AGENTS_WAIT_TIME, FRAME_BYTES_MAX, REQUEST_BYTES_MAX, REQUESTS_MAX,
    SESSIONS_MAX, TICKET_CONNECTIONS_MAX, TICKET_SESSIONS_MAX,
};
use crate::transport::message::{AgentAsk, Order, SettleOwn};
use crate::transport::reply::{Leave, Offers, OnRecord, Reply, Taken};
use crate::transport::wire::Broken;

fn file(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// What a server makes of a frame of a client's: the reason by which it is refused, if it is.
fn by_client(bytes: &[u8]) -> Result<Option<Reason>, Broken> {
    let frame = Frame::read(bytes)?;
    match frame.carries {
        Carries::AgentAsk => Ok(match frame.take::<AgentAsk>()? {
            AgentAsk::Wait(awaited) => awaited.limit().err().map(|refused| refused.reason()),
            _ => None,
        }),
        Carries::Ask => Ok(Some(Reason::WrongLane)),
        Carries::Order => Err(Broken::Form),
        Carries::Done | Carries::Refused | Carries::Failed => Reply::read(&frame).map(|_| None),
    }
}

/// What a client makes of a frame of the server's.
fn by_server(bytes: &[u8], verb: Option<u64>) -> Result<(), Broken> {
    let frame = Frame::read(bytes)?;
    match (frame.carries, verb) {
        (Carries::Order, _) => frame.take::<Order>().map(drop),
        (Carries::AgentAsk | Carries::Ask, _) => Err(Broken::Form),
        (Carries::Done, Some(1)) => frame.take::<Taken>().map(drop),
        (Carries::Done, Some(3 | 9)) => frame.take::<()>(),
        (Carries::Done, Some(8)) => frame.take::<Offers>().map(drop),
        (Carries::Done, Some(4)) => frame.take::<Seq>().map(drop),
        (Carries::Done, Some(5)) => frame.take::<Stands>().map(drop),
        (Carries::Done, Some(6)) => frame.take::<Granted>().map(drop),
        (Carries::Done, Some(7)) => frame.take::<Left>().map(drop),
        (Carries::Done, Some(10)) => frame.take::<Leave>().map(drop),
        (Carries::Done, Some(11)) => frame.take::<OnRecord>().map(drop),
        _ => Reply::read(&frame).map(drop),
    }
}

#[test]
fn channel_is_read_as_the_vectors_say() {
    let vectors: Value =
        serde_json::from_str(&file("tests/conformance/vectors/channel.json")).unwrap();
    for case in vectors["cases"].as_array().unwrap() {
        let text = |key: &str| case[key].as_str();
        let digits = text("bytes").unwrap().as_bytes();
        let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
        let bytes: Vec<u8> = digits.chunks(2).map(byte).collect();
        let taken = match text("by").unwrap() {
            "client" => by_client(&bytes),
            _ => by_server(&bytes, case["verb"].as_u64()).map(|()| None),
        };
        assert_eq!(taken.is_ok(), text("result") == Some("valid"), "{case}");
        assert_eq!(taken.ok().flatten().map(Reason::name), text("reason"), "{case}");
    }
}

#[test]
fn page_of_the_channel_has_its_verbs_and_limits() {
    let page = file("docs/spec/channel.md");
    let name = |ask: &AgentAsk| match ask {
        AgentAsk::Take(_) => "take",
        AgentAsk::Call(_) => "call",
        AgentAsk::Cancel(_) => "cancel",
        AgentAsk::Close(_) => "close",
        AgentAsk::Wait(_) => "wait",
        AgentAsk::Tools(_) => "tools",
        AgentAsk::Left(_) => "left",
        AgentAsk::Offer(_) => "offer",
        AgentAsk::Withdraw(_) => "withdraw",
        AgentAsk::Begin(_) => "begin",
        AgentAsk::Settle(_) => "settle",
    };
    let reported = Reported::NotMade(String::new());
    let settle = SettleOwn { session: Seq::new(1), intent: Seq::new(2), reported };
    for (verb, ask) in [
        (3, AgentAsk::Cancel(1)),
        (4, AgentAsk::Close(Seq::new(1))),
        (6, AgentAsk::Tools(Seq::new(1))),
        (7, AgentAsk::Left(Seq::new(1))),
        (8, AgentAsk::Offer(Vec::new())),
        (9, AgentAsk::Withdraw(Vec::new())),
        (11, AgentAsk::Settle(settle)),
    ] {
        assert!(page.contains(&format!("\n| {verb} | {} |", name(&ask))), "{verb}");
    }
    // The operator's verbs, all of them.
    let source = file("src/transport/message.rs");
    let asks = source.split("pub(crate) enum Ask {").nth(1).unwrap().split("\n}").next().unwrap();
    let rows = page.split("| Verb of lane 1 | Name | What it asks for |\n|---|---|---|\n").nth(1);
    let mut rows = rows.unwrap().lines();
    for line in asks.lines().filter(|line| line.contains(" => ")) {
        let (verb, ask) = line.trim().split_once(" => ").unwrap();
        let ask = ask.split(['(', ',']).next().unwrap();
        let mut name = String::new();
        for letter in ask.chars() {
            if letter.is_uppercase() && !name.is_empty() {
                name.push('_');
            }
            name.extend(letter.to_lowercase());
        }
        let row = rows.next().unwrap();
        assert!(row.starts_with(&format!("| {verb} | {name} | ")), "{row} {verb} {name}");
    }
    assert_eq!(rows.next(), Some(""));
    // The numbers that a provider answers by.
    let effects = TxOutcome::ALL.iter().map(|tx| format!("{} `{}`", tx.code(), tx.name()));
    let effects = effects.collect::<Vec<_>>().join(", ");
    assert!(page.contains(&format!("The effect: {effects}.")), "{effects}");
    let milliseconds = usize::try_from(AGENTS_WAIT_TIME.as_millis()).unwrap();
    let limits = [
        AGENTS_FRAME_BYTES_MAX,
        FRAME_BYTES_MAX,
        REQUESTS_MAX,
        REQUEST_BYTES_MAX,
        SESSIONS_MAX,
        TICKET_CONNECTIONS_MAX,
        TICKET_SESSIONS_MAX,
        milliseconds,
    ];
    let rows = page.split("| Limit of the channel | Value |\n|---|---|\n").nth(1).unwrap();
    let rows = rows.lines().map_while(|line| line.strip_prefix('|')?.strip_suffix(" |"));
    let found: Vec<usize> =
        rows.map(|row| row.rsplit(' ').next().unwrap().parse().unwrap()).collect();
    assert_eq!(found, limits);
}
