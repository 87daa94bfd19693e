//! A home on a store of one's own: `cargo run --example file_store`.

mod store;

use store::FileStore;
use syscap::{format::Amounts, prelude::*};

fn main() -> Result<(), Error> {
    let folder = tempfile::tempdir().map_err(|_| Error::NotStarted)?;
    let (home, log) = (folder.path().join("home"), folder.path().join("log"));
    let rt = Options::new().store(FileStore::create(&log)?).create(&home)?;
    let token = rt.issue(Grant::to("ada").tools(["echo"]))?;
    rt.session("ada", token)?.call("echo", args! { "value": "kept" })?;
    rt.close()?;
    let rt = Options::new().store(FileStore::open(&log)?).open(&home)?;
    let calls = |used: Amounts| used.get(Dimension::Calls);
    let used = rt.look(|kernel| kernel.token(&token).map(|view| calls(view.used)))?;
    println!("calls on record: {used:?}");
    assert_eq!(used, Some(1));
    rt.close()?;
    // To look at it nobody need hold the home.
    let log = Options::new().store(FileStore::open(&log)?).inspect(&home)?;
    assert_eq!(log.view().tokens_in_all, 1);
    Ok(())
}
