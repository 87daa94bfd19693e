//! A home in which nothing happens for hours is as it is then, not as it was.

use host_support::Still;
use syscap::prelude::*;

const HOUR_MS: u64 = 3_600_000;

#[test]
fn after_a_night_tokens_are_issued_and_seen_as_they_are() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), Still::default());
    let rt = Options::new().clock(clock.clone()).create(folder.path().join("home")).unwrap();
    let evening = rt.issue(Grant::to("a").tools(["echo"])).unwrap();
    let lives = |token| {
        let view = rt.view().unwrap();
        view.token(token).unwrap().is_live(view.now)
    };
    assert!(lives(evening));
    // Longer than a token lives that nobody says more of.
    clock.forward(13 * HOUR_MS);
    assert!(!lives(evening), "it has expired, though nothing has happened since");
    clock.forward(13 * HOUR_MS);
    let morning = rt.issue(Grant::to("a").tools(["echo"])).unwrap();
    let expires = rt.view().unwrap().token(morning).unwrap().expires;
    assert_eq!(expires.get(), 1_790_000_000_000 + 27 * HOUR_MS);
    let session = rt.session("a", morning).unwrap();
    assert!(session.call("echo", args! { "value": 1 }).unwrap().reason().is_none());
}
