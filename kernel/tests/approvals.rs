//! How much one answer of an approver lets through.

use kernel_support::driver::{key, scenario};
use syscap_audit::MemoryStore;
use syscap_format::{
    ApprovalAnswer, ApprovalBody, ApprovalChannel, ControlBody, Reason, RecordKind, Role,
};
use syscap_kernel::Event;

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
