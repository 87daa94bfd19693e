//! The tools that the suite asks for and that syscap has none of its own for: both ask the
//! runner's server.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};

use syscap::format::{EffectClass, Param, ParamType, Refused, ScopeType};
use syscap::host::{Failure, HostArgs, HostTool, Planned, ToolCall, Typed};
use syscap::prelude::*;

/// The URL of the runner's server.
static SERVER: Mutex<String> = Mutex::new(String::new());

fn asked(path: &str) -> Result<String, Failure> {
    let server = SERVER.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let rest = server.trim_start_matches("http://");
    let (host, base) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(host)?;
    write!(stream, "GET /{base}/{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    if head.split(' ').nth(1) == Some("200") {
        Ok(body.to_owned())
    } else {
        Err(Failure::new(head))
    }
}

/// So many units are spent: what is set aside is what the call says.
struct Count(u64);

impl Typed for Count {
    type Answer = String;

    fn plan(args: HostArgs<'_>) -> Result<Planned<Self>, Refused> {
        let by = u64::try_from(args.integer("by")?).map_err(|_| args.bad("by", "at least 0"))?;
        Ok(Planned::new(Self(by)).hold(Dimension::CreditsMicro, by))
    }

    fn run(self, call: &ToolCall) -> Result<String, Failure> {
        call.meter(Dimension::CreditsMicro, self.0)?;
        asked(&format!("count/{}", self.0))
    }
}

/// Adds them.
pub(crate) fn added(options: Options, server: &str) -> Result<Options, Error> {
    server.clone_into(&mut SERVER.lock().unwrap_or_else(PoisonError::into_inner));
    let get = HostTool::new("get", EffectClass::ExternalWrite)?
        .text("page", "Which page.")
        .argument("page", ScopeType::Names)
        .run(|call| asked(call.text("page")?));
    let count = HostTool::new("count", EffectClass::ExternalWrite)?
        .arg(Param::required("by", ParamType::Int, "By how much.").within(0, 1 << 40))
        .typed::<Count>();
    options.tool(get)?.tool(count)
}
