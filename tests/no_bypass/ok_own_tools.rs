//! expect: ok
//! A host registers a tool and a read of its own, and an agent calls both.
#[path = "support/mod.rs"]
mod support;
use support::*;

pub fn main() {
    let folder = std::env::args().nth(1).expect("the harness names a folder");
    let options = Options::new().tool(Mine::new().expect("a manifest")).expect("registered");
    let options = options.trusted_read(Peek::new().expect("a manifest")).expect("registered");
    let runtime = options.create(folder).expect("a home");
    let budget = syscap::format::Budget::standard();
    let grant = syscap::Grant::to("researcher").tools(["mine", "peek"]).budget(budget);
    let token = runtime.issue(grant).expect("a token");
    let session = runtime.session("researcher", token).expect("a session");
    for tool in ["mine", "peek"] {
        let result = session.call(tool, syscap::Args::new()).expect("an answer");
        assert_eq!(result.text().expect("a result"), "done");
    }
    let refused = session.call("fs.read", syscap::args! { "path": "a.txt" }).expect("an answer");
    assert!(refused.text().is_err(), "fs.read was not granted");
    runtime.close().expect("closed");
}
