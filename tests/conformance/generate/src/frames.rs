//! Vectors of `calls.md`, The socket: the frames that never change. `src/transport/frozen/tests.rs`
//! holds our reader against them.

use std::fs;
use std::path::Path;

use serde_json::json;
use syscap_format::{Canonical, Item, Profile, Reason};

use crate::case::{Cases, Of, hex, unhex};

const FORM: Of = Of("SYSCAP-CALL-052", "two readers of one frame see two frames");
const VERSIONS: Of = Of("SYSCAP-CALL-053", "a version is chosen that a side does not speak");
const LATER: Of = Of("SYSCAP-CALL-054", "a frame of a later version ends the connection");
const UNKNOWN: Of = Of("SYSCAP-CALL-055", "what is not known is taken for what is");
const LENGTH: Of = Of("SYSCAP-CALL-056", "memory that the other side chooses");

/// The examples of the document: name and frame.
fn examples(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let page = fs::read_to_string(folder.join("calls.md")).expect("the document");
    let blocks = page.split("```hex ").skip(1).map(|block| {
        let (name, text) = block.split_once('\n').expect("a name");
        let text = text.split("```").next().expect("a block");
        let digits = text.lines().map(|line| line.split(';').next().unwrap_or_default());
        let bytes = unhex(&digits.collect::<String>().replace(' ', ""));
        (name.to_owned(), bytes[4..].to_vec())
    });
    blocks.collect()
}

fn items(frame: &[u8]) -> Vec<Canonical> {
    let item = Item::check(frame, Profile::CONTROL).expect("canonical");
    item.elements().map(Canonical::from).collect()
}

fn list(items: impl IntoIterator<Item = Canonical>) -> Vec<u8> {
    Canonical::list(items.into_iter().collect::<Vec<_>>().into_iter()).into_bytes()
}

struct Frames<'a> {
    cases: &'a mut Cases,
    /// The writer of the frames.
    by: &'static str,
}

impl Frames<'_> {
    fn add(&mut self, of: Of, valid: bool, comment: &str, bytes: &[u8], answer: Option<Reason>) {
        let mut given = json!({"kind": "frame", "by": self.by, "bytes": hex(bytes)});
        if let Some(reason) = answer {
            given["reason"] = json!(reason.name());
        }
        self.cases.add(of, valid, comment, given);
    }
}

pub(crate) fn cases(folder: &Path) -> Cases {
    let mut cases = Cases::default();
    for (name, frame) in examples(folder) {
        let asks = ["hello", "hello_agents", "revoke", "freeze", "status", "shutdown", "signed"];
        let by = if asks.contains(&&*name) { "who connects" } else { "holder" };
        let mut frames = Frames { cases: &mut cases, by };
        frames.add(FORM, true, &name, &frame, None);
        let items = items(&frame);
        let more = list(items.iter().cloned().chain([Canonical::null()]));
        let less = list(items[..items.len() - 1].iter().cloned());
        let long = [&frame[..1], &[0x18], &frame[1..]].concat();
        let trailing = [&frame[..], &[0]].concat();
        let map = vec![0xa0];
        for (what, bytes) in [
            ("one item more", more),
            ("one item less", less),
            ("its number in a longer form", long),
            ("a byte behind", trailing),
            ("without its head", frame[1..].to_vec()),
            ("a map", map),
        ] {
            frames.add(FORM, false, &format!("{name}, {what}"), &bytes, None);
        }
        for place in 0..items.len() {
            let mut other = items.clone();
            other[place] = Canonical::null();
            let comment = format!("{name}, item {place} null");
            frames.add(FORM, false, &comment, &list(other), None);
        }
        // What the other side writes is none of this side's.
        frames.by = if by == "holder" { "who connects" } else { "holder" };
        frames.add(FORM, false, &format!("{name}, by the other side"), &frame, None);
    }
    let mut frames = Frames { cases: &mut cases, by: "who connects" };
    let bytes = |head: &[u8], more: &[u8]| [head, more].concat();
    let short = bytes(&[0x83, 4, 7, 0x58, 0x1f], &[0; 31]);
    frames.add(FORM, false, "revoke of 31 bytes", &short, None);
    frames.add(FORM, false, "an empty frame", &[], None);
    frames.add(FORM, false, "number 0", &[0x82, 0, 1], None);
    frames.add(VERSIONS, true, "one version", &[0x84, 1, 2, 2, 1], None);
    frames.add(VERSIONS, false, "none", &[0x84, 1, 2, 1, 1], None);
    frames.add(LATER, true, "number 12", &[0x83, 12, 3, 0xf6], Some(Reason::UnknownVersion));
    frames.add(LATER, true, "number 23, an id alone", &[0x82, 23, 3], Some(Reason::UnknownVersion));
    frames.add(LATER, false, "number 12 without an id", &[0x81, 12], None);
    frames.add(LATER, false, "number 12, its id null", &[0x82, 12, 0xf6], None);
    frames.add(LATER, false, "number 12, a byte behind", &[0x82, 12, 3, 0], None);
    let lane = Some(Reason::WrongLane);
    frames.add(UNKNOWN, true, "a third lane", &[0x84, 1, 1, 1, 3], lane);
    for (comment, frame) in [
        ("freeze of a fourth target", &[0x85, 5, 3, 4, 0x60, 1][..]),
        ("freeze, a third change", &[0x85, 5, 3, 3, 0x60, 3]),
        ("signed, kind 0", &[0x85, 8, 3, 0, 2, 0x40]),
        ("signed, a record that is no control event", &[0x85, 8, 3, 1, 2, 0x40]),
        ("signed, a kind that is not known", &[0x85, 8, 3, 0x18, 99, 2, 0x40]),
    ] {
        frames.add(UNKNOWN, true, comment, frame, Some(Reason::BadControl));
    }
    let event = |length: usize| {
        let [high, low] = u16::try_from(length).expect("short").to_be_bytes();
        bytes(&[0x85, 8, 3, 7, 2, 0x59, high, low], &vec![0; length])
    };
    frames.add(LENGTH, true, "4096 bytes", &event(4096 - 8), None);
    frames.add(LENGTH, false, "4097 bytes", &event(4097 - 8), None);
    frames.by = "holder";
    frames.add(VERSIONS, false, "turned away, no versions", &[0x84, 3, 0x18, 0x6a, 4, 3], None);
    let later = [0x84, 0x0a, 7, 0x19, 0x27, 0x0f, 0x60];
    frames.add(FORM, true, "refused for a reason of a later version", &later, None);
    cases
}
