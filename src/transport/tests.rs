//! The protocol: what is written is read as it was, and nothing else is taken.

use std::{io::Write as _, os::unix::net::UnixStream, sync::Arc};

use syscap_format::field::Field;
use syscap_format::json::Escapes;
use syscap_format::{
    AgentId, Amounts, Canonical, Control, DefinitionHash, Dimension, EffectClass, EngineIdentity,
    Head, Item, Label, Leaf, Manifest, Name, Names, ObjectId, PolicyObject, Profile, PublicKey,
    Reason, RecordKind, Refused, Scope, Seq, Signature, Signed, SnapshotId, Source, TokenId,
    ToolGrant, ToolId, TxOutcome,
};

use crate::inspect::view::Whose;
use crate::keys::{KeyUse, SignerError};
use crate::runtime::session::call::{Sent, Written};
use crate::runtime::submit::{Beside, Submission};
use crate::server::lend::SessionTicket;
use crate::tools::DELEGATED_MAX;
use crate::tools::host::uses::{Prompt, Reported, ToolUse};
use crate::tools::provide::{Cancel, HostCall, HostRan, Offer, Standing};
use crate::transport::frame::{Carries, Frame, Message as _, frame, take};
use crate::transport::limits::{FRAME_BYTES_MAX, FROZEN_BYTES_MAX, PARTIAL_BYTES_MAX, TOOLS_MAX};
use crate::transport::message::{
    Aborted, AgentAsk, Ask, Begin, Call, Charge, Heard, Looked, Opening, Order, Prompted, Proposed,
    Provided, Settle,
};
use crate::transport::reply::{Answered, Leave, Offers, Ran, Reply, Taken};
use crate::transport::wire::{Broken, Partial, Reader, Writer};
use crate::{CallContext, Changed, Error, Grant};

const ID: u64 = 1 << 40;

fn tool(name: &str) -> ToolId {
    ToolId::new(name).unwrap()
}

fn head() -> Head {
    Head { seq: Seq::new(4), leaf: Leaf::from_bytes([4; 32]) }
}

fn signed() -> Signed {
    // The point of order one of RFC 8032 is no key; the base point is.
    let mut key = [0x66; 32];
    key[0] = 0x58;
    let key = PublicKey::new(key).unwrap();
    Signed { key, counter: 1, signature: Signature::from_bytes([7; 64]) }
}

/// A list in a list, and so on, as deep as data may nest.
fn deep() -> Canonical {
    let nested = |item, _| Canonical::list([item].into_iter());
    (0..Profile::DATA.depth_max()).fold(Canonical::text("x"), nested)
}

/// The requests of either channel.
fn agents() -> Vec<AgentAsk> {
    let (session, envelope) = (Seq::new(7), || vec![0xff; 9]);
    let call = |form| {
        let sent = Sent {
            envelope: envelope(),
            form,
            source: Source::User,
            context: CallContext::tag(u64::MAX),
        };
        AgentAsk::Call(Box::new(Call { session, sent }))
    };
    vec![
        AgentAsk::Take(SessionTicket::from_bytes([9; 32])),
        call(Written::Cbor),
        call(Written::Json),
        call(Written::Arguments(Escapes::Data)),
        call(Written::Arguments(Escapes::Read)),
        AgentAsk::Cancel(ID),
        AgentAsk::Close(session),
    ]
}

fn provided(location: Option<&str>) -> Provided {
    let manifest = Manifest::new(tool("t.a"), EffectClass::Irreversible);
    Provided { manifest, location: location.map(str::to_owned) }
}

