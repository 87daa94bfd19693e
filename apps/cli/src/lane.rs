//! The lane out of `syscap run`: what the commands do that an agent may run within it. They reach
//! no home there. They come to the launcher's door, say which service they want, and hand on what
//! they read; what answers is a command outside, whose words the operator has settled.
//!
//! ```text
//! to the service    NAME LF, then its standard input to the end
//! from it           frames: a kind (one byte), a length (four, the greatest first), so many bytes
//! ```
//!
//! Only an end frame ends well: a lane that breaks off has answered nothing. The service `channel` is
//! answered by `C`, a ticket of 32 bytes and then what the home's server says; where it is refused,
//! by frames.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::num::NonZeroU32;
use std::os::unix::net::UnixStream;
use std::{env, thread};

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SocketType, socket};
use syscap::launch::DOOR;

use crate::exit::{Failure, diagnose};

/// The variable by which commands know that they are within: the services that there are.
pub(crate) const VARIABLE: &str = "SYSCAP_LANE";
/// Longest name of a service with its line feed, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 16;
/// How a channel begins that was given: no frame begins so.
pub(crate) const CHANNEL: u8 = 0x43;
/// Longest content of a frame, in bytes.
pub(crate) const FRAME_BYTES_MAX: usize = 1 << 16;
/// Most bytes that are kept of an answer which is only given whole.
const KEPT_BYTES_MAX: usize = 16 << 20;

/// A service of the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Service {
    /// `syscap hook`.
    Hook,
    /// `syscap mcp`.
    Mcp,
    /// `syscap call`.
    Call,
    /// The same with `--short`.
    CallShort,
    /// `syscap channel`.
    Channel,
}

impl Service {
    pub(crate) const ALL: [Self; 5] =
        [Self::Hook, Self::Mcp, Self::Call, Self::CallShort, Self::Channel];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Hook => "hook",
            Self::Mcp => "mcp",
            Self::Call => "call",
            Self::CallShort => "call-short",
            Self::Channel => "channel",
        }
    }
}

/// The content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
    /// The exit code, and nothing after it.
    End,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Out, Self::Err, Self::End];

    const fn byte(self) -> u8 {
        match self {
            Self::Out => 1,
            Self::Err => 2,
            Self::End => 3,
        }
    }
}

/// Writes what fits into one frame.
pub(crate) fn write_frame(to: &mut impl Write, kind: Kind, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    let mut frame = Vec::with_capacity(bytes.len().saturating_add(5));
    frame.push(kind.byte());
    frame.extend(length.to_be_bytes());
    frame.extend(bytes);
    to.write_all(&frame)
}

fn read_frame(from: &mut impl Read) -> io::Result<(Kind, Vec<u8>)> {
    let (mut kind, mut length) = ([0; 1], [0; 4]);
    from.read_exact(&mut kind)?;
    from.read_exact(&mut length)?;
    let broken = || io::Error::from(io::ErrorKind::InvalidData);
    let [kind] = kind;
    let kind = Kind::ALL.into_iter().find(|known| known.byte() == kind).ok_or_else(broken)?;
    let length = usize::try_from(u32::from_be_bytes(length)).map_err(io::Error::other)?;
    if length > FRAME_BYTES_MAX {
        return Err(broken());
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    Ok((kind, bytes))
}

/// True if this process is within `syscap run`, by its environment. If that is wrong, the door does
/// not exist and the command fails.
pub(crate) fn is_here() -> bool {
    env::var_os(VARIABLE).is_some_and(|services| !services.is_empty())
}

/// Says why what needs a home fails within, and who goes on.
pub(crate) fn explain(failure: &Failure) {
    if is_here() && !matches!(failure, Failure::Usage { .. } | Failure::Lane(_) | Failure::Pipe) {
        diagnose(
            "within `syscap run` no home is reached, but by `syscap call`, `channel`, `hook` and `mcp`: \
             an operator runs this outside",
        );
    }
}

/// Has a service answer this input, and passes on what it says as it comes; the exit code.
pub(crate) fn forward(
    service: Service,
    input: impl Read + Send + 'static,
    mut take: impl FnMut(Kind, &[u8]) -> io::Result<()>,
) -> Result<u8, String> {
    let broken = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => "the lane ended before an answer".to_owned(),
        _ => format!("the lane broke off: {error}"),
    };
    let mut lane = connect()?;
    lane.write_all(format!("{}\n", service.name()).as_bytes()).map_err(broken)?;
    let theirs = lane.try_clone().map_err(broken)?;
    // Not waited for: an answer may come before the end of the input, and is the end.
    thread::Builder::new()
        .name("syscap-lane".to_owned())
        .spawn(move || hand_on(input, &theirs))
        .map_err(broken)?;
    loop {
        match read_frame(&mut lane).map_err(broken)? {
            (Kind::End, code) => {
                let [code] = *code else { return Err("the lane is not understood".to_owned()) };
                return Ok(code);
            }
            (kind, bytes) => take(kind, &bytes).map_err(|error| error.to_string())?,
        }
    }
}

