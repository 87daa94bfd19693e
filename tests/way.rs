//! A program whose calls are followed: `scripts/way` lists the files that they go through.

use std::env;

use host_support::new_home;
use syscap::prelude::*;

const CALLS: u64 = 200;

/// Not a test: it makes calls, in process or by socket.
#[test]
fn child() {
    let Some(way) = env::var_os("SYSCAP_TEST_WAY") else { return };
    let (_folder, home) = new_home();
    let server = Runtime::create(&home).unwrap();
    let many = Budget::standard().with(Dimension::Calls, CALLS);
    let token = server.issue(Grant::to("a").tools(["echo"]).budget(many)).unwrap();
    let client = match way == "socket" {
        true => Runtime::connect(&home).unwrap(),
        false => server.clone(),
    };
    let agent = client.session("a", token).unwrap();
    for n in 0..CALLS {
        assert_eq!(agent.call("echo", args! { "value": n }).unwrap().status(), Status::Ok);
    }
    client.close().unwrap();
}
