//! A home on disk whose database somebody rewrites: with SQL, and without the keys.

use std::fs;
use std::path::{Path, PathBuf};

use host_support::new_home;
use rusqlite::{Connection, params};
use syscap::FileKeys;
use syscap::format::{Body, ClockFlags, Head, Leaf, Object, ObjectKind, Record, Seq, leaf};
use syscap::kernel::Halt;
use syscap::prelude::*;
use syscap::verify::{Fault, Options, Report, TrustSource, verify_home};
use tempfile::TempDir;

/// A closed home whose keys and trust file lie elsewhere.
pub(crate) struct World {
    pub(crate) dir: TempDir,
    pub(crate) home: PathBuf,
    pub(crate) token: TokenId,
}

pub(crate) fn grant(agent: &str) -> Grant {
    Grant::to(agent).tools(["fs.read", "fs.write", "echo"]).workspace()
}

impl World {
    /// What `use_it` does is on record; then keys and trust file are taken away.
    pub(crate) fn new(use_it: impl FnOnce(&Runtime, &Session, TokenId)) -> Self {
        let (dir, home) = new_home();
        let rt = Runtime::create(&home).unwrap();
        let token = rt.issue(grant("ada")).unwrap();
        let session = rt.session("ada", token).unwrap();
        use_it(&rt, &session, token);
        rt.close().unwrap();
        fs::rename(home.join("keys"), dir.path().join("keys")).unwrap();
        fs::rename(home.join("trust.cbor"), dir.path().join("trust.cbor")).unwrap();
        Self { dir, home, token }
    }

    pub(crate) fn keys(&self) -> FileKeys {
        FileKeys::open(&self.dir.path().join("keys")).unwrap()
    }

    /// Opens it as its owner does, who has kept keys and trust file.
    pub(crate) fn open(&self) -> Result<Runtime, Error> {
        let trust = fs::read(self.dir.path().join("trust.cbor")).unwrap();
        let trust = syscap::verify::Trust::from_bytes(&trust).unwrap();
        syscap::Options::new().signer(self.keys()).trust(trust).open(&self.home)
    }

    /// Why it does not open.
    pub(crate) fn halt(&self) -> Halt {
        match self.open() {
            Err(Error::Halted(halt)) => halt,
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("it opens"),
        }
    }

    pub(crate) fn verify(&self) -> Report {
        let trust = TrustSource::File(self.dir.path().join("trust.cbor"));
        verify_home(&self.home, &Options { trust, ..Options::default() }).unwrap()
    }

    pub(crate) fn faults(&self) -> Vec<(u64, Fault)> {
        let findings = self.verify().findings;
        findings.iter().map(|finding| (finding.seq.get(), finding.fault)).collect()
    }

    pub(crate) fn records(&self) -> Vec<Record> {
        rows(&self.home).iter().map(|bytes| Record::decode(bytes).unwrap()).collect()
    }

    /// Appends records, each chained to the one before, as plain SQL does. Gives the position of
    /// the first.
    pub(crate) fn append(&self, bodies: Vec<Body>, objects: &[Object]) -> u64 {
        let before = self.records();
        let mut last = before.last().unwrap().clone();
        let first = last.seq.get() + 1;
        let mut head = leaf(rows(&self.home).last().unwrap());
        let connection = connect(&self.home);
        for body in bodies {
            last = Record {
                seq: last.seq.next(),
                prev: head,
                time: last.time,
                boot: last.boot,
                clock: ClockFlags::default(),
                body,
            };
            let bytes = last.encode();
            head = leaf(&bytes);
            let seq = i64::try_from(last.seq.get()).unwrap();
            let sql = "INSERT INTO records (seq, body) VALUES (?1, ?2)";
            connection.execute(sql, params![seq, bytes]).unwrap();
            let sql = "UPDATE head SET seq = ?1, leaf = ?2";
            connection.execute(sql, params![seq, head.as_bytes()]).unwrap();
        }
        for object in objects {
            let sql = "INSERT OR IGNORE INTO objects (id, kind, body) VALUES (?1, ?2, ?3)";
            let kind = i64::try_from(object.kind.code()).unwrap();
            connection.execute(sql, params![object.id.as_bytes(), kind, object.bytes]).unwrap();
        }
        first
    }

    /// Rewrites the whole log: every position and link is made anew.
    pub(crate) fn rewrite(&self, change: impl FnOnce(&mut Vec<Record>)) {
        let mut records = self.records();
        change(&mut records);
        let mut prev = Leaf::from_bytes([0; 32]);
        let mut bytes = Vec::new();
        for (seq, record) in (0..).zip(&mut records) {
            (record.seq, record.prev) = (Seq::new(seq), prev);
            bytes.push(record.encode());
            prev = leaf(bytes.last().unwrap());
        }
        replace(&self.home, &bytes);
    }
}

/// Puts other rows in the place of all records, and leaves the schema as it was.
pub(crate) fn replace(home: &Path, bytes: &[Vec<u8>]) {
    let connection = connect(home);
    let mut statement =
        connection.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").unwrap();
    let triggers: Vec<(String, String)> = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    drop(statement);
    for (name, _) in &triggers {
        connection.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
    }
    connection.execute_batch("DELETE FROM records").unwrap();
    for (seq, bytes) in (0_i64..).zip(bytes) {
        let sql = "INSERT INTO records (seq, body) VALUES (?1, ?2)";
        connection.execute(sql, params![seq, bytes]).unwrap();
    }
    let (seq, head) = (bytes.len() - 1, leaf(bytes.last().unwrap()));
    let sql = "UPDATE head SET seq = ?1, leaf = ?2";
    connection.execute(sql, params![i64::try_from(seq).unwrap(), head.as_bytes()]).unwrap();
    for (_, sql) in triggers {
        connection.execute_batch(&sql).unwrap();
    }
}

fn connect(home: &Path) -> Connection {
    Connection::open(home.join("home.db")).unwrap()
}

/// All records' bytes.
pub(crate) fn rows(home: &Path) -> Vec<Vec<u8>> {
    let connection = connect(home);
    let mut statement = connection.prepare("SELECT body FROM records ORDER BY seq").unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Where a log ends.
pub(crate) fn head_of(home: &Path) -> Head {
    let rows = rows(home);
    Head { seq: Seq::new(rows.len() as u64 - 1), leaf: leaf(rows.last().unwrap()) }
}

/// An object of a kind, by its name.
pub(crate) fn object(kind: ObjectKind, id: [u8; 32], bytes: Vec<u8>) -> Object {
    Object { kind, id: syscap::format::ObjectId::from_bytes(id), bytes }
}
