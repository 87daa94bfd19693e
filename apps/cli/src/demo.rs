//! `syscap demo`: a session that shows what is allowed and what is not, and checks itself.

mod attempts;
mod effects;
mod stage;
mod tamper;

use std::path::PathBuf;

use clap::Args;
use syscap::Runtime;
use syscap::boundary::Scratch;

use self::stage::Stage;
use crate::exit::{Ended, Failure};
use crate::init;
use crate::output::Out;

/// The place of the demo.
#[derive(Args, Debug)]
pub(crate) struct Demo {
    /// Make the home here and keep it, to look at afterwards.
    #[arg(long, value_name = "HOME")]
    keep: Option<PathBuf>,
}

impl Demo {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let scratch = Scratch::new("demo")?;
        let ended = self.play(&scratch, out);
        let removed = scratch.remove();
        let exit = ended?;
        removed?;
        Ok(exit)
    }

    fn play(&self, scratch: &Scratch, out: &mut Out) -> Ended {
        let home = self.keep.clone().unwrap_or_else(|| scratch.path().join("home"));
        let secret = effects::secret(scratch)?;
        init::expect_empty(&home)?;
        let runtime = Runtime::create(&home).map_err(Failure::home(&home))?;
        let mut stage = Stage::new(out);
        let played = attempts::all(&mut stage, &runtime, &secret);
        let effects = played.and_then(|()| effects::show(&mut stage, &runtime, &secret));
        let closed = runtime.close();
        effects?;
        closed?;
        tamper::show(&mut stage, &home, scratch)?;
        stage.end(self.keep.as_deref())
    }
}
