//! Long results: cut between two characters, said to be cut, and read on page by page.

use std::{fs, path::PathBuf};

use host_support::new_home;
use syscap::Args;
use syscap::format::{Canonical, Durability, EffectClass, Item, Label, MapBuilder, Seq, Source};
use syscap::host::{Failure, HostTool};
use syscap::policy::Policy;
use syscap::prelude::*;
use syscap::verify::{Options as VerifyOptions, TrustSource, verify_home};

const TOOLS: [&str; 8] = [
    "fails",
    "fs.list",
    "fs.read",
    "fs.search",
    "memory.read",
    "memory.write",
    "result.page",
    "stranger",
];

struct World {
    _dir: tempfile::TempDir,
    home: PathBuf,
    rt: Runtime,
}

fn world(policy: Option<&str>) -> World {
    let (dir, home) = new_home();
    let stranger = HostTool::new("stranger", EffectClass::Read).unwrap();
    let stranger = stranger.labelled(Label::UNTRUSTED).run(|_| Ok(LONG.repeat(2_000)));
    let fails = HostTool::new("fails", EffectClass::Read).unwrap();
    let fails = fails
        .labelled(Label::UNTRUSTED)
        .run(|_| Err::<String, _>(Failure::new(&LONG.repeat(2_000))));
    let options = Options::new().durability(Durability::Memory).tool(stranger).unwrap();
    let options = options.tool(fails).unwrap();
    let options = match policy {
        Some(json) => options.policy(Policy::from_json(json.as_bytes()).unwrap()),
        None => options,
    };
    let rt = options.create(&home).unwrap();
    World { _dir: dir, home, rt }
}

/// Characters of one to four bytes.
const LONG: &str = "a\u{e4}\u{20ac}\u{1f41d}\n";

impl World {
    fn session(&self) -> Session {
        let budget = Budget::standard().with(Dimension::Calls, 1 << 40);
        let budget = budget.with(Dimension::CpuUs, 1 << 40).with(Dimension::WallUs, 1 << 40);
        let grant = Grant::to("a").tools(TOOLS).workspace().budget(budget);
        self.rt.session("a", self.rt.issue(grant).unwrap()).unwrap()
    }

    fn put(&self, name: &str, text: &[u8]) {
        let workspace = self.home.join("files/agents/a/workspace");
        fs::create_dir_all(&workspace).unwrap();
        fs::write(workspace.join(name), text).unwrap();
    }
}

fn number(answer: &ToolResult, name: &str) -> Option<u64> {
    answer.value().unwrap().get(name).and_then(Item::as_uint)
}

fn text(answer: &ToolResult, name: &str) -> Option<String> {
    answer.value().unwrap().get(name).and_then(Item::as_text).map(str::to_owned)
}

fn flag(answer: &ToolResult, name: &str) -> Option<bool> {
    answer.value().unwrap().get(name).and_then(Item::as_bool)
}

/// `{"$ref": {record, path}}`
fn reference(record: Seq, path: &[&str]) -> Canonical {
    let path = Canonical::list(path.iter().map(|name| Canonical::text(name)));
    let to = MapBuilder::new().uint("record", record.get()).item("path", path.item()).finish();
    MapBuilder::new().item("$ref", to.item()).finish()
}

/// A part of an earlier result.
fn page(session: &Session, of: &Canonical, offset: u64, max_bytes: u64) -> ToolResult {
    let args = Args::new().with("of", of.clone());
    session.call("result.page", args.with("offset", offset).with("max_bytes", max_bytes)).unwrap()
}

/// All of an earlier result, page by page, and how many pages that are.
fn pages(session: &Session, of: &Canonical, max_bytes: u64) -> (String, usize) {
    let (mut whole, mut at, mut count) = (String::new(), Some(0), 0);
    while let Some(offset) = at {
        let shown = page(session, of, offset, max_bytes);
        whole.push_str(&text(&shown, "text").unwrap());
        at = number(&shown, "next_offset");
        count += 1;
    }
    (whole, count)
}

