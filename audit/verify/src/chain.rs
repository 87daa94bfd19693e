//! The chain: bytes, positions, links. The ledger checks the records' contents.

use std::collections::BTreeMap;

use syscap_format::{
    Body, ClockFlags, Genesis, Head, HomeId, Leaf, RECORD_BYTES_MAX, Record, RecordError,
    RecordKind, Seq, Trust, UnixMillis, leaf,
};

use super::ledger::Ledger;
use super::options::Extent;
use super::report::{Anchor, AnchorNeed, End, Fault, Findings, Newer, Report};
use super::source::{Chunk, Source};

/// How far the chain was followed.
struct Chain {
    head: Option<Head>,
    records: u64,
    counts: [u64; KINDS],
    first_time: UnixMillis,
    ledger: Option<Ledger>,
    /// The home, by the log's first record.
    named: Option<HomeId>,
    /// The last record that was held against all before it.
    verified: Option<Head>,
    /// The first record that only newer software can read.
    newer: Option<Newer>,
    /// A head that was noted outside.
    noted: Option<Head>,
    findings: Findings,
}

/// Room for every kind's number.
const KINDS: usize = 32;

/// The next step along the chain.
enum Step {
    On,
    Broken,
}

/// Follows the whole chain.
pub(super) fn walk<E>(
    source: &mut dyn Source<Error = E>,
    extent: Extent,
    trust: Option<&Trust>,
    noted: Option<Head>,
) -> Result<Report, E> {
    let mut chain = Chain {
        head: None,
        records: 0,
        counts: [0; KINDS],
        first_time: UnixMillis::default(),
        ledger: None,
        named: None,
        verified: None,
        newer: None,
        noted,
        findings: Findings::default(),
    };
    let mut chunk = Chunk::default();
    let last = match extent {
        Extent::Live(head) => Some(head.seq),
        Extent::AtRest | Extent::Head(_) => None,
    };
    'all: loop {
        chunk.clear();
        source.read(chain.next(), &mut chunk)?;
        if chunk.is_empty() {
            break;
        }
        for bytes in chunk.records() {
            if let Step::Broken = chain.link(bytes, source, trust)? {
                break 'all;
            }
            if last.is_some() && chain.head.map(|head| head.seq) == last {
                break 'all;
            }
        }
    }
    Ok(chain.report(extent, trust))
}

impl Chain {
    fn next(&self) -> Seq {
        self.head.map_or(Seq::GENESIS, |head| head.seq.next())
    }

    fn broken(&mut self, fault: Fault) -> Step {
        let seq = self.next();
        self.findings.add(seq, fault);
        Step::Broken
    }

    /// Adds a record.
    fn link<E>(
        &mut self,
        bytes: &[u8],
        source: &mut dyn Source<Error = E>,
        trust: Option<&Trust>,
    ) -> Result<Step, E> {
        if bytes.len() > RECORD_BYTES_MAX {
            return Ok(self.broken(Fault::TooLarge));
        }
        let read = match Record::decode(bytes) {
            Err(RecordError::Damaged(_)) if self.newer.is_none() => {
                return Ok(self.broken(Fault::Undecodable));
            }
            read => read,
        };
        let placed = match &read {
            Ok(record) => Ok((record.seq, record.prev)),
            Err(_) => Record::link(bytes),
        };
        let Ok((seq, prev)) = placed else {
            return Ok(self.broken(Fault::Undecodable));
        };
        if seq != self.next() {
            return Ok(self.broken(Fault::Gap));
        }
        let before = self.head.map_or(Leaf::from_bytes([0; 32]), |head| head.leaf);
        if prev != before {
            return Ok(self.broken(Fault::Unchained));
        }
        let head = Head { seq, leaf: leaf(bytes) };
        if self.noted.is_some_and(|noted| noted.seq == seq && noted != head) {
            self.findings.add(seq, Fault::HeadMoved);
        }
        // What follows on what can't be read can't be judged: only its place in the chain.
        if self.newer.is_some() {
            self.head = Some(head);
            return Ok(Step::On);
        }
        let record = match read {
            Ok(record) => record,
            Err(RecordError::TooOld(_)) => return Ok(self.broken(Fault::UnknownForm)),
            Err(what) => return Ok(self.cannot_read(head, what, trust)),
        };
        let kind = record.body.kind();
        match &mut self.ledger {
            Some(ledger) => ledger.enter(record, head.leaf, source, &mut self.findings)?,
            None => {
                if let Step::Broken = self.begin(&record, head.leaf, trust) {
                    return Ok(Step::Broken);
                }
            }
        }
        if let Some(ledger) = &mut self.ledger {
            ledger.follow(head.leaf);
        }
        (self.head, self.verified) = (Some(head), Some(head));
        self.records = self.records.saturating_add(1);
        let place = usize::try_from(kind.code()).unwrap_or(0);
        if let Some(count) = self.counts.get_mut(place) {
            *count = count.saturating_add(1);
        }
        Ok(Step::On)
    }