fn used(id: Option<&str>) -> ToolUse {
    ToolUse {
        agent: AgentId::new("a").unwrap(),
        conversation: "c".to_owned(),
        id: id.map(str::to_owned),
        tool: tool("t.a"),
        args: deep(),
        place: None,
        location: None,
        part: id.map(|_| "a part".to_owned()),
    }
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
    let names = ["a/b", "x"].map(|name| Name::new(name).unwrap());
    let scope = Scope::Names(Names::new(names).unwrap());
    let grant = Grant::to("a").tools(["t.a"]).workspace().scope("names", scope.clone());
    let grant = grant.tool_with(tool("t.b"), ToolGrant::new().with("names", scope));
    let prompt = Prompt {
        agent: AgentId::new("a").unwrap(),
        conversation: "c".to_owned(),
        text: "Tell me about bees.".to_owned(),
    };
    let accepted = (tool("t.a"), ObjectId::from_bytes([3; 32]));
    let settle = |reported| Ask::Settle(Box::new(Settle { token, used: used(None), reported }));
    let control = Control::by_one(head(), vec![0xa0], signed());
    let submit =
        |kind, beside| Ask::Submit(Box::new(Submission { kind, control: control.clone(), beside }));
    vec![
        Ask::Issue(Box::new(grant.read_only())),
        Ask::Policy(policy.clone()),
        Ask::Shadow(policy.clone()),
        Ask::NoShadow,
        Ask::Open(Opening { agent: "no agent".to_owned(), token }),
        Ask::Lend(session),
        Ask::Charge(Charge { session, amounts }),
        Ask::Abort(Aborted { session, intent: Seq::new(9) }),
        Ask::Register(vec![0x84, 0x02]),
        Ask::Propose(Box::new(proposed(None))),
        Ask::Propose(Box::new(proposed(Some(SnapshotId::from_bytes([1; 32]))))),
        Ask::Provide(vec![provided(None), provided(Some("here"))]),
        Ask::Withdraw(vec![tool("t.a")]),
        Ask::Accept(Vec::new()),
        Ask::AcceptAs(vec![accepted.clone()]),
        Ask::Forget(vec![tool("t.a"), tool("t.b")]),
        Ask::ReadPolicy(b"{}".to_vec()),
        submit(RecordKind::Freeze, Beside::Nothing),
        submit(RecordKind::Policy, Beside::Policy(Box::new(policy))),
        submit(RecordKind::Tools, Beside::Accepted(vec![accepted])),
        submit(RecordKind::Tools, Beside::Forgotten(vec![tool("t.a")])),
        submit(RecordKind::Tools, Beside::OwnTools),
        Ask::Begin(Box::new(Begin { token, used: used(Some("u")), manifest, unasked: true })),
        settle(Reported::Result(deep())),
        settle(Reported::Failed("no".to_owned())),
        settle(Reported::NotMade("no".to_owned())),
        Ask::View,
        Ask::ViewOf(Box::new(Looked { agent: AgentId::new("a").unwrap(), token: None })),
        Ask::Stamp,
        Ask::Heard(Box::new(Heard { session, text: "bees".to_owned(), label: Label::PUBLIC })),
        Ask::Prompted(Box::new(Prompted { token, prompt })),
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
    vec![Order::Run(Box::new(call.into())), Order::Cancel(3), Order::Closing]
}

fn replies() -> Vec<Reply> {
    let refused = Refused::new(Reason::OutOfScope).field("path").got("/etc").allowed("workspace");
    let named = || Err(Error::BadName { what: "the tool", got: "T".to_owned() });
    let sealed = || Err(SignerError::Sealed(KeyUse::Recovery).into());
    vec![
        Reply::nothing(),
        Reply::done(&Seq::new(7)),
        Reply::refused(Reason::Closing),
        Reply::Refused(refused),
        Reply::of::<()>(named()),
        Reply::of::<()>(Err(Error::NoSuch { what: "the tool", got: "t".to_owned() })),
        Reply::of::<()>(sealed()),
        Reply::too_long(),
    ]
}

/// Reads a frame and writes what it was understood as.
pub(crate) fn again(bytes: &[u8]) -> Option<Vec<u8>> {
    let frame = Frame::read(bytes).ok()?;
    let id = frame.id;
    match frame.carries {
        Carries::AgentAsk => frame.take::<AgentAsk>().ok().map(|ask| ask.frame(id)),
        Carries::Ask => frame.take::<Ask>().ok().map(|ask| ask.frame(id)),
        Carries::Order => frame.take::<Order>().ok().map(|order| order.frame(id)),
        _ => Reply::read(&frame).ok().map(|reply| reply.frame(id)),
    }
}

pub(crate) fn frames() -> Vec<Vec<u8>> {
    let agents = agents().into_iter().map(|ask| ask.frame(ID));
    let asks = asks().into_iter().map(|ask| ask.frame(ID));
    let orders = orders().into_iter().map(|order| order.frame(ID));
    let replies = replies().into_iter().map(|reply| reply.frame(ID));
    agents.chain(asks).chain(orders).chain(replies).collect()
}

#[test]
fn written_frame_reads_back_equal() {
    for frame in frames() {
        assert_eq!(again(&frame), Some(frame));
    }
}

/// A frame is of one kind: none is taken as another, and nothing may stand before or after it.
#[test]
fn a_frame_has_one_form() {
    let all = |bytes: &[u8]| {
        let frame = Frame::read(bytes).unwrap();
        let kinds = [
            frame.take::<AgentAsk>().is_ok(),
            frame.take::<Ask>().is_ok(),
            frame.take::<Order>().is_ok(),
        ];
        (frame.carries, kinds)
    };
    for frame in frames() {
        match all(&frame) {
            (Carries::AgentAsk, kinds) => assert!(kinds[0]),
            (Carries::Ask, kinds) => assert!(kinds[1]),
            (Carries::Order, kinds) => assert!(kinds[2]),
            _ => {}
        }
        let is_done = Frame::read(&frame).unwrap().carries == Carries::Done;
        // What was asked for is looked at by the one who asked.
        let more = again(&[&frame[..], &[0]].concat());
        assert!(is_done || more.is_none());
        let less = again(&frame[..frame.len() - 1]);
        assert!(is_done || less.is_none());
        let mut third = frame.clone();
        third[0] += 1;
        assert_eq!(again(&third), None, "three entries");
        let mut other = frame.clone();
        other[1] += 1;
        assert_eq!(again(&other), None, "no id");
    }
    let head = |kind: u8| [0xa2, 1, 0, kind, 0xf6];
    for kind in [0, 1, 8, 9, 23] {
        assert!(Frame::read(&head(kind)).is_err(), "of kind {kind}");
    }
}

/// Lists that come in are bounded where they are declared.
#[test]
fn lists_are_bounded() {
    let many = |count: usize| vec![tool("t"); count];
    for (count, is_taken) in [(DELEGATED_MAX, true), (DELEGATED_MAX + 1, false)] {
        for ask in [Ask::Forget(many(count)), Ask::Withdraw(many(count)), Ask::Accept(many(count))]
        {
            assert_eq!(again(&ask.frame(ID)).is_some(), is_taken);
        }
        let submit = Ask::Submit(Box::new(Submission {
            kind: RecordKind::Tools,
            control: Control::by_one(head(), Vec::new(), signed()),
            beside: Beside::Forgotten(many(count)),
        }));
        assert_eq!(again(&submit.frame(ID)).is_some(), is_taken);
    }
    for (count, is_taken) in [(64, true), (65, false)] {
        let scope = || Scope::Names(Names::new([Name::new("x").unwrap()]).unwrap());
        let many = |grant: ToolGrant, n| grant.with(&format!("d{n:02}"), scope());
        let apart = (0..count).fold(ToolGrant::new(), many);
        let grant = Grant::to("a").tool_with(tool("t.a"), apart);
        assert_eq!(again(&Ask::Issue(Box::new(grant)).frame(ID)).is_some(), is_taken);
    }
    assert!(again(&Ask::Provide(vec![provided(None); TOOLS_MAX]).frame(ID)).is_some());
    assert!(again(&Ask::Provide(vec![provided(None); TOOLS_MAX + 1]).frame(ID)).is_none());
}

/// The content of a frame is data, and no deeper than data may be.
#[test]
fn data_in_a_frame_is_no_deeper_than_data() {
    let proposed = |changes: &[u8]| {
        frame(ID, Carries::Ask, |encoder| {
            encoder.array(2);
            encoder.uint(8);
            encoder.map(5);
            for (key, value) in [(1, &[7][..]), (2, &[1]), (3, &[0x80]), (4, &[0xf6]), (5, changes)]
            {
                encoder.uint(key);
                let item = Item::check(value, Profile::MESSAGE).unwrap();
                encoder.item(item);
            }
        })
    };
    let deeper = [&[0x81][..], deep().as_bytes()].concat();
    assert!(again(&proposed(deep().as_bytes())).is_some());
    assert!(Item::check(&deeper, Profile::MESSAGE).is_ok());
    assert!(again(&proposed(&deeper)).is_none());
}

/// No bytes make it panic, and an accepted frame is what would be written.
#[test]
fn accepted_frame_is_canonical() {
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
            let mut bytes = frame.clone();
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
                assert_eq!(written, bytes, "{bytes:02x?}");
                taken += 1;
            }
        }
    }
    assert!(taken > 100 && taken < tried / 2, "{taken} of {tried}");
}

