//! Keeps a server running: passes on what it says, lists it anew, starts it again.

use std::{sync::Arc, time::Duration};

use rmcp::model::LoggingMessageNotificationParam;
use rmcp::model::{ProgressNotificationParam, SubscriptionFilter};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::{
    client::{Able, WireKind},
    hub::Hub,
    offer,
    say::say,
    server::Server,
    upstream::{Link, List, Notice, Said},
};

/// How often in a row a server is started again.
const TRIES_MAX: u32 = 5;
/// The pause before the first of them; each next one is twice as long.
const PAUSE: Duration = Duration::from_millis(200);
/// A server that ran for so long has not failed in a row.
const STEADY: Duration = Duration::from_secs(60);
/// The least time between two lists of a server.
const RELIST: Duration = Duration::from_millis(200);

/// Keeps the server of that place until the gateway ends or it fails too often.
pub(crate) async fn keep(hub: Arc<Hub>, place: usize, mut said: Option<Said>, able: Able) {
    let Some(server) = hub.server(place) else { return };
    let mut tries = 0_u32;
    loop {
        let since = Instant::now();
        if let (Some(said), Some(link)) = (said.take(), server.link()) {
            serve(&hub, server, &link, said).await;
            server.set_link(None);
            if hub.closing.is_cancelled() {
                return link.close().await;
            }
            say(&format!("server {}: it broke off", server.name));
            hub.tasks.spawn(async move { link.close().await });
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
            () = hub.closing.cancelled() => return,
            () = sleep(pause) => {}
        }
        said = start_again(&hub, place, server, &able).await;
    }
    give_up(&hub, server).await;
}

async fn start_again(hub: &Arc<Hub>, place: usize, server: &Server, able: &Able) -> Option<Said> {
    let opened = tokio::select! {
        opened = hub.open(place, able) => opened,
        () = hub.closing.cancelled() => return None,
    };
    match opened {
        Ok(said) => {
            say(&format!("server {}: it runs again", server.name));
            offer_again(hub, server).await;
            Some(said)
        }
        Err(error) => {
            say(&format!("server {}: {error}", server.name));
            None
        }
    }
}

/// Takes the tools of a server back that can't be kept running.
async fn give_up(hub: &Arc<Hub>, server: &Server) {
    say(&format!("server {}: it is not started again", server.name));
    server.set_definitions(&[]);
    offer_again(hub, server).await;
}

async fn offer_again(hub: &Arc<Hub>, server: &Server) {
    if let Err(error) = offer::offer(hub).await {
        say(&format!("server {}: its tools can't be offered: {error}", server.name));
    }
    hub.client.changed(List::Tools).await;
}

/// Passes on what a server says until it breaks off or the gateway ends.
async fn serve(hub: &Arc<Hub>, server: &Server, link: &Arc<Link>, said: Said) {
    let Said { mut notices, missed } = said;
    let speaking = async {
        while let Some(notice) = notices.recv().await {
            pass_on(hub, server, link, notice).await;
            for list in missed.take() {
                changed(hub, server, list).await;
            }
        }
    };
    tokio::select! {
        () = speaking => {}
        () = relist(hub, server, link) => {}
        () = subscribed(link) => {}
        () = link.gone.cancelled() => {}
        () = hub.closing.cancelled() => {}
    }
}

async fn pass_on(hub: &Arc<Hub>, server: &Server, link: &Link, notice: Notice) {
    match notice {
        Notice::Progress(params) => progress(hub, link, params).await,
        Notice::Log(params) => log(hub, params).await,
        Notice::Updated(params) => {
            if let Some(uri) = params.get("uri").and_then(Value::as_str) {
                hub.client.updated(uri).await;
            }
        }
        Notice::Changed(list) => changed(hub, server, list).await,
        Notice::Mark(passed) => {
            // Who waited for it may have given up.
            passed.send(()).ok();
        }
    }
}

async fn progress(hub: &Hub, link: &Link, params: Value) {
    let Ok(mut params) = serde_json::from_value::<ProgressNotificationParam>(params) else {
        return;
    };
    let flight = link.flight_of(&params.progress_token);
    let Some(token) = flight.and_then(|flight| flight.progress.clone()) else { return };
    params.progress_token = token;
    hub.client.progress(params).await;
}

async fn log(hub: &Hub, params: Value) {
    let Ok(message) = serde_json::from_value::<LoggingMessageNotificationParam>(params) else {
        return;
    };
    if hub.client.able().wire == WireKind::Session || hub.flights.wants_log() {
        hub.client.log(message).await;
    }
}

async fn changed(hub: &Hub, server: &Server, list: List) {
    match list {
        List::Tools => server.relist.notify_one(),
        List::Prompts | List::Resources => hub.client.changed(list).await,
    }
}

/// Lists the tools anew when the server says that they changed, at most so often.
async fn relist(hub: &Arc<Hub>, server: &Server, link: &Link) {
    loop {
        server.relist.notified().await;
        sleep(RELIST).await;
        match hub.list(server, link).await {
            Ok(definitions) => {
                if server.set_definitions(&definitions) {
                    offer_again(hub, server).await;
                }
            }
            Err(trouble) => say(&format!("server {}: tools/list: {trouble}", server.name)),
        }
    }
}

/// On the newer wire a server says that its lists changed only to who has asked for it.
async fn subscribed(link: &Link) {
    if link.wire == WireKind::Stateless {
        let mut filter = SubscriptionFilter::new();
        let offers = &link.capabilities;
        let of = |changed: Option<bool>| (changed == Some(true)).then_some(true);
        filter.tools_list_changed = of(offers.tools.as_ref().and_then(|of| of.list_changed));
        filter.prompts_list_changed = of(offers.prompts.as_ref().and_then(|of| of.list_changed));
        filter.resources_list_changed =
            of(offers.resources.as_ref().and_then(|of| of.list_changed));
        if filter != SubscriptionFilter::new() {
            // One that takes no subscription says nothing, which is no reason to end it.
            link.listen("", filter).await.ok();
        }
    }
    std::future::pending().await
}
