//! A server that dies, answers too much, or with an error of the protocol: what comes of the call
//! is on record, and the gateway serves on.

use crate::clients::home::{Home, Server, refused, said};
use crate::clients::parts::Parts;

#[test]
fn the_gateway_outlives_an_odd_server() {
    let Some(parts) = Parts::find() else { return };
    for mode in ["auto", "legacy"] {
        let home = Home::new(parts);
        let server = Server {
            name: "fixture",
            command: parts.server_fixture(&home.outbox()),
            options: &["--class", "local_write=*", "--max-result", "64"],
        };
        let echo = r#"{"do":"again","name":"echo","args":{"text":"still here"},"seconds":20}"#;
        let steps = [
            r#"{"do":"call","name":"die"}"#,
            echo,
            r#"{"do":"call","name":"grow"}"#,
            r#"{"do":"call","name":"protocol_error"}"#,
            echo,
        ];
        let answers = home.drive(mode, &home.gateway("a", None, &server), &steps);
        let [died, alive, grown, wrong, serving] = answers.as_slice() else {
            panic!("{answers:?}")
        };
        refused(&home, died, "provider_gone");
        assert_eq!(said(alive), "still here");
        refused(&home, grown, "result_too_large");
        // The server's own words, as it said them.
        assert_eq!(
            (&wrong["protocol_error"], &wrong["message"]),
            (&(-32602).into(), &"as asked".into())
        );
        assert_eq!(said(serving), "still here");
        let unknown = |record: &&serde_json::Value| record["tx"] == "unknown";
        assert_eq!(home.records().iter().filter(unknown).count(), 3, "what they did is not known");
        home.verify();
    }
}
