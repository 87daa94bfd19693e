//! The protocol: what is written is read as it was, and nothing else is taken.

use std::{io::Write as _, os::unix::net::UnixStream, sync::Arc};

use syscap_format::{
    budget::{Amounts, Dimension},
    cbor::{Canonical, Item, MapBuilder, Profile},
    envelope::TxOutcome,
    id::{AgentId, DefinitionHash, ObjectId, Seq, SnapshotId, TokenId, ToolId},
    json::Escapes,
    manifest::{EffectClass, Manifest},
    object::{EngineIdentity, PolicyObject},
    provenance::Source,
    reason::{Reason, Refused},
};

use super::{
    lend::SessionTicket,
    limits::{FRAME_BYTES_MAX, FROZEN_BYTES_MAX, PARTIAL_BYTES_MAX},
    message::{Ask, Frame, Order, Proposed},
    reply::{self, Failure, Reply, Taken},
    wire::{Broken, Partial, Reader, Writer},
};
use crate::{
    Changed, Grant,
    provide::{Cancel, HostCall, HostRan, Offer, Standing},
    sent::{Sent, Written},
    view::Whose,
};

const ID: u64 = 1 << 40;

fn tool(name: &str) -> ToolId {
    ToolId::new(name).unwrap()
}

/// A list in a list, and so on, as deep as data may nest.
fn deep() -> Canonical {
    let nested = |item, _| Canonical::list([item].into_iter());
    (0..Profile::DATA.depth_max()).fold(Canonical::text("x"), nested)
}

fn asks() -> Vec<Ask> {
    let (session, token) = (Seq::new(7), TokenId::from_bytes([7; 32]));
    let engine = EngineIdentity { name: Box::from("none"), version: 3 };
    let policy = PolicyObject { engine, document: vec![0xa0] };
    let proposed = |base| Proposed {
        session,
        writer: Source::Tool,
        inputs: vec![Seq::new(3), Seq::new(2)],
        base,
        changes: deep(),
    };
    let manifest = Manifest::new(tool("t.a"), EffectClass::Irreversible);
    let amounts = Amounts::ZERO.with(Dimension::LlmTokens, u64::MAX);
    let (envelope, source, tag) = (|| vec![0xff; 9], Source::User, u64::MAX);
    let call = |form| Ask::Call { session, sent: Sent { envelope: envelope(), form, source, tag } };
    vec![
        Ask::Issue(Box::new(Grant::to("a").tools(["t.a"]).workspace())),
        Ask::Policy(policy.clone()),
        Ask::Shadow(policy),
        Ask::NoShadow,
        Ask::Open { agent: "no agent".to_owned(), token },
        Ask::Lend(session),
        Ask::Take(SessionTicket::from_bytes([9; 32])),
        Ask::Close(session),
        call(Written::Cbor),
        call(Written::Json),
        call(Written::Arguments(Escapes::Data)),
        call(Written::Arguments(Escapes::Read)),
        Ask::Charge { session, amounts },
        Ask::Propose(Box::new(proposed(None))),
        Ask::Propose(Box::new(proposed(Some(SnapshotId::from_bytes([1; 32]))))),
        Ask::Provide(vec![manifest.clone(), manifest]),
        Ask::Withdraw(vec![tool("t.a")]),
        Ask::Accept(Vec::new()),
        Ask::AcceptAs(vec![(tool("t.a"), ObjectId::from_bytes([3; 32]))]),
        Ask::Forget(vec![tool("t.a"), tool("t.b")]),
        Ask::ReadPolicy(b"{}".to_vec()),
        Ask::View,
        Ask::Tool(tool("t.a")),
        Ask::Manifests(Whose::All),
        Ask::Manifests(Whose::Holders),
    ]
}

fn orders() -> Vec<Order> {
    let call = HostCall {
        tool: tool("t.a"),
        definition: DefinitionHash::from_bytes([7; 32]),
        agent: AgentId::new("team/a").unwrap(),
        session: Seq::new(1),
        intent: Seq::new(2),
        args: deep(),
        hold: Amounts::ZERO.with(Dimension::WallUs, 5),
        result_bytes_max: 17,
        read_only: true,
        tag: 9,
        cancel: Cancel::new(),
    };
    vec![Order::Run(Box::new(call)), Order::Cancel(3), Order::Closing]
}

fn replies() -> Vec<Reply> {
    let refused = Refused::new(Reason::OutOfScope).field("path").got("/etc").allowed("workspace");
    vec![
        Reply::nothing(),
        Reply::Done(reply::record(Seq::new(7))),
        Reply::refused(Reason::Closing),
        Reply::Refused(refused),
        Reply::Failed(Failure::Name { what: "the tool", got: "T".to_owned() }),
        Reply::too_long(),
    ]
}

/// Reads a frame and writes what it was understood as.
fn again(frame: &[u8]) -> Option<Canonical> {
    match Frame::read(frame).ok()? {
        Frame::Asked(id, op, fields) => {
            let order = Frame::read(frame).ok().and_then(|frame| match frame {
                Frame::Asked(_, op, fields) => Order::read(op, fields).ok(),
                Frame::Replied(..) => None,
            });
            match order {
                Some(order) => Some(order.write(id)),
                None => Some(Ask::read(op, fields).ok()?.write(id)),
            }
        }
        Frame::Replied(id, reply) => Some(reply.write(id)),
    }
}

