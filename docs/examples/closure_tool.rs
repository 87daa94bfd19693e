//! A closure as a tool: `cargo run --example closure_tool`.

use syscap::format::{EffectClass, Param, ParamType, Refused};
use syscap::host::{Failure, HostTool};
use syscap::prelude::*;

pub(crate) fn main() -> Result<(), Error> {
    let folder = tempfile::tempdir().map_err(|_| Error::NotStarted)?;

    // What it is called, what it does to the world, what it takes, and how it runs.
    let lookup = HostTool::new("org.lookup", EffectClass::Read)?
        .described("Finds a colleague's desk.")
        .text("name", "Whose desk.")
        .run(|call| match call.text("name")? {
            "ada" => Ok("2.17"),
            other => Err(Failure::because(Refused::new(Reason::NotFound).got(other))),
        });

    // Bounds and defaults are checked before the closure sees the call. What it sends is set
    // aside before it runs, and counted while it does.
    let remind = HostTool::new("desk.remind", EffectClass::ExternalWrite)?
        .text("desk", "Where.")
        .arg(Param::optional("hours", ParamType::Int, "When, from now.").within(1, 48))
        .hold(Dimension::EgressBytes, 64)
        .run(|call| {
            let note = format!("{} asks for {}", call.agent(), call.text("desk")?);
            call.meter(Dimension::EgressBytes, u64::try_from(note.len())?)?;
            Ok(args! { "sent": note, "hours": call.args().maybe_integer("hours")?.unwrap_or(1) })
        });

    let rt = Options::new().tool(lookup)?.tool(remind)?.create(folder.path().join("home"))?;
    let grant = Grant::to("clerk").tools(["org.lookup", "desk.remind"]);
    let clerk = rt.session("clerk", rt.issue(grant)?)?;

    let desk = clerk.call("org.lookup", args! { "name": "ada" })?;
    println!("ada sits at {}: record {}", desk.text()?, desk.receipt().outcome_seq);

    let nobody = clerk.call("org.lookup", args! { "name": "bob" })?;
    println!("bob: {:?}", nobody.reason());
    assert_eq!(nobody.reason(), Some(Reason::NotFound));

    // The home's first policy, `standard`, asks a person before anything leaves: see
    // `syscap policy`. Nothing ran, and the record says so.
    let asked = clerk.call("desk.remind", args! { "desk": "2.17" })?;
    println!("a reminder: {:?}", asked.reason());
    assert_eq!(asked.reason(), Some(Reason::Asked));
    rt.close()
}