/// Goes by a frame and comes back.
fn comes_back<T: Field + PartialEq + std::fmt::Debug>(value: &T) {
    let there = Reply::done(value).frame(ID);
    let reply = Reply::read(&Frame::read(&there).unwrap()).unwrap();
    assert_eq!(take::<T>(&reply.into_bytes().unwrap()).unwrap(), *value);
}

#[test]
fn every_answer_type_reads_back_equal() {
    let record = Seq::new(u64::MAX);
    let token = TokenId::from_bytes([9; 32]);
    comes_back(&());
    comes_back(&record);
    comes_back(&token);
    comes_back(&SessionTicket::from_bytes([8; 32]));
    comes_back(&Taken { session: record, agent: AgentId::new("team/a").unwrap(), token });
    comes_back(&Changed { snapshot: SnapshotId::from_bytes([1; 32]), record });
    let list = Standing::ALL.iter().map(|standing| {
        let manifest = Manifest::new(tool("t.a"), EffectClass::Read);
        Offer { manifest, standing: *standing }
    });
    comes_back(&Offers { list: list.collect() });
    comes_back(&Leave::Out(record));
    let results = [
        (Ok(deep()), TxOutcome::Committed, false),
        (Ok(deep()), TxOutcome::Unknown, true),
        (Err(Refused::new(Reason::NotFound).got("a")), TxOutcome::Unknown, false),
    ];
    for (result, tx, failed) in results {
        let used = Amounts::ZERO.with(Dimension::EgressBytes, 3);
        let ran = Ran::from(HostRan { result, tx, failed, retry: None, used });
        comes_back(&ran);
        assert_eq!(HostRan::from(ran).failed, failed);
    }
    for other in [&[0xf6][..], &[0x61, 0x78], &[0xa0], &[7, 7], &[]] {
        let of = |is_null: bool| assert_eq!(take::<()>(other).is_ok(), is_null);
        of(other == [0xf6]);
        assert!(take::<Seq>(other).is_err());
        assert!(take::<TokenId>(other).is_err());
        assert!(take::<Changed>(other).is_err());
        assert!(take::<Ran>(other).is_err());
        assert!(take::<Answered>(other).is_err());
        assert!(take::<SessionTicket>(other).is_err());
        assert!(take::<Taken>(other).is_err());
    }
}