/// The agents' channel, for the run's own token: what comes begins with `C` and a ticket.
pub(crate) fn channel() -> Result<UnixStream, String> {
    let mut lane = connect()?;
    let broken = |error: io::Error| format!("the lane broke off: {error}");
    lane.write_all(format!("{}\n", Service::Channel.name()).as_bytes()).map_err(broken)?;
    let mut first = [0; 1];
    // It is looked at, and left to be read.
    rustix::net::recv(&lane, &mut first[..], RecvFlags::PEEK)
        .map_err(|error| broken(error.into()))?;
    if first == [CHANNEL] {
        return Ok(lane);
    }
    let (_, why) = read_frame(&mut lane).map_err(broken)?;
    Err(String::from_utf8_lossy(&why).trim().to_owned())
}

/// The same for an answer that counts only as a whole: what it wrote, and the exit code.
pub(crate) fn ask(service: Service, input: impl Read + Send + 'static) -> Result<Answer, String> {
    let mut answer = Answer::default();
    let code = forward(service, input, |kind, bytes| {
        let stream = if kind == Kind::Out { &mut answer.out } else { &mut answer.err };
        if stream.len().saturating_add(bytes.len()) > KEPT_BYTES_MAX {
            return Err(io::Error::other("the answer is too long"));
        }
        stream.extend(bytes);
        Ok(())
    })?;
    Ok(Answer { code, ..answer })
}

/// A service's answer.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) out: Vec<u8>,
    pub(crate) err: Vec<u8>,
    pub(crate) code: u8,
}

/// Passes each stream on to this process's own.
pub(crate) fn pass(kind: Kind, bytes: &[u8]) -> io::Result<()> {
    if kind == Kind::Out {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    } else {
        io::stderr().lock().write_all(bytes)
    }
}

/// Hands the input on to its end. If the other side reads no more its answer says why.
fn hand_on(mut input: impl Read, lane: &UnixStream) {
    let mut to = lane;
    match io::copy(&mut input, &mut to).and_then(|_| lane.shutdown(Shutdown::Write)) {
        Ok(()) | Err(_) => {}
    }
}

fn connect() -> Result<UnixStream, String> {
    let door = NonZeroU32::new(DOOR).map(Protocol::from_raw);
    // A signal may come before whoever opens the door has heard.
    match retry_on_intr(|| socket(AddressFamily::UNIX, SocketType::STREAM, door)) {
        Ok(lane) => Ok(UnixStream::from(lane)),
        Err(Errno::PROTONOSUPPORT) => {
            Err(format!("{VARIABLE} is set, but this is not within `syscap run`: unset it"))
        }
        Err(Errno::AGAIN | Errno::NFILE | Errno::MFILE) => {
            Err("`syscap run` takes no more connections at the moment".to_owned())
        }
        Err(error) => Err(format!("the lane of `syscap run` is not reached: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_frames_are_read() {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, Kind::Out, b"hello").unwrap();
        write_frame(&mut bytes, Kind::End, &[7]).unwrap();
        let mut from = &bytes[..];
        assert_eq!(read_frame(&mut from).unwrap(), (Kind::Out, b"hello".to_vec()));
        assert_eq!(read_frame(&mut from).unwrap(), (Kind::End, vec![7]));
        for cut in 0..10 {
            assert!(read_frame(&mut &bytes[..cut]).is_err(), "{cut}");
        }
        assert!(read_frame(&mut &[4, 0, 0, 0, 0][..]).is_err());
        assert!(read_frame(&mut &[1, 0, 1, 0, 1][..]).is_err());
    }
}
