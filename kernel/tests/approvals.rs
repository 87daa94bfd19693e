//! How much one answer of an approver lets through.

use ed25519_dalek::SigningKey;
use kernel_support::driver::{Driver, key, key_change, new_home, parts, public, scenario, start};
use syscap_audit::MemoryStore;
use syscap_format::{
    ApprovalAnswer, ApprovalBody, ApprovalChannel, ControlBody, Decision, EngineIdentity,
    Obligation, PolicyChange, PublicKey, Reason, RecordKind, Role, RoleSet, Seq, Verdict,
};
use syscap_kernel::{Event, Kernel, Level, PolicyEngine, Question, object_of};

/// What a tool that runs code does is not bounded by what a set names.
#[test]
fn code_is_approved_call_by_call() {
    for (tool, most) in [("post", 1_000), ("disk.write", 0)] {
        let mut driver = scenario::narrow(MemoryStore::new());
        let (_, session) = driver.agent("ada", 1);
        driver.call(session, &scenario::call(tool, 17));
        let ask = driver.kernel.asks().next().unwrap();
        assert_eq!(ask.uses_max, most, "{tool}");
        let body = ApprovalBody {
            ask: ask.leaf,
            answer: ApprovalAnswer::Set,
            means: ApprovalChannel::Signer,
            scopes: None,
            uses: Some(2),
            expires: None,
            reason: None,
        };
        let control = driver.sign(&key(Role::Approver), RecordKind::Approval, body.to_bytes());
        let ticket = driver.ticket();
        driver.event(Event::Control(ticket, RecordKind::Approval, control, None, None));
        let said = driver.acked(ticket).map(drop).map_err(|refused| refused.reason());
        let sets = driver.kernel.sets().count();
        match most {
            0 => assert_eq!((said, sets), (Err(Reason::BadControl), 0)),
            _ => assert_eq!((said, sets), (Ok(()), 1)),
        }
    }
}

/// Asks for a person of a level, always; that many of it must approve. The number makes it another
/// policy.
#[derive(Clone)]
struct Elevated {
    number: u8,
    keys: Vec<PublicKey>,
    approvals: u64,
}

impl PolicyEngine for Elevated {
    fn identity(&self) -> EngineIdentity {
        EngineIdentity { name: Box::from("elevated"), version: 1 }
    }

    fn document(&self) -> Vec<u8> {
        vec![0xa1, 0x01, self.number]
    }

    fn decide(&self, _: &Question<'_>) -> Decision {
        let obligations = vec![Obligation::elevated()];
        Decision { obligations, ..Decision::plain(Verdict::Ask) }
    }

    fn level(&self, _: &str) -> Option<Level> {
        let (keys, approvals) = (self.keys.clone(), self.approvals);
        Some(Level { keys, approvals, means: vec![ApprovalChannel::Signer] })
    }
}

fn enforce(driver: &mut Driver<MemoryStore>, engine: &Elevated) {
    let change = PolicyChange { policy: object_of(engine).hash(), shadow: None };
    let control = driver.sign(&key(Role::Policy), RecordKind::Policy, change.to_bytes());
    let ticket = driver.ticket();
    driver.event(Event::Policy(ticket, control, None, vec![Box::new(engine.clone())], None));
    driver.acked(ticket).unwrap();
}

/// The approver's key, and another that approves beside it.
fn two() -> [SigningKey; 2] {
    [key(Role::Approver), SigningKey::from_bytes(&[91; 32])]
}

/// A home with two approvers, of whom one is enough where no policy says more.
fn elevated(approvals: u64) -> (Driver<MemoryStore>, Seq, Elevated) {
    let keys = two().iter().map(public).collect();
    let engine = Elevated { number: 0, keys, approvals };
    let kernel = Kernel::create(new_home(9), parts(engine.clone()), start());
    let mut driver = Driver::with(kernel.unwrap(), MemoryStore::new(), start());
    driver.boot();
    driver.set_tools();
    enforce(&mut driver, &engine);
    let mut change = key_change(&driver.kernel.home(), Role::Approver, &two()[1]);
    change.set = RoleSet::any_of(Role::Approver, two().iter().map(public));
    driver.control(Role::Operator, &change).unwrap();
    let (_, session) = driver.agent("ada", 1);
    (driver, session, engine)
}

/// Calls; whether it ran.
fn runs(driver: &mut Driver<MemoryStore>, session: Seq) -> bool {
    let ticket = driver.call(session, &scenario::call("post", 17));
    match driver.reply(ticket).reason() {
        None => true,
        Some(reason) => {
            assert_eq!(reason, Reason::Asked);
            false
        }
    }
}

fn approve(driver: &mut Driver<MemoryStore>, by: &SigningKey) {
    let ask = driver.kernel.asks().last().unwrap().leaf;
    let body = ApprovalBody {
        ask,
        answer: ApprovalAnswer::Once,
        means: ApprovalChannel::Signer,
        scopes: None,
        uses: None,
        expires: None,
        reason: None,
    };
    driver.control_by(by, &body).unwrap();
}

/// A level may ask for more approvals than the role does, and never for fewer.
#[test]
fn as_many_approve_as_the_level_asks_for() {
    for approvals in [0, 1, 2] {
        let (mut driver, session, _) = elevated(approvals);
        let needed = approvals.max(1);
        for by in two().iter().take(usize::try_from(needed).unwrap()) {
            assert!(!runs(&mut driver, session), "{approvals}");
            assert_eq!(driver.kernel.asks().last().unwrap().threshold, needed);
            approve(&mut driver, by);
        }
        assert!(runs(&mut driver, session), "{approvals}");
    }
    // Where there are fewer of them nobody is asked.
    let (mut driver, session, _) = elevated(3);
    assert!(!runs(&mut driver, session));
    assert_eq!(driver.kernel.asks().count(), 0);
}

/// Whom one policy names as approvers of a level, another may not.
#[test]
fn approval_of_a_level_counts_under_its_policy() {
    let (mut driver, session, engine) = elevated(1);
    assert!(!runs(&mut driver, session));
    approve(&mut driver, &two()[0]);
    let first = driver.kernel.asks().last().unwrap().leaf;
    enforce(&mut driver, &Elevated { number: 1, ..engine.clone() });
    assert!(!runs(&mut driver, session));
    assert_ne!(driver.kernel.asks().last().unwrap().leaf, first);
    enforce(&mut driver, &engine);
    assert!(runs(&mut driver, session), "the policy that asked is in force again");
}