#[test]
fn a_long_result_is_read_page_by_page() {
    let world = world(None);
    let session = world.session();
    let long = LONG.repeat(20_000);
    world.put("long", long.as_bytes());
    let read = session.call("fs.read", args! { "path": "long", "max_bytes": 1_000_000_u64 });
    let of = reference(read.unwrap().receipt().outcome_seq, &["text"]);
    let (whole, count) = pages(&session, &of, 65_537);
    assert_eq!((whole, count), (long.clone(), 4));
    let first = page(&session, &of, 0, 65_537);
    assert_eq!(number(&first, "size_bytes"), Some(u64::try_from(long.len()).unwrap()));
    assert!(number(&first, "next_offset").unwrap() <= 65_537);
    // Beyond the end there is nothing, and it says no more than that.
    let beyond = page(&session, &of, 1 << 40, 100);
    assert_eq!(
        (text(&beyond, "text").unwrap(), number(&beyond, "next_offset")),
        (String::new(), None)
    );
    // What each page refers to is not written once more, and all of it is found.
    let report = Options::new().inspect(&world.home).unwrap().verify_vault().unwrap();
    assert_eq!((report.altered, report.absent), (Vec::new(), 0));
    // A result as a whole is paged as JSON, bytes as bytes.
    (0..300).for_each(|n| world.put(&format!("name{n}"), b""));
    let listed = session.call("fs.list", args! {}).unwrap();
    let of = reference(listed.receipt().outcome_seq, &[]);
    assert_eq!(pages(&session, &of, 1_000).0, listed.to_json());
    world.put("bytes", &[0xff; 1_000]);
    let read = session.call("fs.read", args! { "path": "bytes" }).unwrap();
    let of = reference(read.receipt().outcome_seq, &["bytes"]);
    let shown = page(&session, &of, 990, 100);
    let bytes = shown.value().unwrap().get("bytes").and_then(Item::as_byte_string).unwrap().len();
    assert_eq!((bytes, number(&shown, "next_offset")), (10, None));
    for max_bytes in [0, 3, (256 << 10) + 1] {
        let refused = page(&session, &of, 0, max_bytes);
        assert_eq!(refused.reason(), Some(Reason::BadArgument), "{max_bytes}");
    }
}

/// What a tool gave that failed by its own word can be referred to as a result is, by a call and by a
/// change of the state; what the kernel refused can't.
#[test]
fn failing_tools_words_can_be_referred_to() {
    let world = world(None);
    let session = world.session();
    let failed = session.call("fails", args! {}).unwrap();
    assert_eq!(failed.reason(), Some(Reason::ToolFailed));
    let record = failed.receipt().outcome_seq;
    assert_eq!(pages(&session, &reference(record, &["output"]), 1_024).0, LONG.repeat(2_000));
    let refused = session.call("fs.read", args! { "path": "none" }).unwrap();
    let unknown = refused.receipt().outcome_seq;
    let refused = page(&session, &reference(unknown, &[]), 0, 100);
    assert_eq!(refused.reason(), Some(Reason::UnknownReference));
    let other = page(&world.session(), &reference(record, &["output"]), 0, 100);
    assert_eq!(other.reason(), Some(Reason::UnknownReference));
    let learns = |inputs: &[Seq]| {
        world.rt.observe(&session, Source::Tool, inputs, args! { "fact.seen": true })
    };
    learns(&[record]).unwrap();
    let Err(Error::Refused(refused)) = learns(&[record, unknown]) else { panic!("it was taken") };
    assert_eq!(refused.reason(), Reason::UnknownReference);
    let report = Options::new().inspect(&world.home).unwrap().verify_vault().unwrap();
    assert_eq!((report.altered, report.absent), (Vec::new(), 0));
    let trust = TrustSource::File(world.home.join("trust.cbor"));
    let report = verify_home(&world.home, &VerifyOptions { trust, ..Default::default() }).unwrap();
    assert_eq!(report.findings_count, 0, "{report:?}");
}

/// Who was not given a result can't page through it, and who pages has its label.
#[test]
fn only_what_was_delivered_can_be_paged() {
    let world = world(None);
    let (session, other) = (world.session(), world.session());
    let said = session.call("stranger", args! {}).unwrap();
    let record = said.receipt().outcome_seq;
    let path: &[&str] = if said.value().unwrap().as_text().is_some() { &[] } else { &["text"] };
    let of = reference(record, path);
    assert_eq!(pages(&session, &of, 1_024).0, LONG.repeat(2_000));
    for of in [&of, &reference(Seq::new(1 << 40), &[]), &reference(Seq::GENESIS, &[])] {
        let refused = page(&other, of, 0, 100);
        assert_eq!(refused.reason(), Some(Reason::UnknownReference));
    }
    // What a page shows carries what the whole did.
    let paged = session.artifacts(1).unwrap();
    assert_eq!(paged[0].label, Label::UNTRUSTED);
}

fn capped(bytes: u64) -> String {
    format!(
        r#"{{"v": 1, "constraints": [{{"id": "all", "effect": "allow", "subject": null,
            "when": {{"op": "all", "args": []}}, "on_fail": "block", "reason": "Short.",
            "obligations": [{{"type": "result_cap", "bytes": {bytes}}}]}}]}}"#
    )
}

