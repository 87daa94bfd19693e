//! Boots, recoveries, shutdowns.

use std::mem::take;

use syscap_format::{
    Amounts, Body, Boot, ClockFlags, ConfigChange, ControlBody, Dimension, PreviousRun, RecordKind,
    Recovered, Recovery, Resolution, Shutdown, TOKEN_LIFE_MS_MAX,
};

use super::{Entry, Fault, Ledger, Phase, Row, Slot, Source};

impl Ledger {
    pub(super) fn boot(&mut self, entry: &mut Entry<'_>, boot: &Boot, clock: ClockFlags) {
        let before = match self.phase {
            Phase::New => PreviousRun::First,
            Phase::Shut => PreviousRun::Clean,
            Phase::Running | Phase::Recovering => PreviousRun::Unclean,
        };
        let open = u64::try_from(self.open.len()).ok();
        entry.expect(boot.before == before && Some(boot.open) == open, Fault::BootForm);
        // Kernel time starts at the later of the last record and the wall clock.
        entry.expect(entry.time == self.time.max(boot.wall), Fault::ClockFlags);
        let gap = before != PreviousRun::First && boot.wall.since(self.time) > TOKEN_LIFE_MS_MAX;
        entry.expect(clock.has(ClockFlags::GAP) == gap, Fault::ClockFlags);
        let skewed = self.time.since(boot.wall) > self.limits.skew_ms_max;
        entry.expect(clock.has(ClockFlags::SKEWED) == skewed, Fault::ClockFlags);
        if clock.has(ClockFlags::GAP) {
            self.unconfirmed_before = entry.seq;
        }
        self.phase = Phase::Recovering;
        self.sessions.clear();
        self.end_sets(None);
        self.running.clear();
        self.unbound = Row::default();
        self.accounts.free_gauge();
        // What is not answered any more need not be remembered.
        self.passes(self.keys.len().saturating_add(self.finished.len()));
        let (mut keys, mut finished) = (take(&mut self.keys), take(&mut self.finished));
        keys.retain(|_, used| self.is_kept(used, entry.time));
        finished.retain(|intent, done| !self.is_over(*intent, done.until, entry.time));
        (self.keys, self.finished) = (keys, finished);
    }

    /// Every record of a boot that began after a gap says so, until an operator confirms the time.
    /// Only the host knew of other oddities of the clocks.
    pub(super) fn follow_gap(&mut self, entry: &mut Entry<'_>, body: &Body, clock: ClockFlags) {
        match body {
            // What a boot must say is held against its own clock.
            Body::Boot(_) => return self.gap = clock.has(ClockFlags::GAP),
            Body::Config(event) => self.gap &= !confirms_time(&event.control.body),
            _ => {}
        }
        entry.expect(clock.has(ClockFlags::GAP) == self.gap, Fault::ClockFlags);
    }

    pub(super) fn recovery<E>(
        &mut self,
        entry: &mut Entry<'_>,
        recovery: &Recovery,
        source: &mut dyn Source<Error = E>,
    ) -> Result<(), E> {
        match &recovery.control {
            None => self.recover(entry, recovery),
            Some(control) => {
                self.signed(entry, RecordKind::Recovery, control, source)?;
                let resolution = Resolution::from_bytes(&control.body);
                let said = Resolution { intent: recovery.intent, verdict: recovery.verdict };
                let fine = resolution == Ok(said) && self.unknown.contains_key(&recovery.intent);
                entry.expect(fine && recovery.used == Amounts::ZERO, Fault::BadControl);
                if recovery.verdict != Recovered::Unknown {
                    let slot = self.unknown.remove(&recovery.intent);
                    self.key_after(recovery.verdict, slot.flatten());
                }
            }
        }
        Ok(())
    }

    /// The kernel closes an intent that it found open.
    fn recover(&mut self, entry: &mut Entry<'_>, recovery: &Recovery) {
        entry.expect(self.phase == Phase::Recovering, Fault::Recovery);
        let Some(open) = self.open.remove(&recovery.intent) else {
            return entry.fault(Fault::Recovery);
        };
        let (used, owed) = (&recovery.used, open.call.held.with(Dimension::Concurrent, 0));
        let fine = match (open.effect.is_read_only(), recovery.verdict) {
            // A read left everything as it was.
            (true, verdict) => verdict == Recovered::NotDone && *used == owed,
            // A probe has shown that nothing was done: no more than was set aside, and the call.
            (false, Recovered::NotDone) => {
                let calls = |amounts: &Amounts| amounts.get(Dimension::Calls);
                used.leq(&owed) && calls(used) == calls(&owed)
            }
            (false, Recovered::Done | Recovered::Unknown) => *used == owed,
        };
        entry.expect(fine, Fault::Recovery);
        if let Some(account) = open.account {
            self.accounts.free(account, &open.call.held);
            self.accounts.pay(account, &recovery.used);
        }
        if let Some(agent) = &open.call.agent_id {
            self.credits.free(agent, recovery.intent, &open.call.held);
            self.credits.pay(agent, recovery.intent, &recovery.used);
        }
        self.unreported(recovery.intent, &open);
        if recovery.verdict == Recovered::Unknown {
            self.unknown.insert(recovery.intent, open.slot);
        } else {
            self.key_after(recovery.verdict, open.slot);
        }
    }

    /// A call that was not done may be sent again; a call that was done has an end, though no
    /// result.
    pub(super) fn key_after(&mut self, verdict: Recovered, slot: Option<Slot>) {
        match (verdict, slot) {
            (Recovered::NotDone, Some(slot)) => drop(self.keys.remove(&slot)),
            (Recovered::Done, Some(slot)) => {
                if let Some(used) = self.keys.get_mut(&slot) {
                    used.ended = true;
                }
            }
            (Recovered::Unknown, _) | (_, None) => {}
        }
    }

    pub(super) fn shutdown(&mut self, entry: &mut Entry<'_>, shutdown: &Shutdown) {
        let open = u64::try_from(self.open.len()).ok();
        let closed = self.sessions.is_empty() && self.unbound.aggregate.is_none();
        let once = self.phase != Phase::Shut;
        entry.expect(Some(shutdown.open) == open && closed && once, Fault::ShutdownForm);
        self.phase = Phase::Shut;
    }
}

fn confirms_time(body: &[u8]) -> bool {
    ConfigChange::from_bytes(body).is_ok_and(|change| change.confirm_time.is_some())
}
