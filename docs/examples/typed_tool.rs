//! A type as a tool: parsed once, checked against the token's scope, run as it was checked.
//! `cargo run --example typed_tool`.

use syscap::format::{EffectClass, Name, Names, Refused, Resource, Scope};
use syscap::host::{Failure, HostArgs, HostTool, Planned, ToolCall, Typed};
use syscap::prelude::*;

/// A note for a board. Which boards is for the token to say.
struct Note {
    board: Name,
    text: String,
}

impl Typed for Note {
    type Answer = String;

    fn plan(args: HostArgs<'_>) -> Result<Planned<Self>, Refused> {
        let board =
            Name::new(args.text("board")?).map_err(|_| args.bad("board", "a short name"))?;
        let touched = Resource::Name(board.clone());
        let note = Self { board, text: args.text("text")?.to_owned() };
        Ok(Planned::new(note).touches("board", touched, "board"))
    }

    fn run(self, call: &ToolCall) -> Result<String, Failure> {
        Ok(format!("{}: {} by {}", self.board, self.text, call.agent()))
    }
}

pub(crate) fn main() -> Result<(), Error> {
    let folder = tempfile::tempdir().map_err(|_| Error::NotStarted)?;
    let pin = HostTool::new("board.pin", EffectClass::LocalWrite)?
        .described("Pins a note to a board.")
        .text("board", "Which board.")
        .text("text", "What it says.")
        .needs("board")
        .typed::<Note>();
    let rt = Options::new().tool(pin)?.create(folder.path().join("home"))?;

    let boards = Scope::Names(Names::new([Name::new("team")?])?);
    let grant = Grant::to("clerk").tools(["board.pin"]).scope("board", boards);
    let clerk = rt.session("clerk", rt.issue(grant)?)?;

    let pinned = clerk.call("board.pin", args! { "board": "team", "text": "tea at four" })?;
    println!("{}", pinned.text()?);

    let refused = clerk.call("board.pin", args! { "board": "all", "text": "tea for all" })?;
    println!("the other board: {:?}", refused.reason());
    assert_eq!(refused.reason(), Some(Reason::OutOfScope));
    rt.close()
}
