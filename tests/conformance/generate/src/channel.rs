//! Vectors of `channel.md`: what a client and a server say on the agents' lane.
//! `src/transport/channel.rs` holds our readers against them.

use serde_json::json;
use syscap_format::{EffectClass, Encoder, Manifest, Reason, ToolId};

use crate::case::{Cases, Of, hex};

const FRAME: Of = Of("SYSCAP-CHAN-001", "two readers of one frame see two frames");
const REFUSED: Of = Of("SYSCAP-CHAN-002", "a refusal is taken for another");
const LANE: Of = Of("SYSCAP-CHAN-003", "an agent's program is an operator");
const REQUEST: Of = Of("SYSCAP-CHAN-004", "another thing is done than was asked");
const ANSWER: Of = Of("SYSCAP-CHAN-005", "an answer is read as that to another question");
const WAIT: Of = Of("SYSCAP-CHAN-006", "a wait without an end");
const ORDER: Of = Of("SYSCAP-CHAN-007", "a client asks a server that ends");

type Write<'w> = &'w dyn Fn(&mut Encoder);

/// A frame by its kind.
fn carrying(kind: u64, body: Write<'_>) -> Vec<u8> {
    let mut encoder = Encoder::new();
    encoder.map(2);
    encoder.uint(1);
    encoder.uint(7);
    encoder.uint(kind);
    body(&mut encoder);
    encoder.into_bytes()
}

/// A request by its verb.
fn asking(verb: u64, value: Write<'_>) -> Vec<u8> {
    carrying(2, &|encoder| {
        encoder.array(2);
        encoder.uint(verb);
        value(encoder);
    })
}

/// A record of values under 1, 2 ..
fn record(encoder: &mut Encoder, values: &[Write<'_>]) {
    encoder.map(values.len());
    for (key, value) in (1..).zip(values) {
        encoder.uint(key);
        value(encoder);
    }
}

fn uint(value: u64) -> impl Fn(&mut Encoder) {
    move |encoder: &mut Encoder| encoder.uint(value)
}

fn text(value: &str) -> impl Fn(&mut Encoder) {
    move |encoder: &mut Encoder| encoder.text(value)
}

fn bytes(value: &[u8]) -> impl Fn(&mut Encoder) {
    move |encoder: &mut Encoder| encoder.bytes(value)
}

fn boolean(value: bool) -> impl Fn(&mut Encoder) {
    move |encoder: &mut Encoder| encoder.boolean(value)
}

fn null(encoder: &mut Encoder) {
    encoder.null();
}

fn amounts(encoder: &mut Encoder) {
    encoder.array(10);
    (0..10).for_each(|amount| encoder.uint(amount));
}

/// The value of a call: its envelope, form, source and what stands beside.
fn call(encoder: &mut Encoder, form: u64, source: u64, within: usize) {
    let beside = |encoder: &mut Encoder| {
        let list = |encoder: &mut Encoder| {
            encoder.array(within);
            (0..within).for_each(|_| encoder.uint(1));
        };
        record(encoder, &[&uint(0), &list, &boolean(false)]);
    };
    let sent = |encoder: &mut Encoder| {
        record(encoder, &[&bytes(b"\xa0"), &uint(form), &uint(source), &beside]);
    };
    record(encoder, &[&uint(3), &sent]);
}

struct Frames<'a> {
    cases: &'a mut Cases,
    /// The writer of the frames.
    by: &'static str,
}

impl Frames<'_> {
    fn add(&mut self, of: Of, valid: bool, comment: &str, frame: &[u8]) {
        let given = json!({"kind": "channel", "by": self.by, "bytes": hex(frame)});
        self.cases.add(of, valid, comment, given);
    }

    /// One that a server answers by that reason, and goes on.
    fn refused(&mut self, of: Of, comment: &str, frame: &[u8], reason: Reason) {
        let given = json!({"kind": "channel", "by": self.by, "bytes": hex(frame),
            "reason": reason.name()});
        self.cases.valid(of, comment, given);
    }

    /// An answer to a verb.
    fn answer(&mut self, valid: bool, verb: u64, comment: &str, body: Write<'_>) {
        let frame = carrying(5, body);
        let given = json!({"kind": "channel", "by": self.by, "bytes": hex(&frame), "verb": verb});
        self.cases.add(ANSWER, valid, comment, given);
    }
}

