//! `syscap artifacts context`.

use std::path::PathBuf;

use clap::Args;
use syscap::artifact::{BLOCK_BYTES_MIN, Block, Cut, LAST_MAX, Which};
use syscap::format::{AgentId, Seq};

use super::found::{concluded, read};
use crate::exit::Ended;
use crate::output::{Form, Object, Out};
use crate::parse;

/// The agent, and the amount of its results.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Each line that a tool wrote begins with \"| \"; no other line does. What is given to a model that
calls through another session than that of the results brings that session what the kernel does not
know of: --session keeps to one.")]
pub(crate) struct Context {
    /// The home.
    home: PathBuf,
    /// The agent.
    #[arg(long, value_name = "NAME", value_parser = parse::agent)]
    agent: AgentId,
    /// Only what was delivered to this session.
    #[arg(long, value_name = "RECORD")]
    session: Option<u64>,
    /// Most bytes of the text, at least 1024.
    #[arg(long, value_name = "N", default_value_t = 8_192,
          value_parser = clap::value_parser!(u32).range(1_024..=1_048_576))]
    bytes: u32,
    /// How many results, of the newest.
    #[arg(long, value_name = "N", default_value_t = 10)]
    last: u16,
}

impl Context {
    pub(super) fn run(self, out: &mut Out) -> Ended {
        let bytes = usize::try_from(self.bytes).unwrap_or(BLOCK_BYTES_MIN);
        let which = Which {
            agent: Some(self.agent),
            session: self.session.map(Seq::new),
            last: usize::from(self.last).min(LAST_MAX),
            cut: Cut { lines: 40, bytes },
        };
        let found = read(&self.home, &which)?;
        let block = Block::of(&found.artifacts, bytes);
        match out.form() {
            Form::Text => block.text.lines().try_for_each(|line| out.tabbed(line))?,
            Form::Json => {
                let number = |count| u64::try_from(count).unwrap_or(u64::MAX);
                let object = Object::new()
                    .text("text", &block.text)
                    .shown("label", block.label)
                    .uint("shown", number(block.shown))
                    .uint("left_out", number(block.left_out));
                out.line(&object.finish())?;
            }
        }
        concluded(&self.home, &found)
    }
}
