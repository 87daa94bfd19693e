//! A gateway whose server ends: what its conversation was given, and what waits for a person, is as
//! before.

use std::path::Path;

use host_support::last_label;
use serde_json::json;
use syscap::format::ApprovalAnswer;
use syscap::{Operator, Runtime};

use crate::gateway::bench::{Bench, text, until};
use crate::gateway::waits::{answer, begin, gateway, waits};

/// How a server ends: by a signal, by an operator's word, by a kill.
const ENDS: [&str; 3] = ["-TERM", "shutdown", "-KILL"];

fn end_server(bench: &Bench, by: &str) {
    let server = bench.server_process().expect("it is served");
    match by {
        "shutdown" => drop(Operator::connect(bench.home()).unwrap().shutdown().unwrap()),
        signal => {
            let mut kill = std::process::Command::new("kill");
            assert!(kill.args([signal, &server.to_string()]).status().unwrap().success());
        }
    }
    let gone = || !Path::new(&format!("/proc/{server}/exe")).exists();
    until("the server has gone", || bench.server_process() != Some(server) && gone());
}

/// A conversation that has been given a stranger's words is judged so with the next server, and so is
/// the next conversation by its token.
#[test]
fn label_of_a_gateway_outlives_each_end_of_its_server() {
    for by in ENDS {
        let bench = Bench::new();
        let mut gateway = bench.gateway(&[]).session();
        gateway.call("echo", json!({"text": "a"}));
        assert!(!last_label(&bench.home()).is_untrusted());
        gateway.call("echo", json!({"text": "b"}));
        assert!(
            last_label(&bench.home()).is_untrusted(),
            "what a server says is a stranger's word"
        );
        end_server(&bench, by);
        gateway.call("echo", json!({"text": "c"}));
        assert!(last_label(&bench.home()).is_untrusted(), "{by}");
        assert!(gateway.end().success());
        let mut gateway = bench.gateway(&[]).session();
        gateway.call("echo", json!({"text": "d"}));
        assert!(last_label(&bench.home()).is_untrusted(), "{by}, anew");
        assert!(gateway.end().success());
        bench.settled();
    }
}

/// A call that waits for a person waits on, is asked about once, and runs once it is approved.
#[test]
fn wait_of_a_gateway_outlives_each_end_of_its_server() {
    for by in ENDS {
        let bench = Bench::new();
        let mut gateway = gateway(&bench, &["wait=60000"]).session();
        let id = begin(&mut gateway, "a");
        let ask = waits(&bench, 1);
        end_server(&bench, by);
        until("it is served", || Runtime::connect(bench.home()).is_ok());
        answer(&bench, ask, ApprovalAnswer::Once);
        assert!(text(&gateway.result(&id)).contains("\"a\""), "{by}");
        assert_eq!((bench.count("Ask"), bench.got_method("odd", "tools/call")), (1, 1), "{by}");
        assert!(gateway.end().success());
        bench.settled();
    }
}