pub(crate) fn cases() -> Cases {
    let mut cases = Cases::default();
    for by in ["client", "server"] {
        frames(&mut Frames { cases: &mut cases, by });
    }
    requests(&mut Frames { cases: &mut cases, by: "client" });
    answers(&mut Frames { cases: &mut cases, by: "server" });
    cases
}

/// What holds for either side.
fn frames(frames: &mut Frames<'_>) {
    let done = carrying(5, &null);
    frames.add(FRAME, true, "done", &done);
    let map = |count: usize, keys: &[u64]| {
        let mut encoder = Encoder::new();
        encoder.map(count);
        keys.iter().for_each(|key| {
            encoder.uint(*key);
            encoder.uint(0);
        });
        encoder.into_bytes()
    };
    for (what, frame) in [
        ("no map", vec![0x80]),
        ("nothing", Vec::new()),
        ("an empty map", map(0, &[])),
        ("an id alone", map(1, &[1])),
        ("no id", map(2, &[5, 6])),
        ("two bodies", map(3, &[1, 5, 6])),
        ("kind 1", map(2, &[0, 1])),
        ("kind 8", map(2, &[1, 8])),
        ("the body before the id", vec![0xa2, 5, 0xf6, 1, 7]),
        ("an id in a longer form", [&[0xa2, 1, 0x18, 7][..], &[5, 0xf6]].concat()),
        ("an id that is a text", vec![0xa2, 1, 0x60, 5, 0xf6]),
        ("a byte behind", [&done[..], &[0]].concat()),
        ("cut", done[..4].to_vec()),
    ] {
        // A body of `done` is read by who asked.
        if what != "a byte behind" && what != "cut" {
            frames.add(FRAME, false, what, &frame);
        }
    }
    let other = if frames.by == "client" { 4 } else { 2 };
    let body = |encoder: &mut Encoder| {
        encoder.array(2);
        encoder.uint(3);
        encoder.null();
    };
    frames.add(FRAME, false, "what the other side writes", &carrying(other, &body));
    let refusal = |texts: [Write<'_>; 3], items: usize| {
        carrying(6, &|encoder| {
            encoder.array(items);
            encoder.uint(Reason::NotBound.code());
            texts.iter().take(items - 1).for_each(|text| text(encoder));
        })
    };
    let (most, more) = ("x".repeat(256), "x".repeat(257));
    let (most, more) = (text(&most), text(&more));
    let one = text("ticket");
    frames.add(REFUSED, true, "a field", &refusal([&one, &null, &null], 4));
    frames.add(REFUSED, true, "256 bytes", &refusal([&one, &most, &null], 4));
    frames.add(REFUSED, false, "257 bytes", &refusal([&one, &more, &null], 4));
    frames.add(REFUSED, false, "two texts", &refusal([&one, &null, &null], 3));
    frames.add(REFUSED, false, "a number for a text", &refusal([&uint(1), &null, &null], 4));
    frames.add(REFUSED, false, "no array", &carrying(6, &null));
}

