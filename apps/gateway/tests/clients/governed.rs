//! What goes beside tools stops with the rest: judged by what reached the fixture.

use serde_json::json;

use crate::clients::home::{Home, Server};
use crate::clients::parts::{Parts, text};

/// After `freeze --all` a resource is read no more, nor a prompt got, nor any of them listed; after
/// the end of the freeze they are.
#[test]
fn a_frozen_home_reads_no_resource() {
    let Some(parts) = Parts::find() else { return };
    for mode in ["auto", "legacy"] {
        let home = Home::new(parts);
        let command = parts.server_fixture(&home.outbox());
        let server = Server { name: "fixture", command, options: &["--class", "read=*"] };
        let syscap = text(&parts.syscap);
        let operator = |verb: &str| {
            json!({"do": "command", "words": [syscap, verb, home.home(), "--all"]}).to_string()
        };
        let (freeze, thaw) = (operator("freeze"), operator("thaw"));
        let read = r#"{"do":"read","uri":"test://static-text"}"#;
        let prompt = r#"{"do":"prompt","name":"test_simple_prompt"}"#;
        let lists = [r#"{"do":"resources"}"#, r#"{"do":"templates"}"#, r#"{"do":"prompts"}"#];
        let mut steps = vec![read, freeze.as_str(), read, prompt];
        steps.extend(lists);
        steps.extend([thaw.as_str(), read]);
        let answers = home.drive(mode, &home.gateway("a", None, &server), &steps);
        let [first, frozen, refused @ .., thawed, last] = answers.as_slice() else {
            panic!("{answers:?}")
        };
        assert!(first["contents"][0]["text"].is_string(), "{first}");
        assert_eq!((&frozen["code"], &thawed["code"]), (&json!(0), &json!(0)), "{frozen} {thawed}");
        assert_eq!(refused.len(), 5);
        for refused in refused {
            assert_eq!(refused["protocol_error"], -32003, "{refused}");
            let told = &refused["data"]["dev.syscap/refusal"];
            assert_eq!(told["reason"], "frozen", "{refused}");
        }
        assert!(last["contents"][0]["text"].is_string(), "{last}");
        let reached = home.read("outbox").unwrap();
        assert_eq!(reached.lines().filter(|line| line.contains("\"read\"")).count(), 2);
        assert_eq!(home.count("fixture.resources.read", "ok"), 2);
        assert_eq!(home.count("fixture.resources.read", "frozen"), 1);
        home.verify();
    }
}
