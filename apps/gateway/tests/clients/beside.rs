//! Two clients at once on one home.

use std::thread;

use serde_json::{Value, json};

use crate::clients::home::{Home, Server};
use crate::clients::parts::Parts;

const CALLS: u64 = 100;
const EACH: u64 = 60;

/// Two gateways, one token: together they get what its budget allows, each its own answers, and
/// the totals on record are exact.
#[test]
fn two_clients_share_one_budget() {
    let Some(parts) = Parts::find() else { return };
    let home = Home::new(parts);
    let server = Server {
        name: "fixture",
        command: parts.server_fixture(&home.outbox()),
        options: &["--class", "pure=echo"],
    };
    home.meet(&server);
    let token = home.issue("both", &["fixture.echo"], Some(&format!("calls={CALLS}")));
    let line = home.gateway("both", Some(&token), &server);
    let step = json!({ "do": "many", "name": "echo", "args": {}, "times": EACH, "together": 6 });
    let step = step.to_string();
    let answers: Vec<Value> = thread::scope(|scope| {
        let clients = ["auto", "legacy"]
            .map(|mode| scope.spawn(|| home.drive(mode, &line, &[&step]).remove(0)));
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });

    let sum = |what: &dyn Fn(&str) -> bool| -> u64 {
        let each = answers.iter().flat_map(|answer| answer["outcomes"].as_object().unwrap());
        each.filter(|(outcome, _)| what(outcome)).map(|(_, times)| times.as_u64().unwrap()).sum()
    };
    let ok = sum(&|outcome| outcome == "ok");
    let refused = sum(&|outcome| outcome == "exhausted" || outcome == "over_budget");
    assert_eq!((sum(&|_| true), ok + refused), (2 * EACH, 2 * EACH), "{answers:?}");
    // A refusal costs a call too, so both together use the budget up.
    assert!(ok <= CALLS && ok > 0 && refused > 0, "{answers:?}");

    let recorded = |what| u64::try_from(home.count("fixture.echo", what)).unwrap();
    assert_eq!(recorded("ok"), ok);
    // Refusals that nothing is left to pay for stand on record by themselves up to a number, and
    // then as a count.
    let records = home.records();
    let counted = records.iter().filter(|record| record["kind"] == "refusals");
    let counted: u64 = counted.filter_map(|record| record["count"].as_u64()).sum();
    assert_eq!(recorded("exhausted") + recorded("over_budget") + counted, refused);
    let of_token = records.iter().filter(|record| {
        record["capability_token_id"] == token.as_str()
            && (record["kind"] == "outcome" || record["kind"] == "refusal")
    });
    let used: u64 = of_token.map(|record| record["used"]["calls"].as_u64().unwrap_or(0)).sum();
    let shown = home.syscap(&["token", "show", &home.home(), &token, "--json"]).json().remove(0);
    let calls = &shown["budget"]["calls"];
    assert_eq!((calls["used"].as_u64(), calls["held"].as_u64()), (Some(used), Some(0)), "{calls}");
    assert_eq!(used, CALLS, "{calls}");
    home.verify();
}