fn requests(frames: &mut Frames<'_>) {
    for (what, body) in [("nothing", &null as Write<'_>), ("a number", &uint(7))] {
        frames.refused(LANE, what, &carrying(3, body), Reason::WrongLane);
    }
    let wait = |ms: u64| asking(5, &|encoder| record(encoder, &[&uint(3), &uint(9), &uint(ms)]));
    let manifest = Manifest::new(ToolId::new("py.find").expect("an id"), EffectClass::Read);
    let manifest = manifest.to_bytes();
    let offer = |more: &'static str| {
        asking(8, &|encoder| {
            encoder.array(1);
            let (manifest, place) = (|encoder: &mut Encoder| raw(encoder, &manifest), text(more));
            match more.is_empty() {
                true => record(encoder, &[&manifest]),
                false => record(encoder, &[&manifest, &place]),
            }
        })
    };
    let begin = |more: &[(u64, &str)], args: Write<'_>| {
        asking(10, &|encoder| {
            let used = |encoder: &mut Encoder| {
                encoder.map(3 + more.len());
                encoder.uint(1);
                encoder.null();
                encoder.uint(2);
                encoder.text("py.find");
                encoder.uint(3);
                args(encoder);
                for (key, text) in more {
                    encoder.uint(*key);
                    encoder.text(text);
                }
            };
            record(encoder, &[&uint(3), &used, &boolean(false)]);
        })
    };
    let settle = |number: u64, value: Write<'_>| {
        asking(11, &|encoder| {
            let came = |encoder: &mut Encoder| {
                encoder.array(2);
                encoder.uint(number);
                value(encoder);
            };
            record(encoder, &[&uint(3), &uint(9), &came]);
        })
    };
    let map = |encoder: &mut Encoder| encoder.map(0);
    let valid: [(&str, Vec<u8>); 18] = [
        ("begin", begin(&[], &map)),
        ("begin, and where", begin(&[(4, "the workspace")], &map)),
        ("begin, where, and which part", begin(&[(4, "the workspace"), (5, "helper")], &map)),
        ("settle", settle(1, &uint(7))),
        ("settle, it failed", settle(2, &text("no such page"))),
        ("settle, not made", settle(3, &text("the user said no"))),
        ("offer", offer("")),
        ("offer, and where", offer("the workspace")),
        (
            "withdraw",
            asking(9, &|encoder| {
                encoder.array(1);
                encoder.text("py.find");
            }),
        ),
        ("take", asking(1, &bytes(&[7; 32]))),
        ("call in CBOR", asking(2, &|encoder| call(encoder, 1, 2, 0))),
        ("call in JSON", asking(2, &|encoder| call(encoder, 2, 2, 0))),
        ("cancel", asking(3, &uint(7))),
        ("close", asking(4, &uint(3))),
        ("wait", wait(0)),
        ("wait for long", wait(600_000)),
        ("tools", asking(6, &uint(3))),
        ("left", asking(7, &uint(3))),
    ];
    for (what, frame) in &valid {
        frames.add(REQUEST, true, what, frame);
        let longer = [&frame[..], &[0]].concat();
        frames.add(REQUEST, false, &format!("{what}, a byte behind"), &longer);
        frames.add(REQUEST, false, &format!("{what}, cut"), &frame[..frame.len() - 1]);
    }
    for (what, frame) in [
        ("take of 31 bytes", asking(1, &bytes(&[7; 31]))),
        ("take of 33 bytes", asking(1, &bytes(&[7; 33]))),
        ("call of form 0", asking(2, &|encoder| call(encoder, 0, 2, 0))),
        ("call of form 5", asking(2, &|encoder| call(encoder, 5, 2, 0))),
        ("call by source 0", asking(2, &|encoder| call(encoder, 1, 0, 0))),
        ("call on behalf of 65", asking(2, &|encoder| call(encoder, 1, 2, 65))),
        ("wait without a limit", asking(5, &|encoder| record(encoder, &[&uint(3), &uint(9)]))),
        ("verb 0", asking(0, &null)),
        ("verb 12", asking(12, &null)),
        ("begin with a sixth entry", begin(&[(6, "the workspace")], &map)),
        ("settle as 4", settle(4, &text("?"))),
        ("settle, it failed by a number", settle(2, &uint(7))),
        ("offer of null", asking(8, &null)),
        ("withdraw of no id", asking(9, &text("py.find"))),
        ("close of null", asking(4, &null)),
        ("no array", carrying(2, &null)),
        (
            "a third item",
            carrying(2, &|encoder| {
                encoder.array(3);
                (0..3).for_each(|_| encoder.uint(4));
            }),
        ),
    ] {
        frames.add(REQUEST, false, what, &frame);
    }
    frames.refused(WAIT, "600001 ms", &wait(600_001), Reason::TooLarge);
    frames.refused(WAIT, "as long as there is", &wait(u64::MAX), Reason::TooLarge);
}

