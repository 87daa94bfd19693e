//! What a call makes the host read is bounded, and no commit waits for it.
//!
//! With 31 large requests waiting, each small call of an agent once read all of them under the
//! store's lock, and another agent made 0.7 calls a second instead of 85. Tests count rows and
//! bytes, and reads on the handle that commits.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};

use syscap::audit::MemoryStore;
use syscap::format::{
    ApprovalAnswer, Durability, EffectClass, Item, Object, ObjectId, Param, ParamType, Reason, Seq,
};
use syscap::host::HostTool;
use syscap::kernel::{Batch, Next, Room, Settled, Store, StoreError};
use syscap::prelude::*;

const MEGABYTE: usize = 1_000_000;

/// What was read of the vault since the home was opened.
#[derive(Default)]
struct Reads {
    rows: AtomicU64,
    bytes: AtomicU64,
    /// Reads on the handle that commits, once the home is open.
    locked: AtomicU64,
    open: AtomicBool,
    /// How often what was committed was moved out of the journal.
    settles: AtomicU64,
}

impl Reads {
    /// Rows and bytes since the last look.
    fn taken(&self) -> (u64, u64) {
        assert_eq!(self.locked.load(SeqCst), 0, "no read holds the lock of commits");
        (self.rows.swap(0, SeqCst), self.bytes.swap(0, SeqCst))
    }
}

/// A store that counts; `commits` says whether this handle is the one that commits.
struct Counted {
    inner: MemoryStore,
    reads: Arc<Reads>,
    commits: bool,
}

impl Counted {
    fn locked(&self) {
        if self.commits && self.reads.open.load(SeqCst) {
            self.reads.locked.fetch_add(1, SeqCst);
        }
    }
}

impl Store for Counted {
    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        self.inner.commit(batch)
    }

    fn records(
        &mut self,
        from: Seq,
        each: &mut dyn FnMut(Seq, &[u8]) -> Next,
    ) -> Result<(), StoreError> {
        self.locked();
        self.inner.records(from, each)
    }

    fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, StoreError> {
        self.locked();
        self.inner.object(id)
    }

    fn vault(&mut self, seq: Seq) -> Result<Option<Vec<u8>>, StoreError> {
        self.locked();
        let row = self.inner.vault(seq)?;
        self.reads.rows.fetch_add(1, SeqCst);
        self.reads.bytes.fetch_add(row.as_ref().map_or(0, |row| row.len() as u64), SeqCst);
        Ok(row)
    }

    fn vault_len(&mut self, seq: Seq) -> Result<Option<usize>, StoreError> {
        self.locked();
        self.inner.vault_len(seq)
    }

    fn reader(&self) -> Result<Option<Box<dyn Store>>, StoreError> {
        let (inner, reads) = (self.inner.share(), Arc::clone(&self.reads));
        Ok(Some(Box::new(Self { inner, reads, commits: false })))
    }

    fn room(&mut self) -> Result<Room, StoreError> {
        self.inner.room()
    }

    fn settle(&mut self) -> Result<Settled, StoreError> {
        self.reads.settles.fetch_add(1, SeqCst);
        self.inner.settle()
    }
}

struct World {
    _folder: tempfile::TempDir,
    reads: Arc<Reads>,
    rt: Runtime,
    agent: Session,
}

/// A home with a tool that asks and one that gives and takes texts.
fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let asks = HostTool::new("mail.send", EffectClass::ExternalWrite).unwrap();
    let asks = asks.text("body", "What.").run(|_| Ok("sent"));
    let gives = HostTool::new("text.give", EffectClass::Read).unwrap();
    let gives = gives.integer("bytes", "How many.").run(|call| {
        let bytes = call.integer("bytes").unwrap_or(0);
        Ok("x".repeat(usize::try_from(bytes).unwrap_or(0)))
    });
    let takes = HostTool::new("text.take", EffectClass::Pure).unwrap();
    let takes = takes
        .arg(Param::required("parts", ParamType::List, "Texts."))
        .result_bytes_max(100)
        .run(|_| Ok("taken"));
    let reads = Arc::new(Reads::default());
    let (inner, counts) = (MemoryStore::new(), Arc::clone(&reads));
    let options = Options::new().durability(Durability::Memory);
    let options = options.store(Counted { inner, reads: counts, commits: true });
    let options = options.tool(asks).unwrap().tool(gives).unwrap().tool(takes).unwrap();
    let rt = options.create(folder.path().join("home")).unwrap();
    let tools = ["mail.send", "text.give", "text.take"];
    let token = rt.issue(Grant::to("a").tools(tools)).unwrap();
    let agent = rt.session("a", token).unwrap();
    reads.open.store(true, SeqCst);
    World { _folder: folder, reads, rt, agent }
}

impl World {
    fn send(&self, body: &str) -> ToolResult {
        self.agent.call("mail.send", args! { "body": body }).unwrap()
    }

