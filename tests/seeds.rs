//! `docs/seeds.md`: each test that it names is there. And the second seed's two built-in tools.

use crate::named;
use std::time::SystemTime;

use syscap::format::{Durability, Item};
use syscap::prelude::*;

#[test]
fn each_test_that_is_named_is_there() {
    let (rows, tests) = named::rows_and_tests("docs/seeds.md");
    for row in &rows {
        // Said by a test, said to be otherwise, or said to be open.
        let said = ["::", "open", "otherwise", "as above", "no part of it", "asked for", "held by"];
        assert!(said.iter().any(|word| row.contains(word)) || row.contains("this page"), "{row}");
    }
    assert!(rows.len() > 80 && tests > 80, "{} rows, {tests} tests", rows.len());
}

#[test]
fn echo_and_the_time() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().durability(Durability::Memory);
    let rt = options.create(dir.path().join("home")).unwrap();
    let token = rt.issue(Grant::to("a").tools(["echo", "current_time"])).unwrap();
    let agent = rt.session("a", token).unwrap();
    let said = agent.call("echo", args! { "value": "hello" }).unwrap();
    assert_eq!(said.value().unwrap().get("value").and_then(Item::as_text), Some("hello"));
    let clock = || u64::try_from(SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
    let before = clock();
    let told = agent.call("current_time", args! {}).unwrap();
    let told = told.value().unwrap().get("unix_ms").and_then(Item::as_uint).unwrap();
    assert!((before..=clock()).contains(&told), "{told}");
    rt.close().unwrap();
}
