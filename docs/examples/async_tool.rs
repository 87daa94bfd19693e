//! Futures as tools, and calls as futures, with tokio: `cargo run --example async_tool`.
//!
//! What happens to a run that nobody waits for any more, and to one whose task is gone.

use std::sync::{Arc, Mutex};

use syscap::format::{EffectClass, TxOutcome};
use syscap::host::{AsyncSession, HostTool};
use syscap::prelude::*;
use tokio::{runtime::Builder, task::JoinHandle, time::sleep};

pub(crate) fn main() -> Result<(), Error> {
    let folder = tempfile::tempdir().map_err(|_| Error::NotStarted)?;
    let tokio = Builder::new_multi_thread().enable_time().build().map_err(|_| Error::NotStarted)?;
    let handle = tokio.handle().clone();

    // Answers after a while, as something far away does.
    let spawner = handle.clone();
    let fetch = HostTool::new("far.fetch", EffectClass::Read)?.text("what", "What.").run_async(
        move |task| drop(spawner.spawn(task)),
        |call| async move {
            sleep(Duration::from_millis(5)).await;
            Ok(format!("{} from afar", call.text("what")?))
        },
    );

    // Never answers, and takes note when it is given up.
    let spawner = handle.clone();
    let noted = Arc::new(Mutex::new(false));
    let note = Arc::clone(&noted);
    let wait = HostTool::new("far.wait", EffectClass::LocalWrite)?
        .limit(Duration::from_millis(50))
        .run_async(
            move |task| drop(spawner.spawn(task)),
            move |call| {
                let note = Arc::clone(&note);
                async move {
                    call.cancelled().await;
                    *note.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = true;
                    Ok("too late")
                }
            },
        );

    // Its task is aborted from outside.
    let tasks: Arc<Mutex<Vec<JoinHandle<()>>>> = Arc::default();
    let (spawner, kept) = (handle.clone(), Arc::clone(&tasks));
    let doomed = HostTool::new("far.doomed", EffectClass::LocalWrite)?.run_async(
        move |task| {
            let task = spawner.spawn(task);
            task.abort();
            kept.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(task);
        },
        |_| async {
            std::future::pending::<()>().await;
            Ok("never")
        },
    );

    let rt = Options::new().tool(fetch)?.tool(wait)?.tool(doomed)?;
    let rt = rt.create(folder.path().join("home"))?;
    let grant = Grant::to("clerk").tools(["far.fetch", "far.wait", "far.doomed"]);
    let clerk = rt.session("clerk", rt.issue(grant)?)?;
    let blocking = handle.clone();
    let clerk = AsyncSession::on(clerk, move |work| drop(blocking.spawn_blocking(work)));

    let ended = tokio.block_on(async {
        // Two calls at once, on one session.
        let (tea, milk) = tokio::join!(
            clerk.call("far.fetch", args! { "what": "tea" }),
            clerk.call("far.fetch", args! { "what": "milk" }),
        );
        println!("{}, {}", tea?.text()?, milk?.text()?);

        // Given up after its limit: what it did is not known, and it is charged in full.
        let given_up = clerk.call("far.wait", args! {}).await?;
        println!("given up: {:?}, {:?}", given_up.reason(), given_up.tx_outcome());
        assert_eq!(given_up.reason(), Some(Reason::TimedOut));

        // Its permit went down with the task: the same.
        let gone = clerk.call("far.doomed", args! {}).await?;
        println!("aborted: {:?}, {:?}", gone.reason(), gone.tx_outcome());
        assert_eq!(
            (gone.reason(), gone.tx_outcome()),
            (Some(Reason::ProviderGone), TxOutcome::Unknown)
        );

        // A future that is dropped undoes nothing: the call ends, and is on record.
        let late = clerk.call("far.fetch", args! { "what": "jam" });
        let dropped = tokio::time::timeout(Duration::ZERO, late).await.is_err();
        println!("dropped: {dropped}");
        Ok(())
    });
    // What runs is waited for before the home is closed.
    tokio.shutdown_timeout(Duration::from_secs(2));
    println!("told that it was given up: {:?}", noted.lock().map(|noted| *noted));
    rt.close()?;
    ended
}
