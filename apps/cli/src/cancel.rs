//! `syscap cancel`: ends a call that is out.

use std::path::PathBuf;

use clap::Args;
use syscap::format::{CancelBody, Role, Seq, TextHash};

use crate::exit::{Ended, Exit};
use crate::output::{Object, Out};
use crate::{parse, signing};

/// Which call.
#[derive(Args, Debug)]
#[command(after_long_help = "\
`syscap top` shows the calls that are out, by their intents. One that has not begun does not run;
one that runs is told so, and its result is marked: what it did stays done.")]
pub(crate) struct Cancel {
    /// The home.
    home: PathBuf,
    /// The record of its intent.
    intent: u64,
    /// Why: kept beside the log, which has a commitment to it.
    #[arg(long, value_name = "TEXT", value_parser = parse::why)]
    because: Option<String>,
}

impl Cancel {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let intent = Seq::new(self.intent);
        let body = |cause: Option<TextHash>| CancelBody { intent, cause };
        let why = self.because.as_deref();
        let seq = signing::because(&self.home, Role::Revoker, body, why)?;
        let json = Object::new().uint("intent", intent.get()).uint("record", seq.get());
        out.both(&format!("cancelled by record {seq}"), json)?;
        Ok(Exit::Done)
    }
}