/// A file is read on from where the last part ended, wherever the limit falls.
#[test]
fn a_file_is_cut_between_two_characters() {
    let world = world(None);
    let session = world.session();
    let long = LONG.repeat(10);
    world.put("long", long.as_bytes());
    for limit in 1..=23_u64 {
        let (mut whole, mut offset) = (Vec::new(), Some(0));
        while let Some(at) = offset {
            let args = args! { "path": "long", "offset": at, "max_bytes": limit };
            let read = session.call("fs.read", args).unwrap();
            let value = read.value().unwrap();
            let (shown, bytes) = (value.get("text"), value.get("bytes"));
            // A limit that is less than a character gives its bytes, so that it goes on.
            assert!(limit < 4 || bytes.is_none(), "{limit}");
            let shown = shown.and_then(Item::as_text).map(str::as_bytes);
            let shown = shown.or(bytes.and_then(Item::as_byte_string)).unwrap();
            assert!(!shown.is_empty() && u64::try_from(shown.len()).unwrap() <= limit);
            whole.extend_from_slice(shown);
            offset = number(&read, "next_offset");
            assert_eq!(flag(&read, "more"), Some(offset.is_some()));
        }
        assert_eq!(whole, long.as_bytes(), "{limit}");
    }
}

/// A policy that takes less gets less, between two characters, and is told.
#[test]
fn capped_result_is_cut_between_two_characters() {
    for cap in 200..=212 {
        let world = world(Some(&capped(cap)));
        let session = world.session();
        let long = LONG.repeat(1_000);
        world.put("long", long.as_bytes());
        let call = |tool: &str, args: Args| {
            let answer = session.call(tool, args).unwrap();
            assert_eq!(answer.reason(), None, "{tool} {cap}");
            assert!(answer.delivered().as_bytes().len() <= usize::try_from(cap).unwrap());
            answer
        };
        let read = call("fs.read", args! { "path": "long" });
        assert!(long.starts_with(&text(&read, "text").unwrap()));
        assert_eq!(flag(&read, "more"), Some(true));
        // A file of it, written beside: the policy lets no tool through that keeps to no cap.
        let memory = world.home.join("files/agents/a/memory");
        fs::create_dir_all(&memory).unwrap();
        fs::write(memory.join("key.txt"), &long).unwrap();
        let kept = call("memory.read", args! { "key": "key" });
        assert_eq!(flag(&kept, "truncated"), Some(true));
        let value = text(&kept, "value").unwrap();
        assert!(long.starts_with(&value) && value.len() > 30, "{value}");
        let of = Canonical::text(&long);
        let shown = page(&session, &of, 0, 10_000);
        assert!(shown.delivered().as_bytes().len() <= usize::try_from(cap).unwrap());
        let next = usize::try_from(number(&shown, "next_offset").unwrap()).unwrap();
        assert_eq!(text(&shown, "text").unwrap(), long[..next]);
    }
    // Where there is no room for a character, it is said, and nothing is promised.
    let world = world(Some(&capped(60)));
    let session = world.session();
    let refused = page(&session, &Canonical::text(LONG), 0, 100);
    assert_eq!(refused.reason(), Some(Reason::ResultTooLarge));
}

#[test]
fn long_memory_value_reads_back_whole() {
    let world = world(None);
    let session = world.session();
    let long = LONG.repeat((64 << 10) / LONG.len());
    let args = args! { "key": "key", "value": &*long };
    assert_eq!(session.call("memory.write", args).unwrap().reason(), None);
    let read = session.call("memory.read", args! { "key": "key" }).unwrap();
    assert_eq!((text(&read, "value").unwrap(), flag(&read, "truncated")), (long, None));
}

#[test]
fn a_line_that_a_search_cuts_is_text_and_says_so() {
    let world = world(None);
    let session = world.session();
    let line = format!("needle {}", "\u{1f41d}".repeat(500));
    for before in 0..4 {
        world.put("long", format!("{}{line}\nneedle\n", "x".repeat(before)).as_bytes());
        let found = session.call("fs.search", args! { "pattern": "needle" }).unwrap();
        let value = found.value().unwrap();
        let matches: Vec<Item<'_>> = value.get("matches").unwrap().elements().collect();
        let shown = matches[0].get("text").and_then(Item::as_text).unwrap();
        assert!((296..=300).contains(&shown.len()), "{before}");
        assert_eq!(matches[0].get("cut").and_then(Item::as_bool), Some(true));
        assert!(matches[1].get("cut").is_none());
    }
}
