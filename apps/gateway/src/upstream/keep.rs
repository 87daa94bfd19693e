//! Keeps a server running: starts it, passes on what it says, lists it anew, starts it again.

use std::{sync::Arc, time::Duration};

use rmcp::model::{LoggingMessageNotificationParam, ProgressNotificationParam, SubscriptionFilter};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::client::capabilities::{Able, WireKind};
use crate::gateway::Gateway;
use crate::governed::{asks, offer};
use crate::say::say;
use crate::token::{news, next};
use crate::upstream::lists::ListMethod;
use crate::upstream::notice::{ChangedList, Notice, WaitingNotice};
use crate::upstream::server::McpServer;
use crate::upstream::{Connection, NoStart, NoticeStream, tools};

/// How often in a row a server is started again.
const TRIES_MAX: u32 = 5;
/// The pause before the first of them; each next one is twice as long.
const PAUSE: Duration = Duration::from_millis(200);
/// A server that ran for so long has not failed in a row.
const STEADY: Duration = Duration::from_secs(60);
/// The pause before a server's list is asked for anew; each next one is twice as long.
const RELIST: Duration = Duration::from_millis(200);
/// The longest of them.
const RELIST_MAX: Duration = Duration::from_secs(30);
/// After so long without a list the pause is the first again.
const QUIET: Duration = Duration::from_secs(10);
/// How often in a row a list is asked for anew that the server failed to give.
const LISTS_MAX: u32 = 5;

/// Starts a server and lists its tools.
pub(crate) async fn open(
    gateway: &Arc<Gateway>,
    place: usize,
    able: &Able,
) -> Result<NoticeStream, NoStart> {
    let Some(server) = gateway.server(place) else {
        return Err(NoStart::Handshake(String::from("there is no such server")));
    };
    let opened = Connection::open(&gateway.starter, &server.command, &gateway.tasks, able).await?;
    let (connection, notices, questions) = opened;
    gateway.tasks.spawn(asks::serve(Arc::clone(gateway), place, questions));
    let connection = Arc::new(connection);
    // It is starting until it has listed its tools.
    if tools::list(server, &connection, &gateway.closing).await.is_err() {
        server.relist.notify_one();
        server.relist_prompts.notify_one();
    }
    server.set_connection(Some(connection));
    Ok(notices)
}

/// Starts the server of that place, and keeps it until the gateway ends or it fails too often.
pub(crate) async fn keep(gateway: Arc<Gateway>, place: usize, able: Able) {
    let Some(server) = gateway.server(place) else { return };
    let opened = tokio::select! {
        opened = open(&gateway, place, &able) => opened,
        () = gateway.closing.cancelled() => return,
    };
    let mut notices = match opened {
        Ok(notices) => {
            gateway.running.cancel();
            Some(notices)
        }
        Err(error) => {
            server.fails(&error);
            None
        }
    };
    server.settled.cancel();
    tokio::select! {
        () = gateway.opened.cancelled() => {}
        () = gateway.closing.cancelled() => {}
    }
    if notices.is_some() && !gateway.closing.is_cancelled() && server.joins() {
        join(&gateway, server).await;
    }
    let mut tries = 0_u32;
    loop {
        let since = Instant::now();
        if let (Some(notices), Some(connection)) = (notices.take(), server.connection()) {
            serve(&gateway, server, &connection, notices).await;
            server.set_connection(None);
            if gateway.closing.is_cancelled() {
                drop(connection.close().await);
                return;
            }
            let name = server.name.clone();
            gateway.tasks.spawn(async move {
                let exited = connection.close().await;
                say(&format!("server {name}: it broke off: {exited}"));
            });
            // What comes next may be another program: nothing of this one is its own.
            offer_again(&gateway, server).await;
        }
        if since.elapsed() >= STEADY {
            tries = 0;
        }
        if tries >= TRIES_MAX {
            break;
        }
        let pause = PAUSE.saturating_mul(2_u32.saturating_pow(tries));
        tries = tries.saturating_add(1);
        tokio::select! {
            () = gateway.closing.cancelled() => return,
            () = sleep(pause) => {}
        }
        notices = start_again(&gateway, place, server, &able).await;
    }
    give_up(&gateway, server).await;
}