/// A reader, and what writes to it.
fn reader() -> (Reader, UnixStream) {
    let (here, there) = UnixStream::pair().unwrap();
    (Reader::new(Arc::new(here)).unwrap(), there)
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
        let mut reader = Reader::new(Arc::new(here)).unwrap();
        reader.take_long_frames(FRAME_BYTES_MAX, Arc::clone(&partial));
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
        reader.take_long_frames(FRAME_BYTES_MAX, Arc::default());
        writer.write_all(&length.to_be_bytes()).unwrap();
        assert_eq!(reader.next(None), Err(Broken::Length));
    }
    let (mut reader, mut writer) = reader();
    reader.take_long_frames(FRAME_BYTES_MAX, Arc::default());
    let writing = std::thread::spawn(move || {
        writer.write_all(&most.to_be_bytes()).unwrap();
        writer.write_all(&vec![9; FRAME_BYTES_MAX]).unwrap();
        writer.write_all(&[0, 0, 0, 2, 1]).unwrap();
    });
    assert_eq!(reader.next(None).map(|frame| frame.len()), Ok(FRAME_BYTES_MAX));
    writing.join().unwrap();
    assert_eq!(reader.next(None), Err(Broken::Cut));
    // Nor is a longer one written, and what follows is not harmed by it.
    let (mut reader, writer) = crate::transport::tests::reader();
    reader.take_long_frames(FRAME_BYTES_MAX, Arc::default());
    let mut writer = Writer::new(Arc::new(writer)).unwrap();
    let text = |bytes: usize| Canonical::text(&"x".repeat(bytes));
    assert_eq!(writer.write(text(FRAME_BYTES_MAX).as_bytes()), Err(Broken::Length));
    writer.write(text(3).as_bytes()).unwrap();
    assert_eq!(reader.next(None), Ok(text(3).into_bytes()));
}
