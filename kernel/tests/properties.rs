//! Whatever comes in whatever order: nothing is overspent, nothing is answered unrecorded, and
//! the log replays to the same state, byte for byte. The fuzz target `events` is the same.

mod oddities;

use std::collections::BTreeMap;

use kernel_support::history::{Bytes, begin, run, step};
use kernel_support::sim;
use syscap_format::{
    ApprovalAnswer, ApprovalBody, Body, ControlBody as _, Dimension, Reason, Verdict as PolicySays,
};

use oddities::oddities;
use proptest::{prelude::*, strategy::ValueTree as _};

fn cases() -> u32 {
    if std::env::var_os("SYSCAP_LONG").is_some() { 20_000 } else { 600 }
}

/// The random histories reach what there is to reach.
#[test]
fn histories_have_everything_in_them() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let bytes = proptest::collection::vec(any::<u8>(), 300..600);
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for _ in 0..500 {
        // No fault, and probes.
        let mut sim = begin(&mut Bytes(&[1]));
        let bytes = bytes.new_tree(&mut runner).unwrap().current();
        let mut input = Bytes(&bytes);
        while !input.is_empty() && sim.kernel.halted().is_none() {
            step(&mut sim, &mut input);
        }
        sim.commit();
        let log = sim::records(&mut sim);
        for (name, count) in oddities(&log) {
            *seen.entry(name).or_default() += count;
        }
        for record in &log {
            let paid = match &record.body {
                Body::Intent(intent) => intent.call.held.get(Dimension::CreditsMicro) > 0,
                _ => false,
            };
            *seen.entry("paid with credits").or_default() += u32::from(paid);
            let approved =
                matches!(&record.body, Body::Intent(intent) if intent.approval.is_some());
            *seen.entry("approved, ran").or_default() += u32::from(approved);
            *seen.entry("waits").or_default() += u32::from(matches!(record.body, Body::Ask(_)));
            if let Body::Intent(intent) = &record.body
                && let Some(by) = intent.approval
            {
                let of = &log[usize::try_from(by.get()).unwrap()].body;
                let Body::Approval(event) = of else { panic!("{of:?}") };
                let body = ApprovalBody::from_bytes(&event.control.body).unwrap();
                let set = body.answer == ApprovalAnswer::Set;
                *seen.entry("approved by a set, ran").or_default() += u32::from(set);
                let wide = body.scopes.is_some();
                *seen.entry("approved by a wider set, ran").or_default() += u32::from(wide);
            }
            let answered = matches!(record.body, Body::Approval(_));
            *seen.entry("answered").or_default() += u32::from(answered);
            let call = match &record.body {
                Body::Intent(intent) => &intent.call,
                Body::Refusal(refusal) => &refusal.call,
                Body::State(_) => {
                    *seen.entry("change").or_default() += 1;
                    continue;
                }
                _ => continue,
            };
            let verdict = call.decision.as_ref().map(|decision| decision.verdict);
            let degraded = verdict == Some(PolicySays::Degrade);
            let ran = matches!(record.body, Body::Intent(_));
            let refused_for = |reason| match &record.body {
                Body::Refusal(refusal) => refusal.reason == reason,
                _ => false,
            };
            let token = call.capability_token_id.and_then(|token| sim.kernel.token(&token));
            let lapsed = token.as_ref().is_some_and(|token| !token.revoked);
            let derived = token.is_some_and(|token| token.body.parent.is_some());
            for (name, is) in [
                ("degraded, ran", degraded && ran),
                ("not renewed", lapsed && refused_for(Reason::Revoked)),
                ("derived, ran", derived && ran),
                ("derived, too wide", call.session.is_none() && refused_for(Reason::OutOfScope)),
                ("derived too often", refused_for(Reason::NoDelegation)),
                ("degraded, refused", degraded && !ran),
                ("allowed, ran", verdict == Some(PolicySays::Allow) && ran),
                ("with a shadow, ran", call.shadow.is_some() && ran),
                ("with a shadow, refused", call.shadow.is_some() && !ran),
                ("another head, ran", call.head.is_some() && ran),
                ("denied", refused_for(Reason::Denied)),
                ("asked again", refused_for(Reason::Asked)),
                ("asked, said no", refused_for(Reason::ApprovalDenied)),
                ("deferred", refused_for(Reason::Deferred)),
                ("not kept", refused_for(Reason::Obligation)),
                ("another's snapshot", refused_for(Reason::UnknownSnapshot)),
                ("another's keys", refused_for(Reason::Namespace)),
                ("a bad change", refused_for(Reason::BadFact)),
                ("a stale change", refused_for(Reason::StaleSnapshot)),
            ] {
                *seen.entry(name).or_default() += u32::from(is);
            }
        }
        for (_, result) in &sim.replies {
            let walked = result.tool().is_some_and(|tool| tool.as_str() == "open");
            let is = |is| u32::from(walked && is);
            *seen.entry("walked").or_default() += is(result.reason().is_none());
            let out = result.reason() == Some(Reason::OutOfScope);
            *seen.entry("walked out").or_default() += is(out);
            let too_large = result.reason() == Some(Reason::ResultTooLarge);
            *seen.entry("a cap exceeded").or_default() += u32::from(too_large);
            let taken = !result.degraded().is_empty() && result.reason().is_none();
            *seen.entry("told what was taken").or_default() += u32::from(taken);
        }
    }
    assert!(seen.values().all(|count| *count >= 3), "{seen:#?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    /// Also where the store stops anywhere.
    #[test]
    fn any_order_never_overspends_and_replays(bytes in proptest::collection::vec(any::<u8>(), 1..600)) {
        run(&bytes);
    }
}
