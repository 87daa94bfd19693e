//! A request that a plan has made, on its way: addresses looked up, secrets put in, its answer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use syscap_format::{
    AgentId, Amounts, Canonical, Cidrs, Dimension, Enforcement, Host, Item, Reason, Refused,
    TxOutcome,
};
use syscap_kernel::{Permit, Ran};

use super::answer::{SLACK_BYTES, Shape};
use super::exchange::{HEAD_BYTES_MAX, Order};
use super::method::Method;
use super::parts::Network;
use super::reach;
use super::scrub::Scrubber;
use super::secret::Secret;
use super::settings::{Placed, ResponseFormat, Settings, Spot, Through};
use super::target::{Place, Target};
use super::wire::{Tunnel, Wire, authority};

/// The bytes of TLS beside the request and the answer: certificates above all.
const TLS_BYTES: u64 = 64 << 10;
/// The bytes of a request's head beside its URL and its headers.
const HEAD_BYTES: u64 = 4 << 10;
/// The share of TLS in the bytes sent: one part in so many.
const TLS_SHARE: u64 = 64;
/// The longest time beyond an exchange's own that a call takes.
const SLACK_MS: u64 = 2_000;

/// All that is sent, and what is made of what comes back.
pub(super) struct Parcel {
    pub(super) target: Target,
    pub(super) method: Method,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Option<Vec<u8>>,
    pub(super) secrets: Vec<Placed>,
    /// Addresses that are not of the Internet at large, and are granted.
    pub(super) granted: Option<Arc<Cidrs>>,
    /// The scope that grants them, for a refusal.
    pub(super) granted_by: &'static str,
    pub(super) timeout_ms: u64,
    pub(super) format: ResponseFormat,
    pub(super) response_chars: usize,
    pub(super) through: Through,
    pub(super) network: Network,
    /// The agent that sends it.
    pub(super) agent: AgentId,
}

/// A parcel's part that does not depend on a call.
impl Parcel {
    pub(super) fn of(
        settings: &Settings,
        target: Target,
        network: &Network,
        agent: &AgentId,
    ) -> Self {
        Self {
            target,
            method: settings.default_method,
            headers: Vec::new(),
            body: None,
            secrets: settings.secrets.clone(),
            granted: None,
            granted_by: "what the token's scope `address` names",
            timeout_ms: settings.timeout_ms,
            format: settings.format,
            response_chars: settings.response_chars,
            through: settings.through.clone(),
            network: network.clone(),
            agent: agent.clone(),
        }
    }

    /// Longest body that is kept of the answer.
    fn body_bytes_max(&self) -> usize {
        self.response_chars.saturating_mul(4).saturating_add(SLACK_BYTES)
    }

    /// The most that it uses.
    pub(super) fn uses(&self) -> Amounts {
        let count = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
        let fields: usize = self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        let secrets = count(self.secrets.len()).saturating_mul(super::secret::SECRET_HOLD_BYTES);
        let sent = count(self.target.as_str().len())
            .saturating_add(count(fields))
            .saturating_add(count(self.body.as_ref().map_or(0, Vec::len)))
            .saturating_add(secrets)
            .saturating_add(HEAD_BYTES);
        let sent = sent.saturating_add(sent / TLS_SHARE).saturating_add(TLS_BYTES);
        let received = count(self.body_bytes_max()).saturating_add(count(HEAD_BYTES_MAX));
        let received = received.saturating_add(received / TLS_SHARE).saturating_add(TLS_BYTES);
        let wall_us = self.timeout_ms.saturating_add(SLACK_MS).saturating_mul(1_000);
        Amounts::ZERO
            .with(Dimension::EgressBytes, sent)
            .with(Dimension::IngressBytes, received)
            .with(Dimension::WallUs, wall_us)
    }

