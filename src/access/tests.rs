//! A holder that says hello, and then nothing more.

use std::{
    io::{Read as _, Write as _},
    os::unix::net::UnixListener,
    thread,
};

use syscap_kernel::{
    cbor::{Canonical, MapBuilder},
    id::AgentId,
    manifest::EffectClass,
};

use super::*;

#[test]
fn a_holder_that_does_not_answer_is_given_up() {
    let home = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(home.path().join("socket")).unwrap();
    let holder = thread::spawn(move || {
        for _ in 0..3 {
            let (mut stream, _) = listener.accept().unwrap();
            assert!(stream.read(&mut [0; 1_000]).unwrap() > 0);
            let greeting = MapBuilder::new().bytes("home", &[0; 32]).uint("version", 1);
            let greeting = greeting.uint("connection", 1).finish();
            let hello = MapBuilder::new().uint("id", 0).item("done", greeting.item()).finish();
            let length = u32::try_from(hello.as_bytes().len()).unwrap();
            stream.write_all(&length.to_be_bytes()).unwrap();
            stream.write_all(hello.as_bytes()).unwrap();
            // Until it is given up.
            stream.read_to_end(&mut Vec::new()).unwrap();
        }
    });
    let attach = || {
        let mut access = Access::attach_only(home.path()).unwrap().unwrap();
        access.answer_time = Duration::from_millis(50);
        access
    };
    let token = TokenId::from_bytes([1; 32]);
    let used = ToolUse {
        agent: AgentId::new("a").unwrap(),
        conversation: "c".to_owned(),
        id: None,
        tool: ToolId::new("t.a").unwrap(),
        args: MapBuilder::new().finish(),
    };
    let manifest = Manifest::new(used.tool.clone(), EffectClass::Read);
    let reported = Reported::Result(Canonical::null());
    assert!(matches!(attach().view(), Err(Error::HolderGone)));
    assert!(matches!(attach().begin_use(token, &used, &manifest), Err(Error::HolderGone)));
    assert!(matches!(attach().settle_use(token, &used, &reported), Err(Error::HolderGone)));
    holder.join().unwrap();
}