fn answers(frames: &mut Frames<'_>) {
    let order = |verb: u64, value: Write<'_>| {
        carrying(4, &|encoder| {
            encoder.array(2);
            encoder.uint(verb);
            value(encoder);
        })
    };
    frames.add(ORDER, true, "closing", &order(3, &null));
    frames.add(ORDER, false, "closing, with a number", &order(3, &uint(0)));
    frames.add(ORDER, true, "cancel", &order(2, &uint(7)));
    let run = |encoder: &mut Encoder, definition: usize| {
        let definition = vec![7; definition];
        let (tool, agent, definition) = (text("py.find"), text("a"), bytes(&definition));
        let args = |encoder: &mut Encoder| {
            encoder.map(1);
            encoder.text("word");
            encoder.text("x");
        };
        let values: [Write<'_>; 10] = [
            &tool,
            &definition,
            &agent,
            &uint(3),
            &uint(9),
            &args,
            &amounts,
            &uint(1 << 20),
            &boolean(false),
            &uint(0),
        ];
        record(encoder, &values);
    };
    frames.add(ORDER, true, "run", &order(1, &|encoder| run(encoder, 32)));
    frames.add(ORDER, false, "run, a short definition", &order(1, &|encoder| run(encoder, 31)));
    frames.add(ORDER, false, "verb 9", &order(9, &null));
    frames.add(ORDER, false, "no array", &carrying(4, &null));
    let taken = |encoder: &mut Encoder| record(encoder, &[&uint(3), &text("a"), &bytes(&[7; 32])]);
    frames.answer(true, 1, "taken", &taken);
    frames.answer(false, 1, "taken, an agent of no form", &|encoder| {
        record(encoder, &[&uint(3), &text("A agent"), &bytes(&[7; 32])]);
    });
    frames.answer(false, 1, "taken, without a token", &|encoder| {
        record(encoder, &[&uint(3), &text("a")]);
    });
    let choice = |number: u64, value: Write<'_>| {
        let number = uint(number);
        carrying(5, &|encoder| {
            encoder.array(2);
            number(encoder);
            value(encoder);
        })[4..]
            .to_vec()
    };
    for (valid, verb, comment, body) in [
        (true, 10, "out", choice(1, &uint(9))),
        (false, 10, "out, by a text", choice(1, &text("9"))),
        (false, 10, "a third choice", choice(3, &uint(9))),
        (true, 11, "late", choice(2, &uint(9))),
        (false, 11, "an answer that is a number", choice(1, &uint(9))),
    ] {
        frames.answer(valid, verb, &format!("use: {comment}"), &|encoder| raw(encoder, &body));
    }
    frames.answer(true, 9, "null", &null);
    frames.answer(false, 8, "null", &null);
    for verb in [3, 4] {
        frames.answer(verb == 3, verb, "null", &null);
        frames.answer(verb == 4, verb, "a number", &uint(9));
    }
    let stands = |how: u64, why: Write<'_>| {
        let (how, why) = (uint(how), why);
        carrying(5, &|encoder| record(encoder, &[&how, why]))[4..].to_vec()
    };
    for (valid, how, comment, why) in [
        (true, 1, "approved", &null as Write<'_>),
        (true, 2, "denied, and why", &text("not now")),
        (true, 5, "it waits", &null),
        (false, 0, "0", &null),
        (false, 6, "6", &null),
        (false, 2, "why as a number", &uint(1)),
    ] {
        let body = stands(how, why);
        frames.answer(valid, 5, &format!("stands: {comment}"), &|encoder| raw(encoder, &body));
    }
    let tool = |name: &str, standing: u64| {
        let (name, standing) = (name.to_owned(), standing);
        move |encoder: &mut Encoder| {
            let schema = |encoder: &mut Encoder| {
                encoder.map(1);
                encoder.text("type");
                encoder.text("object");
            };
            let (id, model) = (text(&name), text("echo"));
            let (title, about) = (text("Echo"), text("Gives it back."));
            let values: [Write<'_>; 9] = [
                &id,
                &model,
                &title,
                &about,
                &schema,
                &uint(1),
                &uint(0),
                &uint(standing),
                &boolean(true),
            ];
            record(encoder, &values);
        }
    };
    for (valid, comment, name, standing) in [
        (true, "a tool", "echo", 1),
        (true, "one that changed", "echo", 2),
        (false, "an id of no form", "Echo!", 1),
        (false, "a standing of 0", "echo", 0),
    ] {
        let one = tool(name, standing);
        let list = |encoder: &mut Encoder| {
            encoder.array(1);
            one(encoder);
        };
        frames.answer(valid, 6, &format!("tools: {comment}"), &|encoder| {
            record(encoder, &[&list, &uint(1)]);
        });
    }
    let left = |standing: u64, given: Write<'_>| {
        let (standing, given) = (uint(standing), given);
        let values: [Write<'_>; 5] = [&standing, &amounts, given, &uint(9), &uint(8)];
        carrying(5, &|encoder| record(encoder, &values))[4..].to_vec()
    };
    for (valid, comment, body) in [
        (true, "live", left(7, &amounts)),
        (true, "revoked", left(1, &amounts)),
        (false, "a standing of 8", left(8, &amounts)),
        (false, "no list", left(7, &null)),
    ] {
        frames.answer(valid, 7, &format!("left: {comment}"), &|encoder| raw(encoder, &body));
    }
}

/// An item that is written already.
fn raw(encoder: &mut Encoder, item: &[u8]) {
    let item = syscap_format::Canonical::check(item.to_vec(), syscap_format::Profile::CONTROL);
    encoder.item(item.expect("an item").item());
}