/// Offers the tools of a server that came after the beginning. A token that was issued here was
/// issued for all servers: so is the next, with these tools too.
async fn join(gateway: &Arc<Gateway>, server: &McpServer) {
    say(&format!("server {}: it runs now", server.name));
    if let Err(error) = offer::offer(gateway).await {
        let why = error.for_operator();
        say(&format!("server {}: its tools can't be offered: {why}", server.name));
    }
    news::widen(gateway).await;
    news::take_up(gateway).await;
    gateway.client.changed(ChangedList::Tools).await;
}

async fn start_again(
    gateway: &Arc<Gateway>,
    place: usize,
    server: &McpServer,
    able: &Able,
) -> Option<NoticeStream> {
    let opened = tokio::select! {
        opened = open(gateway, place, able) => opened,
        () = gateway.closing.cancelled() => return None,
    };
    match opened {
        Ok(notices) => {
            if server.joins() {
                join(gateway, server).await;
            } else {
                say(&format!("server {}: it runs again", server.name));
                offer_again(gateway, server).await;
            }
            Some(notices)
        }
        Err(error) => {
            server.fails(&error);
            None
        }
    }
}

/// Takes the tools of a server back that can't be kept running.
async fn give_up(gateway: &Arc<Gateway>, server: &McpServer) {
    server.gives_up();
    next::say_given_up(gateway, server);
    offer_again(gateway, server).await;
}

async fn offer_list_again(gateway: &Arc<Gateway>, server: &McpServer, list: ChangedList) {
    if let Err(error) = offer::offer(gateway).await {
        let why = error.for_operator();
        say(&format!("server {}: its tools can't be offered: {why}", server.name));
    }
    news::take_up(gateway).await;
    gateway.client.changed(list).await;
}

async fn offer_again(gateway: &Arc<Gateway>, server: &McpServer) {
    offer_list_again(gateway, server, ChangedList::Tools).await;
    if gateway.options.prompts {
        gateway.client.changed(ChangedList::Prompts).await;
    }
}

/// Passes on what a server says until it breaks off or the gateway ends.
async fn serve(
    gateway: &Arc<Gateway>,
    server: &McpServer,
    connection: &Arc<Connection>,
    notices: NoticeStream,
) {
    let NoticeStream { mut notices, missed } = notices;
    let speaking = async {
        while let Some(WaitingNotice { notice, room }) = notices.recv().await {
            pass_on(gateway, server, connection, notice).await;
            drop(room);
            for list in missed.take() {
                changed(gateway, server, list).await;
            }
        }
    };
    tokio::select! {
        () = speaking => {}
        () = relist(gateway, server, connection, ListMethod::Tools) => {}
        () = relist(gateway, server, connection, ListMethod::Prompts) => {}
        () = subscribed(connection) => {}
        () = connection.gone.cancelled() => {}
        () = gateway.closing.cancelled() => {}
    }
}

async fn pass_on(
    gateway: &Arc<Gateway>,
    server: &McpServer,
    connection: &Connection,
    notice: Notice,
) {
    // While all is stopped nothing that a server says unasked is passed on.
    let said = matches!(notice, Notice::Log(_) | Notice::Updated(_));
    if said && gateway.is_stopped().await {
        return;
    }
    match notice {
        Notice::Progress(params) => progress(gateway, connection, params).await,
        Notice::Log(params) => log(gateway, params).await,
        Notice::Updated(params) => {
            if let Some(uri) = params.get("uri").and_then(Value::as_str) {
                gateway.client.updated(uri).await;
            }
        }
        Notice::Changed(list) => changed(gateway, server, list).await,
        Notice::Mark(passed) => {
            // Who waited for it may have given up.
            passed.send(()).ok();
        }
    }
}

