//! One call, as a program would make it: `few-features HOME AGENT TOKEN TOOL ARGUMENTS`. Prints the
//! result, or the name of the reason why there is none.

use syscap::Runtime;
use syscap::format::{TokenId, json::Escapes};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [home, agent, token, tool, arguments] = &args[..] else {
        return Err("few-features HOME AGENT TOKEN TOOL ARGUMENTS".into());
    };
    let token = TokenId::from_hex(token).ok_or("a token's id has 64 hexadecimal digits")?;
    let rt = Runtime::open(home)?;
    let result = rt.session(agent, token)?.request(tool).json(arguments, Escapes::Data).wait()?;
    match result.reason() {
        Some(reason) => println!("{}", reason.name()),
        None => println!("{}", result.to_json()),
    }
    Ok(rt.close()?)
}
