//! A holder that says hello, and then nothing more.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::thread;

use syscap_format::{AgentId, Canonical, EffectClass, MapBuilder};

use crate::runtime::*;

#[test]
fn a_holder_that_does_not_answer_is_given_up() {
    let home = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(home.path().join("socket")).unwrap();
    let holder = thread::spawn(move || {
        for _ in 0..3 {
            let (mut stream, _) = listener.accept().unwrap();
            assert!(stream.read(&mut [0; 1_000]).unwrap() > 0);
            // Welcome, in version 8, to the home of this id.
            let head = b"\x00\x00\x00\x25\x83\x02\x08\x58\x20";
            stream.write_all(&[&head[..], &[0; 32]].concat()).unwrap();
            // Until it is given up.
            stream.read_to_end(&mut Vec::new()).unwrap();
        }
    });
    let attach = || {
        let mut access = Runtime::connect(home.path()).unwrap();
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
        place: None,
        location: None,
        part: None,
    };
    let manifest = Manifest::new(used.tool.clone(), EffectClass::Read);
    let reported = Reported::Result(Canonical::null());
    assert!(matches!(attach().view(), Err(Error::HolderGone)));
    assert!(matches!(attach().begin_use(token, &used, &manifest), Err(Error::HolderGone)));
    assert!(matches!(attach().settle_use(token, &used, &reported), Err(Error::HolderGone)));
    holder.join().unwrap();
}
