//! The Python SDK in front of the server that has one of everything: what goes beside calls.

use serde_json::{Value, json};

use crate::clients::home::{Home, Server, refused, said};
use crate::clients::parts::Parts;

const LONG: &str = "everything.trigger_long_running_operation";

fn everything(home: &Home) -> Server {
    Server {
        name: "everything",
        command: home.parts.server_everything(),
        options: &["--class", "read=*"],
    }
}

fn in_mode(mode: &str) {
    let Some(parts) = Parts::find() else { return };
    let home = Home::new(parts);
    let server = everything(&home);
    let line = home.gateway("worker", None, &server);
    let long = |act: &str, seconds: u32, steps: u32| {
        let args = json!({ "duration": seconds, "steps": steps });
        json!({ "do": act, "name": "trigger-long-running-operation", "args": args }).to_string()
    };
    let steps = [
        &long("call", 1, 4),
        &long("cancel", 60, 120),
        r#"{"do":"call","name":"get-sum","args":{"a":20,"b":22}}"#,
        r#"{"do":"call","name":"get-structured-content","args":{"location":"Chicago"}}"#,
        r#"{"do":"call","name":"get-tiny-image"}"#,
        r#"{"do":"prompts"}"#,
        r#"{"do":"prompt","name":"args-prompt","args":{"city":"Ulm"}}"#,
        r#"{"do":"complete","name":"completable-prompt","argument":"department","value":"E"}"#,
        r#"{"do":"resources"}"#,
        r#"{"do":"templates"}"#,
        r#"{"do":"read","uri":"demo://resource/static/document/features.md"}"#,
        r#"{"do":"read","uri":"demo://no/such/thing"}"#,
        r#"{"do":"prompt","name":"no-such-prompt"}"#,
    ];
    let answers = home.drive(mode, &line, &steps);
    let [ran, cancelled, sum, weather, image, prompts, prompt, completed, rest @ ..] =
        answers.as_slice()
    else {
        panic!("{answers:?}")
    };
    assert_eq!(ran["progress"].as_array().unwrap().len(), 4, "{ran}");
    assert_eq!(ran["progress"][3][0], ran["progress"][3][1], "{ran}");
    assert!(cancelled["progress"].as_u64() >= Some(1), "{cancelled}");
    assert!(said(sum).contains("42"), "the server serves on: {sum}");
    assert!(weather["structuredContent"]["temperature"].is_number(), "{weather}");
    let kinds: Vec<&Value> =
        image["content"].as_array().unwrap().iter().map(|block| &block["type"]).collect();
    assert!(kinds.contains(&&json!("image")), "{kinds:?}");
    let has = |list: &Value, name: &str| list.as_array().unwrap().iter().any(|p| p["name"] == name);
    assert!(has(&prompts["prompts"], "args-prompt"), "{prompts}");
    assert!(prompt["messages"][0]["content"]["text"].as_str().unwrap().contains("Ulm"), "{prompt}");
    assert_eq!(completed["completion"]["values"], json!(["Engineering"]), "{completed}");
    let [resources, templates, read, no_resource, no_prompt] = rest else { panic!("{rest:?}") };
    assert!(!resources["resources"].as_array().unwrap().is_empty(), "{resources}");
    assert!(!templates["resourceTemplates"].as_array().unwrap().is_empty(), "{templates}");
    assert!(!read["contents"][0]["text"].as_str().unwrap().is_empty(), "{read}");
    assert!(no_resource["protocol_error"].is_number(), "{no_resource}");
    assert!(no_prompt["protocol_error"].is_number(), "{no_prompt}");

    assert_eq!((home.count(LONG, "ok"), home.count(LONG, "cancelled")), (1, 1));
    home.verify();
}

#[test]
fn everything_by_the_newest_revision() {
    in_mode("auto");
}

#[test]
fn everything_by_the_revision_before() {
    in_mode("legacy");
}

/// A refusal of a tool that has an output schema is no breach of that schema: the SDK, which
/// checks, hands it on.
#[test]
fn a_refusal_is_no_breach_of_an_output_schema() {
    let Some(parts) = Parts::find() else { return };
    let home = Home::new(parts);
    let server = everything(&home);
    home.meet(&server);
    let tools = ["everything.get_structured_content"];
    let token = home.issue("worker", &tools, Some("calls=1"));
    for mode in ["auto", "legacy"] {
        let step = r#"{"do":"call","name":"get-structured-content","args":{"location":"Chicago"}}"#;
        let line = home.gateway("worker", Some(&token), &server);
        let answers = home.drive(mode, &line, &[r#"{"do":"tools"}"#, step, step]);
        assert!(answers[0]["tools"][0]["outputSchema"].is_object(), "{}", answers[0]);
        refused(&home, &answers[2], "over_budget");
    }
    assert_eq!(home.count("everything.get_structured_content", "ok"), 1);
    home.verify();
}
