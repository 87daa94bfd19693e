//! Tokens that are signed beside the process which holds the home live as long as was asked.

use std::time::Duration;

use host_support::new_home;
use syscap::format::{PublicKey, Role, TOKEN_LIFE_MS_MAX, TokenBody, UnixMillis};
use syscap::kernel::{Clock, Reading};
use syscap::prelude::*;
use syscap::{Inspection, SystemClock};

/// The machine's clock, an hour ago.
struct HourAgo;

impl Clock for HourAgo {
    fn read(&self) -> Reading {
        let Reading { wall, boottime_ms } = SystemClock.read();
        Reading { wall: UnixMillis::new(wall.get().saturating_sub(3_600_000)), boottime_ms }
    }
}

fn signed(log: &Inspection, grant: &Grant) -> TokenBody {
    let roles = log.kernel().roles();
    let issuer: PublicKey = roles.set(Role::Issuer).unwrap().keys().next().unwrap();
    log.token(grant, issuer, || Ok(issuer)).unwrap()
}

fn life_ms(body: &TokenBody) -> u64 {
    body.expires.since(body.not_before)
}

/// It once began a minute early and ended on time: a token that was issued again so lived a minute
/// longer each time, and one for 90 days was refused.
#[test]
fn token_signed_beside_holder_lives_as_long_as_asked() {
    let (_folder, home) = new_home();
    // The last record is older than a token begins early.
    Options::new().clock(HourAgo).create(&home).unwrap().close().unwrap();
    let log = Options::new().inspect(&home).unwrap();
    for asked in [10_000, 90_000, 3_600_000, TOKEN_LIFE_MS_MAX] {
        let life = Duration::from_millis(asked);
        let mut grant = Grant::to("a").tools(["echo"]).expires_in(life);
        for _ in 0..5 {
            let body = signed(&log, &grant);
            assert_eq!(life_ms(&body), asked);
            let now = SystemClock.read().wall;
            assert!(body.not_before <= now && now < body.expires, "{asked}");
            grant = Grant::like(&body);
        }
        let within = Duration::from_millis(asked.checked_sub(1).unwrap());
        let body = signed(&log, &grant.renew_within(within));
        assert!(body.renew_by().is_some_and(|by| by < body.expires));
    }
}
