//! A home where the policy lets everything through, and a session that may call every tool.

use host_support::records;
use syscap::format::{
    Body, Decision, Durability, EngineIdentity, Item, Late, Obligation, Outcome, Record, Verdict,
};
use syscap::kernel::{Kernel, PolicyEngine, Question};
use syscap::prelude::*;
use syscap::verify::{Options as VerifyOptions, Soundness as Verified, TrustSource, verify_home};

/// Lets all through; a call with `careful: true` only as one that changes nothing.
pub(crate) struct Lenient;

impl PolicyEngine for Lenient {
    fn identity(&self) -> EngineIdentity {
        EngineIdentity { name: Box::from("lenient"), version: 1 }
    }

    fn document(&self) -> Vec<u8> {
        vec![0xa0]
    }

    fn decide(&self, question: &Question<'_>) -> Decision {
        if question.args.get("careful").and_then(Item::as_bool) != Some(true) {
            return Decision::plain(Verdict::Allow);
        }
        let obligations = vec![Obligation::read_only()];
        Decision { obligations, ..Decision::plain(Verdict::Degrade) }
    }
}

pub(crate) struct World {
    folder: tempfile::TempDir,
    pub(crate) rt: Runtime,
    pub(crate) agent: Session,
}

pub(crate) fn options() -> Options {
    Options::new().durability(Durability::Process).policy(Lenient)
}

impl World {
    /// A home with these tools, for an agent that may call them.
    pub(crate) fn with(options: Options, tools: &[&str]) -> Self {
        Self::granting(options, Grant::to("a").tools(tools))
    }

    pub(crate) fn granting(options: Options, grant: Grant) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let rt = options.create(folder.path().join("home")).unwrap();
        let token = rt.issue(grant).unwrap();
        let agent = rt.session("a", token).unwrap();
        Self { folder, rt, agent }
    }

    /// The records that are durable.
    pub(crate) fn records(&self) -> Vec<Record> {
        records(&self.folder.path().join("home"))
    }

    pub(crate) fn outcomes(&self) -> Vec<Outcome> {
        let records = self.records().into_iter();
        let outcomes = records.filter_map(|record| match record.body {
            Body::Outcome(outcome) => Some(*outcome),
            _ => None,
        });
        outcomes.collect()
    }

    /// What the runs that had been given up came to.
    pub(crate) fn lates(&self) -> Vec<Late> {
        let late = |record: Record| match record.body {
            Body::Late(late) => Some(*late),
            _ => None,
        };
        self.records().into_iter().filter_map(late).collect()
    }

    /// The last outcome.
    pub(crate) fn outcome(&self) -> Outcome {
        self.outcomes().pop().unwrap()
    }

    /// Waits until this holds of the home.
    pub(crate) fn until(&self, holds: impl Fn(&Self) -> bool) {
        for _ in 0..10_000 {
            if holds(self) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("it did not come to that");
    }

    /// Whether a run that had been given up is back: its place is free.
    pub(crate) fn is_back(&self) -> bool {
        let holds =
            |kernel: &Kernel| kernel.tokens().any(|t| t.held.get(Dimension::Concurrent) > 0);
        !self.rt.look(holds).unwrap()
    }

    /// Closes the home; the log must be sound, and tell of so many runs that came back late.
    pub(crate) fn close_after(self, late: usize) {
        let Self { folder, rt, agent } = self;
        drop(agent);
        rt.close().unwrap();
        let home = folder.path().join("home");
        let trust = TrustSource::File(home.join("trust.cbor"));
        let options = VerifyOptions { trust, ..VerifyOptions::default() };
        assert_eq!(verify_home(&home, &options).unwrap().verdict(), Verified::Sound);
        let is_late = |record: &&Record| matches!(record.body, Body::Late(_));
        assert_eq!(records(&home).iter().filter(is_late).count(), late);
    }

    pub(crate) fn close(self) {
        self.close_after(0);
    }
}