async fn progress(gateway: &Gateway, connection: &Connection, params: Value) {
    let Ok(mut params) = serde_json::from_value::<ProgressNotificationParam>(params) else {
        return;
    };
    let flight = connection.flight_of(&params.progress_token);
    let Some(token) = flight.and_then(|flight| flight.progress.clone()) else { return };
    params.progress_token = token;
    gateway.client.progress(params).await;
}

async fn log(gateway: &Gateway, params: Value) {
    let Ok(message) = serde_json::from_value::<LoggingMessageNotificationParam>(params) else {
        return;
    };
    if gateway.client.able().wire == WireKind::Session || gateway.flights.wants_log() {
        gateway.client.log(message).await;
    }
}

async fn changed(gateway: &Gateway, server: &McpServer, list: ChangedList) {
    match list {
        ChangedList::Tools => server.relist.notify_one(),
        ChangedList::Prompts => server.relist_prompts.notify_one(),
        ChangedList::Resources if gateway.options.resources => gateway.client.changed(list).await,
        ChangedList::Resources => {}
    }
}

/// Lists the tools, or the prompts, anew when the server says that they changed, the more seldom
/// the more often it says so.
async fn relist(
    gateway: &Arc<Gateway>,
    server: &McpServer,
    connection: &Connection,
    method: ListMethod,
) {
    let (list, wakes) = match method {
        ListMethod::Prompts => (ChangedList::Prompts, &server.relist_prompts),
        _ => (ChangedList::Tools, &server.relist),
    };
    let (mut pace, mut failed) = (Pace::default(), 0_u32);
    loop {
        wakes.notified().await;
        if connection.is_listed(list) {
            continue;
        }
        // The pauses are for announcements: who calls waits for none.
        tokio::select! {
            () = sleep(pace.pause(Instant::now())) => {}
            () = connection.awaited(list) => {}
        }
        let before = connection.listing(list);
        failed = match tools::list_of(server, connection, method, &gateway.closing).await {
            Ok(()) => 0,
            Err(_) => failed.saturating_add(1),
        };
        if connection.listing(list).definitions != before.definitions {
            offer_list_again(gateway, server, list).await;
        }
        if (1..=LISTS_MAX).contains(&failed) {
            wakes.notify_one();
        }
    }
}

/// How long to wait before the next list.
#[derive(Debug, Default)]
struct Pace {
    /// The last pause, and when it was over.
    last: Option<(Duration, Instant)>,
}

impl Pace {
    fn pause(&mut self, now: Instant) -> Duration {
        let pause = match self.last {
            Some((pause, over)) if now.saturating_duration_since(over) < QUIET => {
                pause.saturating_mul(2).min(RELIST_MAX)
            }
            _ => RELIST,
        };
        self.last = Some((pause, now.checked_add(pause).unwrap_or(now)));
        pause
    }
}

/// On the newer wire a server says that its lists changed only to who has asked for it.
async fn subscribed(connection: &Connection) {
    if connection.wire == WireKind::Stateless {
        let mut filter = SubscriptionFilter::new();
        let offers = &connection.capabilities;
        let of = |changed: Option<bool>| (changed == Some(true)).then_some(true);
        filter.tools_list_changed = of(offers.tools.as_ref().and_then(|of| of.list_changed));
        filter.prompts_list_changed = of(offers.prompts.as_ref().and_then(|of| of.list_changed));
        filter.resources_list_changed =
            of(offers.resources.as_ref().and_then(|of| of.list_changed));
        if filter != SubscriptionFilter::new() {
            // One that takes no subscription says nothing, which is no reason to end it.
            connection.listen("", filter).await.ok();
        }
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_changes_slow_the_relisting() {
        let (mut pace, mut now) = (Pace::default(), Instant::now());
        let mut asked = 0;
        let until = now + Duration::from_secs(600);
        while now < until {
            now += pace.pause(now);
            asked += 1;
        }
        assert!(asked < 30, "{asked}");
        assert_eq!(pace.pause(now), RELIST_MAX);
        now += RELIST_MAX + QUIET;
        assert_eq!(pace.pause(now), RELIST);
    }
}
