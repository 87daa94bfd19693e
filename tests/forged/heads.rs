//! Heads that signers name: old ones are taken, also under load; older than the key's last not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use host_support::new_home;
use syscap::audit::MemoryStore;
use syscap::format::{
    CONTROL_CONTEXT, Control, ControlBody, Durability, Head, PublicKey, RecordKind, Revocation,
    Role, Signature, Signed, preimage,
};
use syscap::keys::Seal;
use syscap::prelude::*;
use syscap::verify::{Extent, FromStore, Options as VerifyOptions, Soundness, verify};
use syscap::{Error, FileKeys, Options, Runtime, Signer, SignerError};

/// Takes its time, as somebody does who types a passphrase: meanwhile the log grows.
struct Slow {
    keys: FileKeys,
    log: MemoryStore,
    grows: Arc<AtomicBool>,
}

impl Signer for Slow {
    fn public_key(&self, role: Role) -> Result<PublicKey, SignerError> {
        self.keys.public_key(role)
    }

    fn sign(&self, role: Role, message: &[u8]) -> Result<Signature, SignerError> {
        let seen = self.log.head();
        let older = |head: Head| seen.is_some_and(|seen| head.seq.get() < seen.seq.get() + 16);
        while role == Role::Revoker
            && self.grows.load(Ordering::Relaxed)
            && self.log.head().is_some_and(older)
        {
            thread::yield_now();
        }
        self.keys.sign(role, message)
    }
}

/// Says, when a caller ends, that the log does not grow any more: nobody waits for that for ever.
struct Ends(Arc<AtomicBool>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Signs a revocation over a head of one's choice.
fn revocation(rt: &Runtime, keys: &FileKeys, token: TokenId, head: Head) -> Control {
    let key = keys.public_key(Role::Revoker).unwrap();
    let counter = rt.look(|kernel| kernel.counter(&key)).unwrap() + 1;
    let body = Revocation::subtree(token).to_bytes();
    let message = Control::message(&rt.id(), &head, &key, counter, RecordKind::Revoke, &body);
    let signature = keys.sign(Role::Revoker, &preimage(CONTROL_CONTEXT, &message)).unwrap();
    Control::by_one(head, body, Signed { key, counter, signature })
}

fn reason(refused: Result<syscap::format::Seq, Error>) -> Reason {
    match refused {
        Err(Error::Refused(refused)) => refused.reason(),
        other => panic!("{other:?}"),
    }
}

/// While calls are recorded all the time, a slow signer's revocations are all taken, and so is one
/// over a head that the kernel has long forgotten.
#[test]
fn a_slow_signer_is_not_starved_by_load() {
    let (dir, home) = new_home();
    let entropy = syscap::SystemEntropy;
    let place = dir.path().join("keys");
    drop(FileKeys::create(&place, &Seal::Open, &entropy).unwrap());
    let open = || FileKeys::open(&place).unwrap();
    let store = MemoryStore::new();
    let grows = Arc::new(AtomicBool::new(false));
    let signer = Slow { keys: open(), log: store.share(), grows: Arc::clone(&grows) };
    let options = Options::new().durability(Durability::Memory).signer(signer);
    let rt = Arc::new(options.store(store.share()).create(&home).unwrap());
    let budget = [Dimension::Calls, Dimension::CpuUs, Dimension::WallUs, Dimension::Concurrent]
        .into_iter()
        .fold(Budget::standard(), |budget, dimension| budget.with(dimension, 1 << 40));
    let grant = |agent: &str| Grant::to(agent).tools(["echo"]).budget(budget);
    let tokens: Vec<TokenId> = (0..12).map(|_| rt.issue(grant("ada")).unwrap()).collect();
    let busy = rt.issue(grant("bob")).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..4)
        .map(|_| {
            let (rt, over) = (Arc::clone(&rt), Arc::clone(&over));
            let grows = Ends(Arc::clone(&grows));
            thread::spawn(move || {
                let _until_the_end = grows;
                let session = rt.session("bob", busy).unwrap();
                while !over.load(Ordering::Relaxed) {
                    session.call("echo", args! { "value": 1 }).unwrap().value().unwrap();
                }
            })
        })
        .collect();
    grows.store(true, Ordering::Relaxed);
    let (last, rest) = tokens.split_last().unwrap();
    for token in rest {
        let before = rt.durable().unwrap();
        let at = rt.revoke(*token).unwrap();
        assert!(at.get() >= before.seq.get() + 16, "calls went on meanwhile");
    }
    // A head that lies more than all that is remembered back.
    let keys = open();
    let old = rt.durable().unwrap();
    while rt.look(|kernel| kernel.remembers(&old)).unwrap() {
        assert!(grows.load(Ordering::Relaxed), "a caller has ended");
        thread::yield_now();
    }
    let elsewhere = Head { leaf: syscap::format::Leaf::from_bytes([7; 32]), ..old };
    let forged = revocation(&rt, &keys, *last, elsewhere);
    assert_eq!(reason(rt.submit(RecordKind::Revoke, forged)), Reason::UnknownHead);
    let stale = Head { seq: syscap::format::Seq::GENESIS, ..genesis(&rt) };
    let stale = revocation(&rt, &keys, *last, stale);
    assert_eq!(reason(rt.submit(RecordKind::Revoke, stale)), Reason::StaleHead);
    let good = revocation(&rt, &keys, *last, old);
    rt.submit(RecordKind::Revoke, good.clone()).unwrap();
    assert_eq!(reason(rt.submit(RecordKind::Revoke, good)), Reason::StaleCounter);
    over.store(true, Ordering::Relaxed);
    callers.into_iter().for_each(|caller| caller.join().unwrap());
    for token in &tokens {
        assert!(rt.look(|kernel| kernel.token(token).unwrap().revoked).unwrap());
    }
    let rt = Arc::into_inner(rt).unwrap();
    rt.close().unwrap();
    let options = VerifyOptions::default();
    let report = verify(&mut FromStore(&mut store.share()), Extent::AtRest, &options).unwrap();
    assert_eq!((report.verdict(), report.findings.len()), (Soundness::Sound, 0));
    // Every head is held against the log when the home is opened, the forgotten one too.
    let options = Options::new().durability(Durability::Memory).signer(open());
    options.store(store.share()).open(&home).unwrap().close().unwrap();
}

/// The first record, as a head.
fn genesis(rt: &Runtime) -> Head {
    let leaf = syscap::format::Leaf::from_bytes(*rt.id().as_bytes());
    Head { seq: syscap::format::Seq::GENESIS, leaf }
}
