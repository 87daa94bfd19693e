//! The loop of an agent's runtime: what a model asks for is called, what came of it is given back
//! to the model, and what a refusal says about sending it again is obeyed. The model is a script
//! here. `cargo run --example agent_loop`.

use std::thread;

use syscap::prelude::*;

/// How often the same call is sent again before it is given up.
const TRIES: u32 = 3;

/// What a model asks for: a tool, and its arguments as it wrote them.
struct Wish {
    tool: &'static str,
    arguments: String,
}

/// Stands for a model: it sees what came of its last wish, as JSON, and has another one or none.
fn model(turn: usize, last: Option<&str>) -> Option<Wish> {
    let wish = |tool, arguments: &str| Some(Wish { tool, arguments: arguments.to_owned() });
    match turn {
        // It gets the path wrong.
        0 => wish("fs.write", r#"{"path": "/notes.txt", "text": "call ada"}"#),
        // It has read in the error object what is allowed.
        1 if last.is_some_and(|told| told.contains("bad_path")) => {
            wish("fs.write", r#"{"path": "notes.txt", "text": "call ada"}"#)
        }
        2 => wish("fs.read", r#"{"path": "notes.txt"}"#),
        // It wants what nobody has granted.
        3 => wish("fs.list", r#"{"path": "."}"#),
        _ => None,
    }
}

/// What became of a wish.
enum Next {
    /// What the model is given, and goes on with.
    Tell(String),
    /// A person has to look first.
    Ask(String),
}

fn call(agent: &Session, wish: &Wish) -> Result<Next, Error> {
    for tried in 0.. {
        // The text of the model's arguments is arguments, and can set nothing else.
        let result = agent.request(wish.tool).json(&wish.arguments, Escapes::Data).wait()?;
        println!("  record {}: {}", result.receipt().outcome_seq, result.to_json());
        match result.retry() {
            // It has a result, or a fault that the model can mend, or nothing helps: it is told.
            None | Some(Retry::Fix | Retry::Never) => return Ok(Next::Tell(result.to_json())),
            Some(Retry::Wait) if tried < TRIES => {
                thread::sleep(Duration::from_millis(50 << tried));
            }
            // Authority, budget or certainty is missing: not the model's to decide.
            Some(Retry::Wait | Retry::Ask) => return Ok(Next::Ask(result.to_json())),
        }
    }
    Err(Error::BrokeOff)
}

pub(crate) fn main() -> Result<(), Error> {
    let folder = tempfile::tempdir().map_err(|_| Error::NotStarted)?;
    let rt = Runtime::create(folder.path().join("home"))?;
    let grant = Grant::to("writer").tools(["fs.read", "fs.write"]).workspace();
    let agent = rt.session("writer", rt.issue(grant)?)?;

    let mut last: Option<String> = None;
    let mut asked = None;
    let mut turn = 0;
    while let Some(wish) = model(turn, last.as_deref()) {
        println!("the model wants {} {}", wish.tool, wish.arguments);
        match call(&agent, &wish)? {
            Next::Tell(told) => last = Some(told),
            Next::Ask(told) => {
                println!("a person is asked: {told}");
                asked = Some(told);
                break;
            }
        }
        turn += 1;
    }
    assert_eq!(turn, 3, "two calls went through, one was mended, and one needs a person");
    assert!(asked.is_some_and(|told| told.contains("not_granted")));
    rt.close()
}