pub(super) fn frames() -> Vec<Canonical> {
    let asks = asks().into_iter().map(|ask| ask.write(ID));
    let orders = orders().into_iter().map(|order| order.write(ID));
    let replies = replies().into_iter().map(|reply| reply.write(ID));
    asks.chain(orders).chain(replies).collect()
}

#[test]
fn what_is_written_is_read() {
    for frame in frames() {
        assert_eq!(again(frame.as_bytes()), Some(frame));
    }
}

/// Each entry is needed, each is of one type, and there is none besides; but for the base of a
/// proposal, and the details of a refusal, which may be left out.
#[test]
fn a_frame_has_one_form() {
    let optional = ["base"];
    for frame in frames() {
        let entries = || frame.item().entries();
        let except = |key: &str| {
            let others = entries().filter(|(name, _)| *name != key);
            others.fold(MapBuilder::new(), |map, (name, item)| map.item(name, item))
        };
        for (key, _) in entries().filter(|(key, _)| !optional.contains(key)) {
            assert_eq!(again(except(key).finish().as_bytes()), None, "without {key}");
        }
        for (key, _) in entries().filter(|(key, _)| *key != "done") {
            let other = except(key).item(key, Item::NULL).finish();
            assert_eq!(again(other.as_bytes()), None, "null for {key}");
        }
        let more = except("").uint("more", 1).finish();
        assert_eq!(again(more.as_bytes()), None);
    }
}

/// Whatever bytes come: nothing panics, and what is taken is what would be written.
#[test]
fn what_is_taken_is_canonical() {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random >> 11).unwrap() % below
    };
    let (mut taken, mut tried) = (0, 0);
    for frame in frames() {
        for _ in 0..3_000 {
            let mut bytes = frame.as_bytes().to_vec();
            for _ in 0..=next(3) {
                let place = next(bytes.len());
                match next(3) {
                    0 => bytes[place] = u8::try_from(next(256)).unwrap(),
                    1 => drop(bytes.remove(place)),
                    _ => bytes.insert(place, u8::try_from(next(256)).unwrap()),
                }
            }
            tried += 1;
            if let Some(written) = again(&bytes) {
                // Details of a refusal may be left out, and what follows from its reason.
                let refusal = written.item().get("refused").is_some();
                assert!(refusal || written.as_bytes() == bytes, "{bytes:02x?}");
                taken += 1;
            }
        }
    }
    assert!(taken > 100 && taken < tried / 2, "{taken} of {tried}");
}

#[test]
fn what_was_asked_for_comes_back() {
    let record = Seq::new(u64::MAX);
    assert_eq!(reply::read_record(reply::record(record).item()), Ok(record));
    let token = TokenId::from_bytes([9; 32]);
    assert_eq!(reply::read_token(reply::token(token).item()), Ok(token));
    let ticket = SessionTicket::from_bytes([8; 32]);
    assert_eq!(reply::read_ticket(reply::ticket(&ticket).item()), Ok(ticket));
    let taken = Taken { session: record, agent: AgentId::new("team/a").unwrap(), token };
    assert_eq!(reply::read_taken(reply::taken(&taken).item()), Ok(taken));
    let changed = Changed { snapshot: SnapshotId::from_bytes([1; 32]), record };
    assert_eq!(reply::read_changed(reply::changed(changed).item()), Ok(changed));
    let offers = [Standing::Ready, Standing::Changed, Standing::Taken].map(|standing| {
        let manifest = Manifest::new(tool("t.a"), EffectClass::Read);
        Offer { manifest, standing }
    });
    assert_eq!(reply::read_offers(reply::offers(&offers).item()), Ok(offers.to_vec()));
    let results = [
        (Ok(deep()), TxOutcome::Committed),
        (Err(Refused::new(Reason::NotFound).got("a")), TxOutcome::Unknown),
    ];
    for (result, tx) in results {
        let used = Amounts::ZERO.with(Dimension::EgressBytes, 3);
        let ran = HostRan { result, tx, used };
        let back = reply::read_ran(reply::ran(&ran).item()).unwrap();
        assert_eq!((back.result, back.tx, back.used), (ran.result, ran.tx, ran.used));
    }
    for other in [Canonical::null(), Canonical::text("x"), MapBuilder::new().finish()] {
        let item = other.item();
        assert!(reply::read_record(item).is_err());
        assert!(reply::read_token(item).is_err());
        assert!(reply::read_changed(item).is_err());
        assert!(reply::read_ran(item).is_err());
        assert!(reply::read_answer(item).is_err());
        assert!(reply::read_ticket(item).is_err());
        assert!(reply::read_taken(item).is_err());
        assert_eq!(reply::read_nothing(item).is_ok(), item.is_null());
    }
}

