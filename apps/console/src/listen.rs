//! The sockets, and the connections.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::Shared;
use crate::service::{Live, answer};

/// Most connections at a time: a browser has six to an origin.
const CONNECTIONS_MAX: usize = 64;
/// Most requests that are worked on at a time, by a thread each.
const WORK_MAX: usize = 16;
/// How long the head of a request may take; an idle connection ends then.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// Most headers of a request, and most bytes of its head.
const HEADERS_MAX: usize = 64;
const HEAD_BYTES_MAX: usize = 32 << 10;
/// How often a port is drawn that is free on one family alone.
const DRAWS: u32 = 16;

/// Listens on both loopback addresses at one port. A machine without IPv6 has one.
pub(crate) fn bind(port: Option<u16>) -> io::Result<(Vec<TcpListener>, u16)> {
    let mut draws = if port.is_some() { 1 } else { DRAWS };
    loop {
        draws = draws.saturating_sub(1);
        let four = TcpListener::bind((Ipv4Addr::LOCALHOST, port.unwrap_or(0)))?;
        let drawn = four.local_addr()?.port();
        match TcpListener::bind((Ipv6Addr::LOCALHOST, drawn)) {
            Ok(six) => return Ok((vec![four, six], drawn)),
            Err(error) if no_such_family(&error) => return Ok((vec![four], drawn)),
            // Whoever has it could answer in its place.
            Err(error) if draws == 0 => return Err(error),
            Err(_) => {}
        }
    }
}

fn no_such_family(error: &io::Error) -> bool {
    let os = error.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
    error.kind() == ErrorKind::AddrNotAvailable || os == Some(rustix::io::Errno::AFNOSUPPORT)
}

pub(crate) fn serve(listeners: Vec<TcpListener>, shared: Arc<Shared>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(WORK_MAX)
        .thread_name("syscap-console")
        .enable_all()
        .build()?;
    runtime.block_on(async move {
        let live = Live::start(Arc::clone(&shared));
        let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut accepting = tokio::task::JoinSet::new();
        for listener in listeners {
            listener.set_nonblocking(true)?;
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let (shared, live, room) = (Arc::clone(&shared), live.clone(), Arc::clone(&room));
            accepting.spawn(async move { accept(listener, shared, live, room).await });
        }
        while let Some(ended) = accepting.join_next().await {
            ended.map_err(io::Error::other)??;
        }
        Ok(())
    })
}

async fn accept(
    listener: tokio::net::TcpListener,
    shared: Arc<Shared>,
    live: Live,
    room: Arc<Semaphore>,
) -> io::Result<()> {
    loop {
        // Before one is accepted: who is too much waits with the operating system.
        let place = Arc::clone(&room).acquire_owned().await.map_err(io::Error::other)?;
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) if is_passing(&error) => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        let (shared, live) = (Arc::clone(&shared), live.clone());
        tokio::spawn(async move {
            connection(stream, peer, shared, live).await;
            drop(place);
        });
    }
}

/// A full table of descriptors, or a peer that has gone meanwhile.
fn is_passing(error: &io::Error) -> bool {
    let os = error.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
    error.kind() == ErrorKind::ConnectionAborted
        || matches!(os, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
}

async fn connection(stream: TcpStream, peer: SocketAddr, shared: Arc<Shared>, live: Live) {
    if !peer.ip().is_loopback() {
        return;
    }
    let service = service_fn(move |request| {
        let (shared, live) = (Arc::clone(&shared), live.clone());
        async move { answer(request, shared, live).await }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .half_close(false)
        .serve_connection(TokioIo::new(stream), service);
    // What a peer does wrong ends its connection, and concerns nobody else.
    drop(served.await);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_is_had_on_both_families_or_not_at_all() {
        let (listeners, port) = bind(None).unwrap();
        assert!(listeners.iter().all(|one| one.local_addr().unwrap().port() == port));
        assert!(listeners.iter().all(|one| one.local_addr().unwrap().ip().is_loopback()));
        assert!(bind(Some(port)).is_err());
        drop(listeners);
        let Ok(six) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) else { return };
        let taken = six.local_addr().unwrap().port();
        assert!(bind(Some(taken)).is_err(), "taken on one family");
    }
}