    /// A call that refers to these results.
    fn take(&self, records: &[u64]) -> ToolResult {
        let part = |record: &u64| format!(r#"{{"$ref": {{"record": {record}, "path": []}}}}"#);
        let parts: Vec<String> = records.iter().map(part).collect();
        let args = format!(r#"{{"parts": [{}]}}"#, parts.join(", "));
        self.agent.request("text.take").json(&args, Escapes::Read).wait().unwrap()
    }

    fn give(&self, bytes: usize) -> u64 {
        let given = self.agent.call("text.give", args! { "bytes": bytes as u64 }).unwrap();
        assert_eq!(given.reason(), None);
        given.receipt().outcome_seq.get()
    }
}

#[test]
fn small_call_beside_large_requests_reads_nothing() {
    let world = world();
    let large: Vec<String> = (0..31).map(|n| format!("{n}{}", "x".repeat(MEGABYTE))).collect();
    for body in &large {
        assert_eq!(world.send(body).reason(), Some(Reason::Asked));
    }
    world.reads.taken();
    let small = world.send("hello").ask().unwrap();
    assert_eq!(world.reads.taken(), (0, 0));
    // What waits is found again, large or small, by the index alone.
    assert_eq!(world.send("hello").ask(), Some(small));
    let first = world.send(&large[0]).ask().unwrap();
    assert!(first < small);
    assert_eq!(world.reads.taken(), (0, 0));
    // What was granted without conditions rests on no text, nor does a refusal without a reason.
    world.rt.answer(small, ApprovalAnswer::Once, None).unwrap();
    world.rt.answer(first, ApprovalAnswer::Deny, None).unwrap();
    world.reads.taken();
    assert_eq!(world.send("hello").text().unwrap(), "sent");
    assert_eq!(world.send(&large[0]).reason(), Some(Reason::ApprovalDenied));
    assert_eq!(world.reads.taken(), (0, 0));
}

#[test]
fn denied_request_reads_its_reason_alone() {
    let world = world();
    let body = "x".repeat(MEGABYTE);
    let ask = world.send(&body).ask().unwrap();
    world.rt.answer(ask, ApprovalAnswer::Deny, Some("not today")).unwrap();
    world.reads.taken();
    let refused = world.send(&body);
    assert_eq!(refused.reason(), Some(Reason::ApprovalDenied));
    let (rows, bytes) = world.reads.taken();
    assert_eq!(rows, 1);
    assert!(bytes < 256, "{bytes}");
}

#[test]
fn references_beyond_the_bound_are_refused_unread() {
    let world = world();
    let records: Vec<u64> = (0..16).map(|_| world.give(MEGABYTE)).collect();
    world.reads.taken();
    let refused = world.take(&records);
    assert_eq!(refused.reason(), Some(Reason::TooLarge));
    assert_eq!(world.reads.taken(), (0, 0));
    // Within the bound of what is read, and beyond the bound of what a call may say.
    let refused = world.take(&records[..2]);
    assert_eq!(refused.reason(), Some(Reason::TooLarge));
    let (rows, bytes) = world.reads.taken();
    assert!(rows <= 4 && bytes <= 3 * MEGABYTE as u64, "{rows} {bytes}");
    // Parts are counted as they are taken out: one large result, sixteen times, is never put
    // together.
    let refused = world.take(&[records[0]; 16]);
    let field = refused.delivered().item().get("field").and_then(Item::as_text);
    assert_eq!((refused.reason(), field), (Some(Reason::TooLarge), Some("$ref")));
}

#[test]
fn references_read_each_result_once() {
    let world = world();
    let record = world.give(1_000);
    world.reads.taken();
    let taken = world.take(&[record; 16]);
    assert_eq!(taken.reason(), None);
    // The row of the call and that of its result.
    let (rows, bytes) = world.reads.taken();
    assert_eq!(rows, 2);
    assert!(bytes < 2_000, "{bytes}");
}

#[test]
fn repeated_key_reads_its_outcome_off_the_lock() {
    let world = world();
    let give = || {
        world.agent.request("text.give").args(args! { "bytes": 100_u64 }).key("k").wait().unwrap()
    };
    assert_eq!(give().reason(), None);
    world.reads.taken();
    assert_eq!(give().text().unwrap().len(), 100);
    let (rows, bytes) = world.reads.taken();
    assert_eq!(rows, 2);
    assert!(bytes < 1_000, "{bytes}");
}

/// A boot moves what it wrote out of the store's journal, once; no call does.
#[test]
fn boot_settles_the_store_once_and_calls_never() {
    let world = world();
    assert_eq!(world.reads.settles.load(SeqCst), 1);
    for _ in 0..10 {
        world.give(1);
    }
    assert_eq!(world.reads.settles.load(SeqCst), 1);
}