    /// Sends it, by leave of the kernel.
    pub(super) fn deliver<P>(self, mut permit: Permit<'_, P>) -> Ran<'_> {
        permit.enforced_by(match self.through.proxy {
            // Whom a proxy connects to is its word.
            Some(_) => Enforcement::Lexical,
            None => Enforcement::Proxied,
        });
        let hold = |dimension| permit.hold().get(dimension);
        let wire = Wire::new(hold(Dimension::EgressBytes), hold(Dimension::IngressBytes));
        let wire = Arc::new(wire);
        let ended = self.exchange(permit.result_bytes_max(), permit.is_read_only(), &wire);
        let used =
            [(Dimension::EgressBytes, wire.sent()), (Dimension::IngressBytes, wire.received())];
        let metered = used.into_iter().try_for_each(|(of, amount)| permit.meter(of, amount));
        let safe = self.method.is_safe();
        let done = if safe { TxOutcome::NoOp } else { TxOutcome::Committed };
        match (ended, metered) {
            (Ok(Ok(result)), Ok(())) => {
                if result.item().get("ok").and_then(Item::as_bool) == Some(false) {
                    permit.tells_of_a_failure();
                }
                permit.ok(result, done)
            }
            // It was answered, and the answer can't be used.
            (Ok(Err(refused)), Ok(())) => permit.failed(refused, done),
            (Ok(_), Err(over)) => permit.failed(over.into(), done),
            // What was sent may have been done.
            (Err(refused), _) if wire.has_begun() && !safe => {
                permit.failed(refused, TxOutcome::Unknown)
            }
            (Err(refused), _) => permit.failed(refused, TxOutcome::NoOp),
        }
    }

    fn exchange(
        &self,
        result_bytes_max: usize,
        read_only: bool,
        wire: &Arc<Wire>,
    ) -> Result<Result<Canonical, Refused>, Refused> {
        if read_only && !self.method.is_safe() {
            return Err(Refused::new(Reason::AccessDenied).field("method"));
        }
        let limit = Duration::from_millis(self.timeout_ms);
        let until = Instant::now().checked_add(limit).ok_or(Refused::new(Reason::Failed))?;
        let secrets = self.find_secrets()?;
        let (addresses, tunnel) = self.route(until)?;
        let (url, headers) = self.sealed(&secrets);
        let order = Order {
            method: self.method,
            url: &url,
            headers: &headers,
            body: self.body.as_deref(),
            addresses,
            tunnel,
            trust: &self.through.trust,
            until,
            body_bytes_max: self.body_bytes_max(),
        };
        let answer = order.send(wire)?;
        let scrubber = Scrubber::of(secrets.iter().map(|(_, secret)| secret));
        let shape = Shape {
            target: &self.target,
            method: self.method,
            format: self.format,
            chars: self.response_chars,
            bytes: result_bytes_max,
            scrubber: &scrubber,
        };
        Ok(shape.result(answer))
    }

    /// The secrets that this server may have; others are not sent, and so are not missed.
    fn find_secrets(&self) -> Result<Vec<(&Placed, Secret)>, Refused> {
        let mut found = Vec::new();
        for placed in &self.secrets {
            let secret = self.network.secrets.find(&placed.secret).map_err(|error| {
                let refused = Refused::new(Reason::NoSecret).field(placed.secret.as_str());
                refused.got(&error).allowed("a secret that an operator has set")
            })?;
            if secret.value_for(&self.target).is_some() {
                found.push((placed, secret));
            }
        }
        Ok(found)
    }

    /// The route: the addresses, and the way through a proxy.
    fn route(&self, until: Instant) -> Result<(Vec<SocketAddr>, Option<Tunnel>), Refused> {
        let left = || until.saturating_duration_since(Instant::now());
        let lookup = |name: &Host, limit| self.network.lookup.lookup_for(&self.agent, name, limit);
        let Some(proxy) = &self.through.proxy else {
            let (granted, by) = (self.granted.as_deref(), self.granted_by);
            return Ok((reach::addresses(&self.target, lookup, granted, by, left())?, None));
        };
        let to = |address| SocketAddr::new(address, proxy.port());
        let addresses = match proxy.place() {
            Place::Address(address) => vec![to(*address)],
            Place::Name(name) => {
                let found = lookup(name, left());
                let refused = |error| Refused::new(Reason::Unreachable).field("proxy").got(&error);
                found.map_err(refused)?.into_iter().map(to).collect()
            }
        };
        let tunnel = Tunnel { addresses: addresses.clone(), to: authority(&self.target) };
        Ok((addresses, Some(tunnel)))
    }

    /// URL and headers with the secrets in them. No other code sees them.
    fn sealed(&self, secrets: &[(&Placed, Secret)]) -> (String, Vec<(String, String)>) {
        let mut headers = self.headers.clone();
        let mut query: Vec<(&str, &str)> = Vec::new();
        for (placed, secret) in secrets {
            let Some(value) = secret.value_for(&self.target) else { continue };
            match &placed.spot {
                Spot::Header(name, prefix) => {
                    headers.push((name.clone(), format!("{prefix}{value}")));
                }
                Spot::Query(name) => query.push((name, value)),
            }
        }
        (self.target.with_query(query).as_str().to_owned(), headers)
    }
}