    /// Newer software wrote it: from here on the chain alone is followed.
    fn cannot_read(&mut self, head: Head, what: RecordError, trust: Option<&Trust>) -> Step {
        // The first record's leaf is the home's id, whatever it says.
        let home = *self.named.get_or_insert(HomeId::from_bytes(*head.leaf.as_bytes()));
        if self.ledger.is_none() && trust.is_some_and(|trust| trust.home != home) {
            return self.broken(Fault::Foreign);
        }
        self.newer = Some(Newer { seq: head.seq, what });
        self.head = Some(head);
        Step::On
    }

    fn begin(&mut self, record: &Record, leaf: Leaf, trust: Option<&Trust>) -> Step {
        let Body::Genesis(genesis) = &record.body else {
            return self.broken(Fault::NotGenesis);
        };
        if record.boot != 0 || record.clock != ClockFlags::default() {
            return self.broken(Fault::NotGenesis);
        }
        let home = HomeId::from_bytes(*leaf.as_bytes());
        self.named = Some(home);
        let Genesis { roles, .. } = &**genesis;
        if trust.is_some_and(|trust| trust.home != home || trust.roles != *roles) {
            return self.broken(Fault::Foreign);
        }
        self.first_time = record.time;
        self.ledger = Some(Ledger::new(home, genesis, record.time));
        Step::On
    }

    fn report(mut self, extent: Extent, trust: Option<&Trust>) -> Report {
        let intact = self.findings.count == 0;
        match extent {
            Extent::Head(head) | Extent::Live(head) if intact && self.head != Some(head) => {
                let seq = self.next();
                self.findings.add(seq, Fault::HeadMoved);
            }
            _ if self.head.is_none() && intact => self.findings.add(Seq::GENESIS, Fault::Empty),
            _ if intact && self.noted.is_some_and(|noted| noted.seq >= self.next()) => {
                let seq = self.next();
                self.findings.add(seq, Fault::HeadMoved);
            }
            _ => {}
        }
        let ledger = self.ledger.as_ref();
        let end = match (extent, ledger) {
            (Extent::Live(_), _) => End::Live,
            (_, Some(ledger)) if ledger.is_shut() => End::Clean,
            _ => End::Unclean,
        };
        let kinds = RecordKind::ALL.iter().filter_map(|kind| {
            let count = self.counts.get(usize::try_from(kind.code()).ok()?)?;
            (*count > 0).then_some((*kind, *count))
        });
        Report {
            home: self.named,
            records: self.records,
            counts: kinds.collect::<BTreeMap<_, _>>(),
            head: self.verified,
            newer: self.newer,
            first_time: self.first_time,
            last_time: ledger.map_or(self.first_time, Ledger::time),
            open_intents: ledger.map(Ledger::open_intents).unwrap_or_default(),
            unknown_intents: ledger.map(Ledger::unknown_intents).unwrap_or_default(),
            end,
            anchor: if trust.is_some() { Anchor::TrustFile } else { Anchor::SelfAnchored },
            anchor_need: AnchorNeed::Optional,
            noted: self.noted,
            findings: self.findings.list,
            findings_count: self.findings.count,
            passed_over: ledger.map(Ledger::passed_over).unwrap_or_default(),
        }
    }
}