/// A reader, and what writes to it.
fn reader() -> (Reader, UnixStream) {
    let (here, there) = UnixStream::pair().unwrap();
    (Reader::new(Arc::new(here), Arc::default()).unwrap(), there)
}

#[test]
fn frames_arrive_whole_however_they_are_cut() {
    let bytes = [&[0, 0, 0, 2, 1, 2][..], &[0, 0, 0, 1, 3], &[0, 0, 1, 0], &[7; 256]].concat();
    for cut in 1..bytes.len() {
        let (mut reader, mut writer) = reader();
        let (first, rest) = bytes.split_at(cut);
        writer.write_all(first).unwrap();
        let writing = rest.to_vec();
        let writing = std::thread::spawn(move || writer.write_all(&writing).unwrap());
        assert_eq!(reader.next(None), Ok(vec![1, 2]));
        assert_eq!(reader.next(None), Ok(vec![3]));
        assert_eq!(reader.next(None), Ok(vec![7; 256]));
        writing.join().unwrap();
        assert_eq!(reader.next(None), Err(Broken::Ended));
    }
}

/// Long frames that have begun share a bound: what there is no room for is not read on, and short
/// frames need none.
#[test]
fn long_frames_that_are_not_whole_are_bounded() {
    let partial = Arc::<Partial>::default();
    let reader = || {
        let (here, there) = UnixStream::pair().unwrap();
        let mut reader = Reader::new(Arc::new(here), Arc::clone(&partial)).unwrap();
        reader.take_long_frames();
        (reader, there)
    };
    let most = u32::try_from(FRAME_BYTES_MAX).unwrap();
    let half = || {
        let (mut reader, mut writer) = reader();
        writer.write_all(&most.to_be_bytes()).unwrap();
        (std::thread::spawn(move || reader.next(None)), writer)
    };
    let halves: Vec<_> = (0..PARTIAL_BYTES_MAX / FRAME_BYTES_MAX).map(|_| half()).collect();
    while partial.taken() < PARTIAL_BYTES_MAX {
        std::thread::yield_now();
    }
    let (mut long, mut writer) = reader();
    writer.write_all(&(1_u32 << 20).to_be_bytes()).unwrap();
    writer.write_all(&[1; 1_000]).unwrap();
    let long = std::thread::spawn(move || long.next(None));
    let (mut short, mut quick) = reader();
    quick.write_all(&[0, 0, 0, 2, 1, 2]).unwrap();
    assert_eq!(short.next(None), Ok(vec![1, 2]));
    assert!(!partial.take(1), "there is no room for one more");
    for (half, writer) in halves {
        assert_eq!(half.join().unwrap(), Err(Broken::Slow));
        drop(writer);
    }
    assert_eq!(long.join().unwrap(), Err(Broken::Slow));
    assert_eq!(partial.taken(), 0);
    // One that comes later, and whole, is read.
    let (mut reader, mut writer) = reader();
    let writing = std::thread::spawn(move || {
        writer.write_all(&most.to_be_bytes()).unwrap();
        writer.write_all(&vec![9; FRAME_BYTES_MAX]).unwrap();
    });
    assert_eq!(reader.next(None).map(|frame| frame.len()), Ok(FRAME_BYTES_MAX));
    writing.join().unwrap();
    assert_eq!(partial.taken(), 0);
}

#[test]
fn a_frame_has_a_length_within_bounds() {
    let most = u32::try_from(FRAME_BYTES_MAX).unwrap();
    let first = u32::try_from(FROZEN_BYTES_MAX).unwrap();
    for length in [0, first + 1, most, u32::MAX] {
        let (mut reader, mut writer) = reader();
        writer.write_all(&length.to_be_bytes()).unwrap();
        assert_eq!(reader.next(None), Err(Broken::Length));
    }
    for length in [0, most + 1, u32::MAX] {
        let (mut reader, mut writer) = reader();
        reader.take_long_frames();
        writer.write_all(&length.to_be_bytes()).unwrap();
        assert_eq!(reader.next(None), Err(Broken::Length));
    }
    let (mut reader, mut writer) = reader();
    reader.take_long_frames();
    let writing = std::thread::spawn(move || {
        writer.write_all(&most.to_be_bytes()).unwrap();
        writer.write_all(&vec![9; FRAME_BYTES_MAX]).unwrap();
        writer.write_all(&[0, 0, 0, 2, 1]).unwrap();
    });
    assert_eq!(reader.next(None).map(|frame| frame.len()), Ok(FRAME_BYTES_MAX));
    writing.join().unwrap();
    assert_eq!(reader.next(None), Err(Broken::Cut));
    // Nor is a longer one written, and what follows is not harmed by it.
    let (mut reader, writer) = self::reader();
    reader.take_long_frames();
    let mut writer = Writer::new(Arc::new(writer)).unwrap();
    let text = |bytes: usize| Canonical::text(&"x".repeat(bytes));
    assert_eq!(writer.write(&text(FRAME_BYTES_MAX)), Err(Broken::Length));
    writer.write(&text(3)).unwrap();
    assert_eq!(reader.next(None), Ok(text(3).into_bytes()));
}
