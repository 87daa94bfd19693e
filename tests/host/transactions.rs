//! Two steps: what goes wrong before the commit has had no effect, and is known not to have.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use syscap::format::{EffectClass, Refused, Retry, TxOutcome};
use syscap::host::{Failure, HostArgs, HostTool, Planned, ToolCall, Transactional};
use syscap::prelude::*;

use super::world::{World, options};

/// What was committed, and what was rolled back.
static DONE: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// Whether a run that waits to be given up has been.
static LET_GO: AtomicBool = AtomicBool::new(false);

struct Step(String);

impl Transactional for Step {
    type Prepared = String;
    type Answer = String;

    fn plan(args: HostArgs<'_>) -> Result<Planned<Self>, Refused> {
        let planned = Planned::new(Self(args.text("how")?.to_owned()));
        Ok(planned.hold(Dimension::EgressBytes, 100))
    }

    fn prepare(self, call: &ToolCall) -> Result<String, Failure> {
        call.meter(Dimension::EgressBytes, 7)?;
        match self.0.as_str() {
            "fails" => Err(Failure::new("no")),
            "takes back" => Err(Failure::new("no").rolled_back()),
            "panics" => panic!("before"),
            "waits" | "waits and sticks" => {
                while !call.is_cancelled() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                LET_GO.store(true, Ordering::SeqCst);
                Ok(self.0)
            }
            _ => Ok(self.0),
        }
    }

    fn commit(prepared: String, _: &ToolCall) -> Result<String, Failure> {
        match prepared.as_str() {
            "commit panics" => panic!("within"),
            "commit fails" => Err(Failure::new("no")),
            "commit knows" => Err(Failure::new("no").without_effect()),
            _ => {
                DONE.lock().unwrap().push(prepared.clone());
                Ok(prepared)
            }
        }
    }

    fn rollback(prepared: String, _: &ToolCall) -> Result<(), Failure> {
        DONE.lock().unwrap().push(format!("not {prepared}"));
        if prepared == "waits and sticks" { Err(Failure::new("stuck")) } else { Ok(()) }
    }
}

fn world(limit: Duration) -> World {
    let step = HostTool::new("t.step", EffectClass::ExternalWrite).unwrap();
    let step = step.text("how", "How.").limit(limit).transactional::<Step>();
    let budget = Budget::standard().with(Dimension::EgressBytes, 10_000);
    let grant = Grant::to("a").tools(["t.step"]).budget(budget);
    World::granting(options().tool(step).unwrap(), grant)
}

#[test]
fn only_what_goes_wrong_in_the_commit_is_unknown() {
    use TxOutcome::{Committed, NoOp, RolledBack, Unknown};
    let world = world(Duration::from_secs(20));
    for (how, reason, tx, used) in [
        ("fine", None, Committed, 7),
        ("fails", Some(Reason::ToolFailed), NoOp, 7),
        ("takes back", Some(Reason::ToolFailed), RolledBack, 7),
        ("panics", Some(Reason::ToolFailed), NoOp, 7),
        ("commit fails", Some(Reason::ToolFailed), Unknown, 100),
        ("commit knows", Some(Reason::ToolFailed), NoOp, 7),
        ("commit panics", Some(Reason::Panicked), Unknown, 100),
    ] {
        let key = how.replace(' ', "-");
        let once =
            || world.agent.request("t.step").args(args! { "how": how }).key(&key).wait().unwrap();
        let answer = once();
        assert_eq!(answer.reason(), reason, "{how}");
        let outcome = world.outcome();
        assert_eq!(outcome.tx, tx, "{how}");
        assert_eq!(outcome.call.used.get(Dimension::EgressBytes), used, "{how}");
        // A repeat of what nobody knows is told so; of the rest it has the first outcome.
        let repeat = once();
        let unknown = tx == Unknown;
        let told = if unknown { Some(Reason::OutcomeUnknown) } else { reason };
        assert_eq!(repeat.reason(), told, "{how}");
        if unknown {
            assert_eq!(repeat.retry(), Some(Retry::Ask));
        }
    }
    assert_eq!(DONE.lock().unwrap().iter().filter(|done| *done == "fine").count(), 1);
    world.close();
}

/// Who is given up before it commits does not commit: it rolls back, and comes late.
#[test]
fn call_timed_out_before_its_commit_rolls_back() {
    let world = world(Duration::from_millis(30));
    for (late, (how, tx)) in
        [("waits", TxOutcome::RolledBack), ("waits and sticks", TxOutcome::Unknown)]
            .into_iter()
            .enumerate()
    {
        let answer = world.agent.call("t.step", args! { "how": how }).unwrap();
        assert_eq!(answer.reason(), Some(Reason::TimedOut));
        assert_eq!(world.outcome().tx, TxOutcome::Unknown, "nobody knew then");
        // Its place is free a moment before the record of it is on disk.
        world.until(|world| world.lates().len() > late);
        let lates = world.lates();
        assert_eq!((lates.len(), lates[late].tx), (late + 1, tx));
        assert!(world.is_back());
    }
    assert!(LET_GO.load(Ordering::SeqCst));
    let done = DONE.lock().unwrap();
    assert!(done.iter().all(|done| !done.starts_with("waits")), "{done:?}");
    assert!(done.contains(&"not waits".to_owned()), "{done:?}");
    drop(done);
    world.close_after(2);
}
