//! Callers who bring something at one moment: nobody's call is left lying, and nobody sleeps while
//! there is something to commit.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Barrier};
use std::thread;

use syscap::audit::MemoryStore;
use syscap::format::{Durability, EffectClass};
use syscap::host::HostTool;
use syscap::prelude::*;

/// Long beyond all that these calls take: who has no answer by then never gets one.
const FOR_EVER: Duration = Duration::from_secs(20);

fn runtime(home: &std::path::Path) -> (Runtime, TokenId) {
    let write = HostTool::new("t.write", EffectClass::LocalWrite).unwrap().run(|_| Ok(1_u64));
    let options = Options::new().durability(Durability::Memory).store(MemoryStore::new());
    let rt = options.tool(write).unwrap().create(home).unwrap();
    let budget = Budget::standard().with(Dimension::Calls, 1 << 40);
    let budget = budget.with(Dimension::WallUs, 1 << 50).with(Dimension::CpuUs, 1 << 50);
    let grant = Grant::to("a").tools(["echo", "t.write"]);
    let token = rt.issue(grant.budget(budget.with(Dimension::Concurrent, 200))).unwrap();
    (rt, token)
}

/// So many threads call so often; each call must be answered.
fn call(callers: usize, calls: u64, disturb: bool) {
    let dir = tempfile::tempdir().unwrap();
    let (rt, token) = runtime(&dir.path().join("home"));
    let (answered, answers) = channel();
    let over = Arc::new(AtomicBool::new(false));
    let disturbing = disturb.then(|| {
        let (rt, over) = (rt.clone(), Arc::clone(&over));
        thread::spawn(move || {
            while !over.load(Ordering::SeqCst) {
                rt.look(|kernel| kernel.head()).unwrap();
                rt.tick().unwrap();
            }
        })
    });
    for caller in 0..callers {
        let (rt, answered) = (rt.clone(), answered.clone());
        thread::spawn(move || {
            let agent = rt.session("a", token).unwrap();
            for call in 0..calls {
                let tool = if (call + u64::try_from(caller).unwrap()) % 3 == 0 {
                    "t.write"
                } else {
                    "echo"
                };
                let args = || match tool {
                    "echo" => args! { "value": call },
                    _ => args! {},
                };
                if call % 7 == 0 {
                    let both = agent
                        .wait_all(
                            [(tool, args()), (tool, args())]
                                .into_iter()
                                .map(|(tool, args)| agent.request(tool).args(args)),
                        )
                        .unwrap();
                    both.iter().for_each(|answer| assert_eq!(answer.reason(), None));
                } else {
                    assert_eq!(agent.call(tool, args()).unwrap().reason(), None);
                }
                answered.send(()).unwrap();
            }
        });
    }
    drop(answered);
    let mut count = 0;
    loop {
        match answers.recv_timeout(FOR_EVER) {
            Ok(()) => count += 1,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => panic!("somebody waits for ever, after {count}"),
        }
    }
    assert_eq!(count, u64::try_from(callers).unwrap() * calls);
    over.store(true, Ordering::SeqCst);
    disturbing.into_iter().for_each(|disturbing| disturbing.join().unwrap());
    rt.close().unwrap();
}

/// Callers who begin together, and when they are answered nobody comes who would find what was left
/// lying.
fn rounds(callers: usize, rounds: u64) {
    let dir = tempfile::tempdir().unwrap();
    let (rt, token) = runtime(&dir.path().join("home"));
    let (answered, answers) = channel();
    let begin = Arc::new(Barrier::new(callers));
    for caller in 0..callers {
        let (rt, answered, begin) = (rt.clone(), answered.clone(), Arc::clone(&begin));
        thread::spawn(move || {
            let agent = rt.session("a", token).unwrap();
            for round in 0..rounds {
                begin.wait();
                // Not always at the same distance.
                (0..round % 64 * u64::try_from(caller).unwrap()).for_each(|_| spin_loop());
                assert_eq!(agent.call("t.write", args! {}).unwrap().reason(), None);
                answered.send(()).unwrap();
            }
        });
    }
    drop(answered);
    for count in 0..rounds * u64::try_from(callers).unwrap() {
        let answer = answers.recv_timeout(FOR_EVER);
        assert_eq!(answer, Ok(()), "somebody waits for ever, after {count} answers");
    }
    rt.close().unwrap();
}

#[test]
fn callers_that_start_together_all_finish() {
    rounds(2, 4_000);
    rounds(3, 2_000);
    rounds(6, 500);
}

#[test]
fn two_callers_all_finish() {
    call(2, 6_000, false);
}

#[test]
fn few_callers_all_finish() {
    call(3, 2_000, true);
    call(5, 2_000, false);
}

#[test]
fn many_callers_all_finish() {
    call(48, 150, true);
}

/// So many who send the same call at once, with one key: it runs once, and who is not told to wait
/// has the one answer.
#[test]
fn duplicates_that_come_at_once_run_once() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&runs);
    let write = HostTool::new("t.count", EffectClass::LocalWrite).unwrap();
    let write = write.run(move |_| Ok(counted.fetch_add(1, Ordering::SeqCst)));
    let options = Options::new().durability(Durability::Memory).store(MemoryStore::new());
    let rt = options.tool(write).unwrap().create(dir.path().join("home")).unwrap();
    let budget = Budget::standard().with(Dimension::Calls, 1 << 40);
    let budget = budget.with(Dimension::WallUs, 1 << 50).with(Dimension::CpuUs, 1 << 50);
    let grant = || Grant::to("a").tools(["t.count"]).budget(budget);
    let old = rt.issue(grant()).unwrap();
    let new = rt.issue(grant().renews(old)).unwrap();
    for round in 0..20_u64 {
        let begin = Arc::new(Barrier::new(16));
        // Half of them under a token that renews the other's; who takes the key first is open.
        let callers = (0..16).map(|caller| {
            let (rt, begin) = (rt.clone(), Arc::clone(&begin));
            thread::spawn(move || {
                let token = if caller % 2 == 0 { old } else { new };
                let agent = rt.session("a", token).unwrap();
                begin.wait();
                let answer = agent
                    .request("t.count")
                    .args(args! {})
                    .key(&format!("k{round}"))
                    .wait()
                    .unwrap();
                (answer.reason(), answer.value().ok().and_then(|item| item.as_uint()))
            })
        });
        let callers: Vec<_> = callers.collect();
        for caller in callers {
            match caller.join().unwrap() {
                (None, answer) => assert_eq!(answer, Some(round), "the one answer"),
                // The older token does not answer for the one that renews it.
                (Some(Reason::KeyInFlight | Reason::NotBound), None) => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(runs.load(Ordering::SeqCst), round + 1, "once");
    }
    rt.close().unwrap();
}
