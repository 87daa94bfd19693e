"""What the records of a log say, each held against all before it: docs/spec/verification.md."""

import bisect

import cbor
import crypto
import record
import tokens
from cbor import Refused
from tables import BITS, CODES, KINDS, REASONS, SHAPES, role_set, shape

C = {f"{kind}.{name}": number for kind, names in CODES.items() for name, number in names.items()}
R = {name: reason["code"] for name, reason in REASONS.items()}
CALLS, CREDITS, CONCURRENT, MEASURED = 0, 8, 9, (2, 3)
DIMENSIONS = ["calls", "llm_tokens", "cpu_us", "wall_us", "disk_write_bytes", "disk_files", "egress_bytes",
              "ingress_bytes", "credits_micro", "concurrent"]  # fmt: skip
METERED = {1, 4, 5, 6, 7, 8}
DENIED = (None, 0)  # an ask's answer that was a no
ZERO = [0] * 10
LIFE_MAX, ASK_LIFE, SET_LIFE, U64 = 7776000000, 86400000, 86400000, (1 << 64) - 1
ROLES = {"issuer": 1, "policy": 2, "revoker": 3, "approver": 4, "operator": 5}
ROLE_OF = {"key": 5, "revoke": 3, "freeze": 3, "policy": 2, "tools": 5, "config": 5, "approval": 4, "cancel": 3,
           "recovery": 5, "credit": 5, "redact": 5}  # fmt: skip
CALL = [row["name"] for row in SHAPES["Call fields"]]
MEANS = [C["ApprovalChannel." + name] for name in ("terminal", "command", "file", "signer")]
STOPS = ("revoked", "frozen", "expired", "not_yet_valid", "stale_revocations", "clock_unconfirmed")
FLAG = BITS["OutcomeFlags"]


def read(kind, data, *rows):
    """A shape's values by key; None where it is not of the shape."""
    try:
        value = cbor.decode(data)
        shape(kind, value)
        return [value.get(row["key"]) for row in SHAPES[kind]]
    except Refused:
        return None


def within(agent, outer):
    return agent == outer or agent.startswith(outer + "/")


def at_most(a, b):
    return all(x <= y for x, y in zip(a, b))


def only(dimension, amount):
    return [amount if n == dimension else 0 for n in range(10)]


def join(a, b):
    return max(a & 1, b & 1) | max(a & 14, b & 14) | (a | b) & ~15


def label_leq(a, b):
    return join(a, b) == b


# Kinds whose records may have a row in the vault.
WITH_ROWS = {"intent", "outcome", "refusal", "repeat", "state", "ask", "approval", "input", "revoke", "cancel", "redact"}


def of_run(code):
    name = next(name for name, one in R.items() if one == code)
    late = name in ("out_of_scope", "bad_path", "too_deep")
    return late or 700 <= code < 800 and name not in ("panicked", "timed_out", "not_run", "abandoned")


def of_plan(code):
    if code == R["tool_failed"]:  # only a run ends so
        return False
    more = ("panicked", "not_granted", "tool_changed", "no_provider", "no_delegation")
    return of_run(code) or 300 <= code < 400 or code in [R[name] for name in more]


class Account:
    """A registered token and what it has used."""

    def __init__(self, token, parent, seq):
        self.token, self.parent, self.seq = token, parent, seq
        self.revoked, self.exhausted, self.renew_by = False, False, token.renew_by
        self.used, self.held = ZERO[:], ZERO[:]
        # What the sessions of its family were given: one list of one label for all its tokens.
        self.family = [0]

    def chain(self):
        at = self
        while at:
            yield at
            at = at.parent

    def root(self):
        return list(self.chain())[-1]

    def is_revoked(self, now):
        return any(at.revoked or at.renew_by is not None and now >= at.renew_by for at in self.chain())

    def is_exhausted(self):
        return any(at.exhausted for at in self.chain())

    def left(self):
        return [max(0, b - u - h) for b, u, h in zip(self.token.budget, self.used, self.held)]

    def covers(self, wanted):
        return all(at_most(wanted, at.left()) for at in self.chain())

    def calls_left(self):
        return min(at.left()[CALLS] for at in self.chain())

    def add(self, what, amounts, sign=1):
        for at in self.chain():
            setattr(at, what, [min(U64, max(0, x + sign * y)) for x, y in zip(getattr(at, what), amounts)])

    def handed(self):
        joined = 0
        for at in self.chain():
            said = at.token.ext.get("session_label", 0)
            is_label = type(said) is int and said >= 0 and said & ~0xFFFFFFFF0F == 0 and said >> 1 & 7 <= 4
            joined = join(joined, said if is_label else 7)
        return joined

    def begins(self):
        joined = self.handed()
        for at in self.chain():
            joined = join(joined, at.family[0])
        return joined

    def give(self, label):
        self.family[0] = join(self.family[0], label)

    def holders(self):
        return [at.token.holder for at in self.chain() if at.token.holder]


class Row:
    def __init__(self):
        self.refusals, self.next_max, self.aggregate = 0, 64, None


class Session:
    def __init__(self, r, account):
        self.agent, self.token, self.snapshot, self.account = r.agent, r.token, r.snapshot, account
        self.row, self.released = Row(), []
        self.alone = account.handed() if r.v == 2 else None
        account.give(account.begins() if self.alone is None else self.alone)

    @property
    def label(self):
        return self.account.family[0] if self.alone is None else self.alone

    def give(self, label):
        if self.alone is not None:
            self.alone = join(self.alone, label)
        self.account.give(label)


class Manifest:
    def __init__(self, value):
        self.__dict__.update({row["name"]: value.get(row["key"]) for row in SHAPES["Manifest"]})
        self.reads = self.effect <= 2
        self.runs_code = any(param[2] in (C["ParamType.code"], C["ParamType.argv"]) for param in self.params)


class Heads:
    """An agent's snapshots."""

    def __init__(self, head):
        self.head, self.number, self.facts, self.before = head, 0, {}, []

    def knows(self, snapshot):
        return snapshot == self.head or snapshot in self.before


class Fold:
    """The state, and the faults that were found."""

    def __init__(self, genesis, home, objects):
        self.home, self.objects, self.limits = home, objects, genesis.limits
        self.now, self.boots, self.phase, self.gap = genesis.time, 0, "new", False
        self.roles = {role[1]: role for role in genesis.roles}
        self.recovery, self.signers, self.keys_changed = genesis.recovery, {}, {}
        self.changed, self.leaves = {"policy": 0, "tools": 0}, [home]
        self.policy, self.shadow, self.tools, self.accounts, self.purses = None, None, {}, {}, {}
        self.epoch, self.revoked_keys, self.list, self.listed = 0, set(), None, set()
        self.shared_labels, self.rows = False, set()
        self.sessions, self.heads, self.frozen = {}, {}, {"kernel": False, "agents": set(), "tools": set()}
        self.open, self.running, self.unknown, self.keys = {}, {}, {}, {}
        self.unreported = {}
        self.asks, self.sets, self.finished = {}, {}, {}
        self.unconfirmed, self.unbound, self.faults = 0, Row(), []

    def expect(self, holds, fault):
        if not holds:
            self.faults.append((self.seq, fault))

    def enter(self, r):
        self.seq, self.r = r.seq, r
        self.expect(r.time >= self.now, "TimeBack")
        self.time = r.time
        self.expect(r.boot == self.boots + (r.what == "boot"), "BootNumber")
        if self.phase == "recovering":
            if not self.open:
                self.phase = "running"
            elif not (r.what == "boot" or r.what == "recovery" and r.control is None):
                self.expect(False, "RecoveryMissing")
                self.phase = "running"
        has_gap = bool(r.clock & BITS["ClockFlags"]["GAP"])
        if r.what == "boot":
            self.gap = has_gap
        else:
            if r.what == "config":
                change = read("ConfigChange", r.control[2])
                self.gap = self.gap and not (change and change[0] is not None)
            self.expect(has_gap == self.gap, "ClockFlags")
        getattr(self, "on_" + r.what)(r)
        if r.what in WITH_ROWS or r.what in ("freeze", "policy") and r.version == 3:
            self.rows.add(r.seq)
        self.now, self.boots = max(r.time, self.now), r.boot
        self.leaves.append(r.leaf)

    def object(self, kind, name):
        data = self.objects.get(name)
        if data is None:
            return self.expect(False, "ObjectMissing")
        try:
            if record.object_name(kind, data) == name:
                return data
        except Refused:
            pass
        self.expect(False, "ObjectUnsound")

    # The kernel's life.

    def on_genesis(self, r):
        self.expect(False, "SecondGenesis")

    def on_boot(self, r):
        before = {"new": 0, "shut": 1}.get(self.phase, 2)
        self.expect(r.before == before and r.open == len(self.open), "BootForm")
        self.expect(r.time == max(self.now, r.wall), "ClockFlags")
        gap = before != 0 and r.wall - self.now > LIFE_MAX
        flags = BITS["ClockFlags"]
        self.expect(bool(r.clock & flags["GAP"]) == gap, "ClockFlags")
        self.expect(bool(r.clock & flags["SKEWED"]) == (self.now - r.wall > self.limits[1]), "ClockFlags")
        if r.clock & flags["GAP"]:
            self.unconfirmed = r.seq
        self.phase, self.sessions, self.running, self.unbound = "recovering", {}, {}, Row()
        self.end_sets(None)
        for account in self.accounts.values():
            account.held[CONCURRENT] = 0
        self.keys = {slot: use for slot, use in self.keys.items() if self.is_kept(use)}
        self.finished = {at: done for at, done in self.finished.items() if not self.is_over(at, done["until"])}

    def is_over(self, intent, until):
        return self.time >= until and intent >= self.unconfirmed

    def is_kept(self, use):
        return not use["ended"] or not self.is_over(use["intent"], use["until"])

    def on_shutdown(self, r):
        closed = not self.sessions and self.unbound.aggregate is None
        self.expect(r.open == len(self.open) and closed and self.phase != "shut", "ShutdownForm")
        self.phase = "shut"

    def on_recovery(self, r):
        if r.control is not None:
            self.signed("recovery", r.control)
            said = read("Resolution", r.control[2])
            fine = said == [r.intent, r.verdict] and r.intent in self.unknown and r.used == ZERO
            self.expect(fine, "BadControl")
            if r.verdict != C["Recovered.unknown"]:
                self.key_after(r.verdict, self.unknown.pop(r.intent, None))
            return
        self.expect(self.phase == "recovering", "Recovery")
        call = self.open.pop(r.intent, None)
        if call is None:
            return self.expect(False, "Recovery")
        owed = call.held[:CONCURRENT] + [0]
        not_done = r.verdict == C["Recovered.not_done"]
        if call.effect <= 2:
            fine = not_done and r.used == owed
        elif not_done:
            fine = at_most(r.used, owed) and r.used[CALLS] == owed[CALLS]
        else:
            fine = r.used == owed
        self.expect(fine, "Recovery")
        self.close(call, r.intent, call.held, r.used)
        self.may_be_reported(call, r.intent)
        if r.verdict == C["Recovered.unknown"]:
            self.unknown[r.intent] = call.slot
        else:
            self.key_after(r.verdict, call.slot)

    def key_after(self, verdict, slot):
        if slot and verdict == C["Recovered.not_done"]:
            self.keys.pop(slot, None)
        elif slot in self.keys and verdict == C["Recovered.done"]:
            self.keys[slot]["ended"] = True

    def close(self, call, intent, freed, used):
        if call.account:
            call.account.add("held", freed, -1)
            call.account.add("used", used)
            if call.agent_id:
                self.credit(call.agent_id, intent, "held", -freed[CREDITS])
                self.credit(call.agent_id, intent, "used", used[CREDITS])

    # Credits.

    def paying(self, agent):
        return [purse for owner, purse in self.purses.items() if within(agent, owner)]

    def credit(self, agent, since, what, amount):
        for purse in self.paying(agent):
            if purse["opened"] < since:
                purse[what] = max(0, purse[what] + amount)

    def is_spent(self, agent):
        return any(purse["used"] >= purse["granted"] for purse in self.paying(agent))

    def on_redact(self, r):
        body = self.event("redact", "RedactBody", r.control)
        if body:
            records = body[0]
            sound = bool(records) and all(a < b for a, b in zip(records, records[1:])) and records[-1] < r.seq
            self.expect(sound and all(seq in self.rows and seq not in self.open for seq in records), "BadControl")

    def on_credit(self, r):
        change = self.event("credit", "CreditChange", r.control)
        if change:
            purse = self.purses.setdefault(change[0], {"opened": r.seq, "granted": 0, "used": 0, "held": 0})
            self.expect(purse["granted"] + change[1] <= U64, "BadControl")
            if purse["granted"] + change[1] <= U64:
                purse["granted"] += change[1]

    # Control events.

    def signed(self, kind, control):
        head, body, signatures = control[1], control[2], control[3]
        role = ROLE_OF[kind]
        if kind == "freeze" and self.limits.get(4):
            freeze = read("Freeze", body) or read("FreezeBecause", body)
            role = self.limits[4] if freeze and freeze[2] == C["FreezeChange.thaw"] else role
        keys = [one[1] for one in signatures]
        of_role = [key[2] for key in self.roles[role][3]] if role in self.roles else []
        recovers = kind == "key" and self.is_recovery(control)
        ordered = all(a < b for a, b in zip(keys, keys[1:])) and 1 <= len(keys) <= 16
        self.expect(ordered and len(body) <= 60000, "BadControl")
        self.expect(recovers or all(key in of_role for key in keys), "WrongRole")
        enough = len(keys) >= self.roles[role][2] if role in self.roles else False
        self.expect(recovers or enough or kind == "approval", "Threshold")
        for one in signatures:
            counter, last = self.signers.get(one[1], (0, 0))
            self.expect(one[2] > counter, "StaleCounter")
            self.expect(head[0] >= last, "StaleHead")
            self.signers[one[1]] = (max(one[2], counter), self.seq)
        self.expect(head[0] >= self.changed.get(kind, 0), "StaleHead")
        self.expect(self.is_named(head), "NamedHead")
        number = KINDS[kind]["number"]
        messages = [(one, record.control(self.home, head, one[1], one[2], number, body)) for one in signatures]
        self.expect(all(crypto.is_signed(one[1], b"", message, one[3]) for one, message in messages), "BadSignature")

    def is_named(self, head):
        return head[0] < len(self.leaves) and self.leaves[head[0]] == head[1]

    def is_recovery(self, control):
        hashes = [crypto.commit("RECOVERY", 1, one[1]) for one in control[3]]
        return self.recovery is not None and hashes == [self.recovery]

    def event(self, kind, name, control):
        self.signed(kind, control)
        body = read(name, control[2])
        self.expect(body is not None, "BadControl")
        return body

    def on_key(self, r):
        change = self.event("key", "KeyChange", r.control)
        if not change:
            return
        role_of, proofs, cut_off = change
        role, keys = role_of[1], [key[2] for key in role_of[3]]
        before = [key[2] for key in self.roles[role][3]] if role in self.roles else None
        self.expect(before is not None and self.is_proved(role_of, proofs, before), "KeySet")
        seen = r.control[1][0] >= self.keys_changed.get(role, 0) or self.is_recovery(r.control)
        self.keys_changed[role] = r.seq
        self.expect(seen, "StaleHead")
        if cut_off is not None:
            self.expect(role == ROLES["issuer"] and cut_off <= r.control[1][0], "BadControl")
            for account in self.accounts.values():
                if account.parent is None and account.seq > cut_off and account.token.issuer not in keys:
                    account.revoked = True
        if role == ROLES["approver"]:
            self.asks, self.sets = {}, {}
        if role in self.roles:
            self.roles[role] = role_of

    def is_proved(self, role_of, proofs, before):
        try:
            role_set(role_of)
        except Refused:
            return False
        new = [key[2] for key in role_of[3] if key[2] not in before]
        message = lambda key: record.possession(self.home, role_of[1], key)
        return new == [p[1] for p in proofs] and all(crypto.is_signed(p[1], b"", message(p[1]), p[2]) for p in proofs)

    def on_revoke(self, r):
        listed = read("RevocationList", r.control[2])
        if listed:
            self.signed("revoke", r.control)
            return self.revoke_list(*listed[:3])
        change = self.event("revoke", "Revocation", r.control)
        if not change:
            return
        target, token, epoch, key = change[:4]
        there = (token is not None, epoch is not None, key is not None)
        target = next(name for name, code in CODES["RevokeTarget"].items() if code == target)
        if target in ("subtree", "children") and there == (True, False, False):
            account = self.accounts.get(token)
            if account is None:
                return self.expect(False, "UnknownToken")
            ends = [account] if target == "subtree" else [a for a in self.accounts.values() if a.parent is account]
            for one in ends:
                one.revoked = True
        elif target == "epoch" and there == (False, True, False):
            self.expect(epoch > self.epoch, "BadControl")
            self.epoch = max(epoch, self.epoch)
            for one in self.accounts.values():
                one.revoked = one.revoked or one.parent is None and one.token.epoch < epoch
        elif target == "key" and there == (False, False, True):
            of_key = [one for one in self.accounts.values() if key in (one.token.issuer, one.token.holder)]
            for one in of_key:
                one.revoked = True
            self.expect(of_key or key in [one[2] for one in self.roles[1][3]], "BadControl")
            self.revoked_keys.add(key)
        else:
            self.expect(False, "BadControl")

    def revoke_list(self, version, as_of, tokens_of):
        ordered = all(a < b for a, b in zip(tokens_of, tokens_of[1:]))
        fits = len(tokens_of) <= 1024 and len(self.listed) + len(tokens_of) <= 65536
        newer = self.list is None or version > self.list[0] and as_of >= self.list[1]
        self.expect(ordered and fits and newer, "BadControl")
        self.list = (version, min(as_of, self.time))
        for token in tokens_of:
            if token in self.accounts:
                self.accounts[token].revoked = True
            else:
                self.listed.add(token)

    def on_cancel(self, r):
        if r.control is not None and r.session is None:
            said = self.event("cancel", "CancelBody", r.control)
            self.expect(not said or said[0] == r.intent, "BadControl")
        elif r.control is None and r.session is not None:
            self.expect(r.session in self.sessions, "UnknownSession")
            call = self.open.get(r.intent)
            self.expect(call is None or call.session == r.session, "NotBound")
        else:
            self.expect(False, "BadControl")
        call = self.open.get(r.intent)
        self.expect(call is not None and not call.cancelled, "NoIntent")
        if call:
            call.cancelled = True

    def on_freeze(self, r):
        freeze = self.event("freeze", "FreezeBecause" if r.version == 3 else "Freeze", r.control)
        if not freeze:
            return
        target, name, change = freeze[:3]
        on = change == C["FreezeChange.freeze"]
        if target == C["FreezeTarget.kernel"]:
            self.expect(name == "", "BadControl")
            self.frozen["kernel"] = on
            return
        kind, frozen = ("AgentId", "agents") if target == C["FreezeTarget.agent"] else ("ToolId", "tools")
        try:
            record.typed("text " + kind, name)
            (self.frozen[frozen].add if on else self.frozen[frozen].discard)(name)
        except Refused:
            self.expect(False, "BadControl")

    def stops(self, agent, tool=None):
        return self.frozen["kernel"] or tool in self.frozen["tools"] or any(within(agent, a) for a in self.frozen["agents"])

    def on_policy(self, r):
        change = self.event("policy", "PolicyBecause" if r.version == 3 else "PolicyChange", r.control)
        if change:
            change = change[:2]
            for policy in filter(None, change):
                self.object("policy", policy)
            self.changed["policy"], (self.policy, self.shadow) = r.seq, change
            self.sets = {seq: one for seq, one in self.sets.items() if one["ask"].policy_hash == self.policy}

    def on_tools(self, r):
        change = self.event("tools", "ToolsChange", r.control)
        if not change:
            return
        data, tools = self.object("tools", change[0]), {}
        for tool, name in [(entry[1], entry[2]) for entry in cbor.decode(data)[1]] if data else []:
            found = self.object("manifest", name)
            if found:
                manifest = Manifest(cbor.decode(found))
                self.expect(manifest.tool == tool, "ObjectUnsound")
                manifest.name = name
                tools[tool] = manifest
        self.changed["tools"], self.tools = r.seq, tools

    def on_config(self, r):
        notify = read("Notify", r.control[2])
        if notify:
            self.signed("config", r.control)
            program, _, limit = notify
            plain = (not program or program.startswith("/")) and len(program.encode()) <= 4096 and "\0" not in program
            return self.expect(plain and 1 <= limit <= 60000, "BadControl")
        change = self.event("config", "ConfigChange", r.control)
        if change and change[0] is not None:
            self.unconfirmed = 0

    # Tokens and sessions.

    def on_issue(self, r):
        self.expect(self.phase == "running", "Closed")
        wire = self.object("token", r.token)
        if wire is None:
            return
        try:
            token = tokens.Token(wire)
        except Refused as error:
            return self.expect(False, "BadSignature" if str(error) == "bad_signature" else "BadToken")
        self.expect((r.issuer, r.parent, r.agent) == (token.issuer, token.parent, token.agent), "IssueForm")
        self.expect(token.audience == self.home, "WrongAudience")
        self.expect(self.time < token.expires, "IssuedLate")
        if r.token in self.accounts:
            return self.expect(False, "IssuedTwice")
        ended = {token.issuer, token.holder} & self.revoked_keys or r.token in self.listed
        self.expect(not ended and not (token.parent is None and token.epoch < self.epoch), "Revoked")
        parent = self.root(token) if token.parent is None else self.derived(token)
        if token.parent is None:
            self.signers[token.issuer] = (self.signers.get(token.issuer, (0, 0))[0], r.seq)
        account = self.accounts[r.token] = Account(token, parent, r.seq)
        kin = parent or self.accounts.get(token.renews)
        if kin and kin.token.agent == token.agent:
            account.family = kin.family
        self.renew(token)

    def root(self, token):
        self.expect(token.issuer in [key[2] for key in self.roles[1][3]], "WrongIssuer")
        self.expect(token.head[0] >= self.signers.get(token.issuer, (0, 0))[1], "StaleHead")
        self.expect(self.is_named(token.head), "NamedHead")
        if token.renews is not None:
            old = self.accounts.get(token.renews)
            if old is None:
                return self.expect(False, "UnknownToken")
            self.expect(not old.is_revoked(self.time), "Revoked")
            self.expect(old.parent is None and old.token.parent is None and old.token.agent == token.agent, "Renewal")

    def derived(self, token):
        account = self.accounts.get(token.parent)
        if account is None:
            return self.expect(False, "UnknownToken")
        self.expect(not account.is_revoked(self.time), "Revoked")
        try:
            tokens.derives(token, account.token)
        except Refused:
            self.expect(False, "Attenuation")
        return account

    def renew(self, token):
        until = token.expires if token.renew_by is None else token.renew_by
        account = self.accounts.get(token.renews)
        while account and account.renew_by is not None and self.time < account.renew_by:
            account.renew_by = max(account.renew_by, until)
            account = self.accounts.get(account.token.renews)

    def on_session(self, r):
        self.expect(r.v != 2 or not self.shared_labels, "SessionForm")
        self.shared_labels = self.shared_labels or r.v != 2
        if r.phase == C["SessionPhase.open"] and r.session is None:
            return self.open_session(r)
        if r.phase != C["SessionPhase.close"] or r.session is None:
            return self.expect(False, "SessionForm")
        session = self.sessions.pop(r.session, None)
        if session is None:
            return self.expect(False, "UnknownSession")
        same = (session.agent, session.token, session.snapshot) == (r.agent, r.token, r.snapshot)
        self.expect(same, "SessionForm")
        self.expect(session.row.aggregate is None, "Aggregate")
        self.end_sets(r.session)

    def open_session(self, r):
        self.expect(self.phase == "running", "Closed")
        account = self.accounts.get(r.token)
        if account is None:
            return self.expect(False, "UnknownToken")
        self.expect(account.token.agent == r.agent, "SessionForm")
        if r.agent in self.heads:
            self.expect(self.heads[r.agent].head == r.snapshot, "Snapshot")
        else:
            data = self.object("snapshot", r.snapshot)
            first = {1: 1, 2: r.agent, 3: None, 4: 0, 5: {}, 6: None}
            self.expect(data is None or cbor.decode(data) == first, "Snapshot")
            self.heads[r.agent] = Heads(r.snapshot)
        self.sessions[r.seq] = Session(r, account)

    def on_charge(self, r):
        self.expect(all(not amount or n in (1, CREDITS) for n, amount in enumerate(r.amounts)), "ChargeForm")
        session = self.sessions.get(r.session)
        if session is None:
            return self.expect(False, "UnknownSession")
        self.expect(session.token == r.token, "ChargeForm")
        session.account.add("used", r.amounts)
        for at in session.account.chain():
            spent = any(amount and at.used[n] >= at.token.budget[n] for n, amount in enumerate(r.amounts))
            at.exhausted = at.exhausted or spent
        self.credit(session.agent, r.seq, "used", r.amounts[CREDITS])

    def on_input(self, r):
        session = self.sessions.get(r.session)
        if session is None:
            return self.expect(False, "UnknownSession")
        self.expect(session.agent == r.agent, "NotBound")
        session.give(r.label)

    # Intents.

    def on_intent(self, r):
        self.expect(self.phase == "running", "Closed")
        known = ("agent_id policy_hash state_snapshot_id capability_token_id tool_id args_hash provenance call_hash "
                 "session decision manifest").split()  # fmt: skip
        later = r.result_hash is not None or r.enforcement is not None
        filled = bool(r.filled & BITS["Filled"]["PROVENANCE"])
        said = r.provenance is not None and r.provenance[5] is not None
        whole = all(getattr(r, name) is not None for name in known) and not later and r.used == ZERO
        self.expect(whole and (r.key is None) == (r.sent_hash is None) and filled != said, "IntentForm")
        self.expect(len(self.open) < self.limits[2], "InFlight")
        account = r.account = self.bound(r)
        if account and r.agent_id is not None and r.tool_id is not None:
            self.authority(account, r.agent_id, r.tool_id)
            self.tool_of(account, r)
            self.in_force(account, r)
            verdict = r.decision and r.decision[1]
            let = verdict in (0, 1) and r.approval is None or verdict == 2 and r.approval is not None
            self.expect(r.decision is not None and let, "Decision")
            self.expect(not account.is_exhausted() and not self.is_spent(r.agent_id), "Exhausted")
            purses = self.paying(r.agent_id)
            covered = all(r.held[CREDITS] <= max(0, p["granted"] - p["used"] - p["held"]) for p in purses)
            self.expect(account.covers(r.held) and covered, "OverBudget")
            account.add("held", r.held)
            self.credit(r.agent_id, r.seq, "held", r.held[CREDITS])
        if r.approval is not None:
            self.used_up(r)
        else:
            self.expect(not r.preconditions, "Approval")
        slot = r.slot = None
        if r.key is not None and r.agent_id is not None and r.tool_id is not None:
            slot = r.slot = (r.agent_id, r.tool_id, r.key)
            self.expect(slot not in self.keys or not self.is_kept(self.keys[slot]), "KeyReused")
            self.keys[slot] = {"intent": r.seq, "until": self.time + self.limits[3], "ended": False}
        self.came_from(r)
        heads = self.heads.get(r.agent_id)
        if r.filled & BITS["Filled"]["SNAPSHOT"] and heads and heads.knows(r.state_snapshot_id):
            self.expect(r.state_snapshot_id == heads.head, "IntentForm")
        session = self.sessions.get(r.session)
        self.expect(r.label == (session.label if session else 0), "Label")
        r.due = self.tools[r.tool_id].label if r.tool_id in self.tools else 0
        r.cancelled = False
        self.open[r.seq] = r

    def bound(self, r):
        session = self.sessions.get(r.session)
        if session is None:
            self.expect(False, "UnknownSession")
            return self.accounts.get(r.capability_token_id)
        bound = (r.agent_id, r.capability_token_id) == (session.agent, session.token)
        self.expect(bound, "NotBound")
        self.expect(session.row.aggregate is None, "Aggregate")
        session.row.refusals, session.row.next_max = 0, 64
        self.expect(r.state_snapshot_id is not None, "Snapshot")
        self.decided(r)
        return session.account if bound else self.accounts.get(r.capability_token_id)

    def authority(self, account, agent, tool):
        self.expect(not self.stops(agent, tool), "Frozen")
        self.live(account)
        self.expect(tool in account.token.grants, "NotGranted")

    def stopped(self, account, frozen):
        """What stops a call, in the order of its precedence."""
        span = account.root().token.fresh_within
        fresh = span is None or self.list is not None and self.time < self.list[1] + span
        holds = (account.is_revoked(self.time), frozen, self.time >= account.token.expires,
                 self.time < account.token.not_before, not fresh, account.root().seq < self.unconfirmed)  # fmt: skip
        return [name for name, one in zip(STOPS, holds) if one]

    def live(self, account):
        names = {"revoked": "Revoked", "expired": "Expired", "not_yet_valid": "NotYetValid",
                 "stale_revocations": "StaleRevocations", "clock_unconfirmed": "ClockUnconfirmed"}  # fmt: skip
        for name in self.stopped(account, False):
            self.expect(False, names[name])

    def may_write(self, account, manifest):
        self.expect(manifest.reads or not account.token.has("READ_ONLY"), "ReadOnlyToken")

    def in_force(self, account, call):
        in_force = self.policy is not None and call.policy_hash == self.policy
        self.expect(in_force and account.token.policy in (None, self.policy), "Policy")

    def tool_of(self, account, r):
        manifest = self.tools.get(r.tool_id)
        if manifest is None:
            return self.expect(False, "Tool")
        same = r.manifest == manifest.name and r.effect == manifest.effect and r.call_effect <= r.effect
        self.expect(same and (manifest.reads or r.mode == C["RunMode.intent_first"]), "Tool")
        asked = r.decision[6] if r.decision else []
        wanted = manifest.hold[:]
        wanted[CALLS] = wanted[CONCURRENT] = 1
        for dimension, most in filter(None, map(cut, asked)):
            wanted[dimension] = min(wanted[dimension], most)
        self.expect(r.held[CALLS] == r.held[CONCURRENT] == 1 and at_most(wanted, r.held), "Hold")
        approval = C["ObligationKind.approval"]
        kept = [one for one in asked if r.approval is None or one[1] != approval]
        cuts = all(not cut(one) or r.held[cut(one)[0]] <= cut(one)[1] for one in kept)
        self.expect(cuts and all(keepable(one, manifest) for one in kept), "Obligation")
        self.may_write(account, manifest)

    def came_from(self, r):
        if r.provenance is None:
            return
        _, time, inputs, trace, claimed = (r.provenance[key] for key in (1, 2, 3, 4, 5))
        fits = all(at < r.seq for at in inputs) and len(inputs) <= 16 and len((trace or "").encode()) <= 64
        own = time == self.time and trace is None and (not inputs or r.call_hash is None)
        self.expect(fits and (claimed is not None or own), "Provenance")

    def decided(self, r):
        session = self.sessions.get(r.session)
        heads = self.heads.get(session.agent if session else r.agent_id)
        named = r.state_snapshot_id
        known = named is not None and heads is not None and heads.knows(named)
        self.expect(named is None or known, "Snapshot")
        if r.decision is None:
            self.expect(r.head is None, "Head")
            return self.expect(r.shadow is None, "Shadow")
        self.expect(is_sound(r.decision), "Decision")
        if known:
            self.expect(r.head == (heads.head if heads.head != named else None), "Head")
        asked = (r.shadow[1] if r.shadow else None) == self.shadow
        self.expect(asked and (r.shadow is None or is_sound(r.shadow[2])), "Shadow")

    # Outcomes.

    def on_outcome(self, r):
        call = self.open.pop(r.intent, None)
        if call is None:
            return self.expect(False, "NoIntent")
        own = [name for name in CALL if name not in ("result_hash", "used", "enforcement")]
        self.expect(all(getattr(r, name) == getattr(call, name) for name in own), "OutcomeCall")
        not_run = r.reason == R["not_run"]
        no_op, unknown = C["TxOutcome.no_op"], C["TxOutcome.unknown"]
        why = FLAG["REVOKED"] | FLAG["FROZEN"] | FLAG["GIVEN_BACK"] | FLAG["CANCELLED"]
        formed = r.result_hash is not None and r.enforcement is not None
        formed = formed and (r.status == C["Status.error"]) == (r.reason is not None)
        formed = formed and (not not_run or bool(r.flags & why) and r.tx == no_op)
        self.expect(formed and self.ends_so(call, r), "OutcomeForm")
        changed = r.tx in (C["TxOutcome.committed"], C["TxOutcome.rolled_back"])
        self.expect(not (changed and call.effect <= 2), "OutcomeForm")
        over = any(r.used[n] > call.held[n] for n in range(10) if n not in MEASURED)
        self.expect(not over and r.used[CONCURRENT] == 0, "Overspent")
        self.expect(pays_enough(r, call.held), "Undercharged")
        self.expect(r.flags == self.flags(call, r), "OutcomeFlags")
        freed = call.held[:]
        if r.flags & FLAG["RUNNING"] and call.account:
            freed[CONCURRENT] = 0
            self.running[r.intent] = call.account, call.slot
        self.close(call, r.intent, freed, r.used)
        if call.account and r.flags & FLAG["OVERRUN"]:
            call.account.exhausted = True
        is_due = r.label == 0 if not_run else label_leq(call.due, r.label)
        self.expect(is_due, "Label")
        label = r.label if is_due else 0 if not_run else call.due
        session = self.sessions.get(call.session)
        if session:
            session.give(label)
        elif call.account:
            call.account.give(label)
        if session:
            if r.status == C["Status.ok"] or r.reason == R["tool_failed"]:
                session.released = (session.released + [r.seq])[-1024:]
        given_up = r.reason in (R["cancelled"], R["timed_out"], R["abandoned"], R["provider_gone"])
        if given_up:
            self.may_be_reported(call, r.intent)
        if call.slot and not_run:
            self.keys.pop(call.slot, None)
        elif call.slot and r.tx != unknown:
            use = self.keys.get(call.slot)
            if use:
                use["ended"] = True
            until = use["until"] if use else self.time
            self.finished[r.intent] = {"until": until, "outcome": r.seq, "label": label, "slot": call.slot, "account": call.account}

    def ends_so(self, call, r):
        if r.reason is None:
            return True
        none = r.enforcement == C["Enforcement.none"]
        if r.reason == R["not_run"]:
            return none
        nobodys = r.reason in (R["panicked"], R["abandoned"])
        if r.reason == R["timed_out"]:
            nobodys = bool(r.flags & FLAG["RUNNING"])
        elif not nobodys:
            return of_run(r.reason)
        return nobodys and none and r.tx == C["TxOutcome.no_op" if call.effect <= 2 else "TxOutcome.unknown"]

    def flags(self, call, r):
        revoked = bool(call.account) and call.account.is_revoked(self.time)
        known = call.agent_id is not None and call.tool_id is not None
        frozen = known and self.stops(call.agent_id, call.tool_id)
        said = lambda flag: bool(r.flags & FLAG[flag])
        holds = {
            "OVERRUN": any(r.used[n] > call.held[n] for n in MEASURED),
            "REVOKED": revoked,
            "FROZEN": frozen and not revoked,
            "RUNNING": r.reason == R["timed_out"] and said("RUNNING"),
            "GIVEN_BACK": r.reason == R["not_run"] and said("GIVEN_BACK") and not (revoked or frozen or call.cancelled),
            "CANCELLED": call.cancelled,
            "TOOL_FAILED": r.status == C["Status.ok"] and said("TOOL_FAILED"),
        }
        return sum(FLAG[name] for name, one in holds.items() if one)

    def may_be_reported(self, call, intent):
        self.unreported[intent] = call
        while len(self.unreported) > self.limits[2]:
            self.unreported.pop(min(self.unreported))

    def on_report(self, r):
        call = self.unreported.pop(r.intent, None)
        if call is None:
            return self.expect(False, "LateForm")
        changed = r.tx in (C["TxOutcome.committed"], C["TxOutcome.rolled_back"])
        self.expect(not (changed and call.effect <= 2), "LateForm")
        tool = self.tools.get(call.tool_id)
        due = tool.label if tool else 1
        self.expect(label_leq(due, r.label), "Label")
        if r.tx != C["TxOutcome.unknown"]:
            self.unknown.pop(r.intent, None)
            use = self.keys.get(call.slot) if call.slot else None
            if use and use["intent"] == r.intent and not use["ended"]:
                committed = r.tx == C["TxOutcome.committed"]
                self.key_after(C["Recovered.done" if committed else "Recovered.not_done"], call.slot)
        if call.account:
            call.account.give(join(due, r.label))

    def on_late(self, r):
        if r.version == 3:
            return self.on_report(r)
        broke_off = r.status == C["Status.error"] and r.tx == C["TxOutcome.unknown"]
        self.expect(r.result_hash is not None or broke_off, "LateForm")
        account, slot = self.running.pop(r.intent, (None, None))
        if account is None:
            return self.expect(False, "LateForm")
        account.add("held", only(CONCURRENT, 1), -1)
        ends = {"committed": "done", "rolled_back": "not_done", "no_op": "not_done"}
        verdict = next((end for tx, end in ends.items() if r.tx == C["TxOutcome." + tx]), "unknown")
        self.key_after(C["Recovered." + verdict], slot)

    # Refusals.

    def fee(self, r):
        """The account that pays, after what it owes: None where there is none, False for no session."""
        if r.session is None:
            self.expect(r.used == ZERO, "Fee")
            return None
        session = self.sessions.get(r.session)
        if session is None:
            self.expect(False, "UnknownSession")
            return False
        self.expect(r.agent_id == session.agent, "NotBound")
        self.expect(r.used == only(CALLS, min(1, session.account.calls_left())), "Fee")
        return session.account

    def row(self, session):
        return self.sessions[session].row if session in self.sessions else self.unbound

    def on_refusal(self, r):
        consistent = is_consistent(r)
        self.expect(consistent, "RefusalForm")
        self.expect(r.capability_token_id is None or r.capability_token_id in self.accounts, "UnknownToken")
        account = self.fee(r)
        if account is False:
            return
        if account:
            self.asked(account, r)
        if consistent:
            self.could_refuse(r, account)
        self.came_from(r)
        self.decided(r)
        self.unkept(r)
        row = self.row(r.session)
        row.refusals += 1
        self.expect(row.refusals <= 16 and row.aggregate is None, "Aggregate")
        if account:
            account.add("used", r.used)

    def asked(self, account, r):
        session = self.sessions.get(r.session)
        if session is None or r.decision is None and (r.args_hash is None or r.call_hash is None):
            return
        self.expect(r.capability_token_id == session.token, "NotBound")
        if r.decision is not None:
            self.in_force(account, r)
        self.expect(account.calls_left() > 0, "OverBudget")
        if r.tool_id is None:
            return self.live(account)
        self.authority(account, session.agent, r.tool_id)
        self.registered(account, r)

    def registered(self, account, r):
        manifest = self.tools.get(r.tool_id)
        if manifest is None:
            return self.expect(False, "Tool")
        self.expect(r.manifest == manifest.name, "Tool")
        self.may_write(account, manifest)

    def unkept(self, r):
        manifest = self.tools.get(r.tool_id)
        if r.decision is None or r.decision[1] > 1 or manifest is None:
            return
        asked = r.decision[6]
        kept = [keepable(one, manifest) for one in asked]
        if r.reason == R["obligation"]:
            fine = not all(kept)
        elif r.reason == R["reduced"]:
            before = kept.index(False) if False in kept else len(kept)
            fine = any(cut(one) for one in asked[:before])
        else:
            fine = all(kept)
        self.expect(fine, "Obligation")
        account = self.accounts.get(r.capability_token_id)
        exhausted = r.agent_id is not None and self.is_spent(r.agent_id) or bool(account) and account.is_exhausted()
        if r.reason in (R["over_budget"], R["concurrency_limit"]):
            self.expect(not exhausted, "Exhausted")
        elif r.reason == R["exhausted"]:
            self.expect(exhausted, "Exhausted")

    def could_refuse(self, r, account):
        shut = self.phase == "shut"
        if r.refusal_kind == C["RefusalKind.control"]:
            more = ("too_large", "not_bound", "revoked", "expired", "bad_proof", "out_of_scope", "tools_mismatch",
                    "no_room", "no_session")  # fmt: skip
            of_control = r.reason in [R[name] for name in more] or 800 <= r.reason and r.reason != R["bad_scope"]
            return self.expect(of_control or r.reason == R["closing"] and shut, "Reason")
        session = self.sessions.get(r.session)
        if session and account:
            if r.call_hash is not None:
                return self.refused_call(r, session, account)
            return self.refused_change(r, session, account)
        unproved = r.reason == R["bad_proof"] and not shut and r.call_hash is not None
        bare = all(is_nothing(name, getattr(r, name)) for name in CALL if name not in ("result_hash", "call_hash"))
        self.expect(bare and (unproved or r.call_hash is None), "RefusalForm")
        due = "bad_proof" if unproved else "closing" if shut else "no_session"
        self.expect(r.reason == R[due], "Reason")

    def is_the_stop(self, r, session, account):
        if r.call_hash is None and r.reason == R["no_room"]:
            return True
        said = next((name for name in STOPS if R[name] == r.reason), None)
        frozen = self.stops(session.agent) or r.tool_id in self.frozen["tools"]
        maybe = r.tool_id is None and r.call_hash is not None and bool(self.frozen["tools"])
        first = lambda frozen: next(iter(self.stopped(account, frozen)), None)
        return said == first(frozen) or maybe and said == first(True)

    def refused_call(self, r, session, account):
        if r.decision is not None:
            return
        self.expect(r.policy_hash == self.policy, "Policy")
        asked = self.policy is not None or r.reason == R["policy_not_in_force"]
        self.expect(asked and (r.reason != R["unknown_snapshot"] or r.state_snapshot_id is None), "Reason")
        if r.args_hash is not None:
            more = ("too_large", "policy_mismatch", "unknown_snapshot")
            fine = of_plan(r.reason) or r.reason in [R[name] for name in more]
            return self.expect(fine, "Reason")
        if r.reason < 200 or r.reason in (R["bad_proof"], R["not_bound"], R["policy_not_in_force"]):
            return
        self.expect(r.capability_token_id == session.token, "NotBound")
        stop = r.reason in [R[name] for name in STOPS]
        first = self.is_the_stop(r, session, account)
        self.expect(first and (stop or self.could_look(r, account)), "Reason")

    def could_look(self, r, account):
        if r.tool_id is None:
            return r.reason == R["unknown_tool"]
        if r.tool_id not in account.token.grants:
            return r.reason == R["not_granted"]
        manifest = self.tools.get(r.tool_id)
        writes = not manifest.reads if manifest and r.manifest == manifest.name else None
        only_reads, none_left = account.token.has("READ_ONLY"), account.calls_left() == 0
        if r.reason == R["read_only_token"]:
            return only_reads and writes is not False
        if only_reads and writes is True:
            return False
        if r.reason in (R["no_room"], R["tools_mismatch"]):
            return True
        if r.reason == R["over_budget"]:
            return none_left
        before = [*range(221, 226), *range(251, 255), *range(301, 304), R["policy_mismatch"], R["unknown_snapshot"]]
        return not none_left and r.reason in before

    def refused_change(self, r, session, account):
        self.expect(r.policy_hash == self.policy, "Policy")
        self.expect(r.capability_token_id == session.token, "NotBound")
        heads = self.heads.get(session.agent)
        known = r.state_snapshot_id is None or heads is None or heads.knows(r.state_snapshot_id)
        self.expect(not known or r.state_snapshot_id == (heads.head if heads else None), "Snapshot")
        self.expect(r.args_hash is not None and r.tool_id is None and r.decision is None, "RefusalForm")
        stop = r.reason in [R[name] for name in STOPS]
        first = self.is_the_stop(r, session, account)
        self.expect(first and (stop or self.could_propose(r.reason, account)), "Reason")

    def could_propose(self, reason, account):
        only_reads, spent, none_left = account.token.has("READ_ONLY"), account.is_exhausted(), account.calls_left() == 0
        changes = [R[name] for name in ("too_deep", "unknown_reference", "reference_in_flight")] + [*range(411, 415)]
        rows = [(True, "no_room"), (only_reads, "read_only_token"), (spent, "exhausted"), (none_left, "over_budget")]
        if reason == R["no_room"]:
            return True
        for holds, name in rows[1:]:
            if reason == R[name]:
                return holds
            if holds and name != "over_budget":
                return False
        return not none_left and reason in changes

    def on_refusals(self, r):
        session = None if r.session is None else self.sessions.get(r.session)
        if r.session is not None and session is None:
            return self.expect(False, "UnknownSession")
        self.expect(r.token == (session.token if session else None), "Aggregate")
        row, account = self.row(r.session), session.account if session else None
        if r.phase == C["AggregatePhase.open"]:
            left = account.calls_left() if account else 0
            bare = r.opened is None and r.count is None and r.digest is None
            fine = row.refusals >= 16 and row.aggregate is None and r.answers_max == row.next_max
            self.expect(fine and bare and r.reserved == min((left + 1) // 2, r.answers_max), "Aggregate")
            row.aggregate, row.next_max = (r.seq, r.answers_max, r.reserved), min(row.next_max * 4, 65536)
            if account:
                account.add("used", only(CALLS, r.reserved))
        elif r.phase == C["AggregatePhase.close"]:
            opened, row.aggregate = row.aggregate, None
            if opened is None:
                return self.expect(False, "Aggregate")
            same = (r.opened, r.answers_max, r.reserved) == opened
            self.expect(same and r.count is not None and 1 <= r.count <= opened[1] and r.digest is not None, "Aggregate")
            if account:
                account.add("used", only(CALLS, max(0, opened[2] - (U64 if r.count is None else r.count))), -1)
        else:
            bare = r.session is None and r.opened is None and r.reserved == 0
            self.expect(bare and r.count == r.answers_max > 0 and r.digest is not None, "Aggregate")

    def on_repeat(self, r):
        done = self.finished.get(r.intent)
        session = self.sessions.get(r.session)
        first = done is not None and not self.is_over(r.intent, done["until"])
        first = first and (done["outcome"], done["label"]) == (r.outcome, r.label)
        first = first and done["slot"][:2] == (r.agent_id, r.tool_id)
        first = first and session is not None and self.renews(session.account, done["account"])
        there = ("session", "result_hash", "call_hash", "state_snapshot_id", "provenance")
        whole = all(getattr(r, name) is not None for name in there) and r.held == ZERO
        whole = whole and r.args_hash is None and r.decision is None and r.enforcement is None
        self.expect(first and whole, "RepeatForm")
        account = self.fee(r)
        if not account:
            return
        if session and r.tool_id is not None:
            self.expect(r.capability_token_id == session.token, "NotBound")
            self.expect(account.calls_left() > 0, "OverBudget")
            self.in_force(account, r)
            self.authority(account, session.agent, r.tool_id)
            self.registered(account, r)
        self.came_from(r)
        self.decided(r)
        self.expect(self.row(r.session).aggregate is None, "Aggregate")
        account.add("used", r.used)
        if session:
            session.give(r.label)

    def renews(self, account, old):
        while account and old:
            if account is old:
                return True
            account = self.accounts.get(account.token.renews)
        return False

    # States.

    def on_state(self, r):
        self.expect(self.phase == "running", "Closed")
        self.expect(self.is_whole_state(r), "StateForm")
        self.expect(r.policy_hash == self.policy, "Policy")
        space = {1: "goal", 2: "goal"}
        users = [C["Source.user"], C["Source.agent"]], [C["Source.tool"], C["Source.encoder"]]
        space = "goal." if r.writer in users[0] else "fact." if r.writer in users[1] else None
        self.expect(space and all(key.startswith(space) for key in r.set + r.removed), "Namespace")
        account = self.writer(r)
        if account:
            self.live(account)
            self.expect(not account.token.has("READ_ONLY"), "ReadOnlyToken")
            self.expect(not account.is_exhausted(), "Exhausted")
            self.expect(r.used == only(CALLS, 1), "Fee")
            self.expect(account.covers(only(CALLS, 1)), "OverBudget")
            account.add("used", r.used)
        self.move_head(r)

    def is_whole_state(self, r):
        there = ("agent_id", "state_snapshot_id", "capability_token_id", "args_hash", "session", "provenance")
        if any(getattr(r, name) is None for name in there):
            return False
        rest = [name for name in CALL if name not in (*there, "policy_hash", "used")]
        said = (r.provenance[1], r.provenance[2], r.provenance[4], r.provenance[5])
        keys = r.set + r.removed
        ordered = all(one == sorted(one, key=str.encode) for one in (r.set, r.removed))
        bare = all(is_nothing(name, getattr(r, name)) for name in rest) and said == (r.writer, self.time, None, None)
        return bare and 1 <= len(keys) <= 512 and len(set(keys)) == len(keys) and ordered

    def writer(self, r):
        session = self.sessions.get(r.session)
        if session is None:
            self.expect(False, "UnknownSession")
            return self.accounts.get(r.capability_token_id)
        self.expect((r.agent_id, r.capability_token_id) == (session.agent, session.token), "NotBound")
        self.expect(session.row.aggregate is None, "Aggregate")
        self.expect(not self.stops(session.agent), "Frozen")
        inputs = r.provenance[3] if r.provenance else []
        given = lambda at: bisect.bisect(session.released, at) and at in session.released
        self.expect(len(inputs) <= 16 and all(map(given, inputs)), "StateForm")
        return session.account

    def move_head(self, r):
        data = self.object("snapshot", r.snapshot)
        if r.agent_id is None:
            return
        heads = self.heads.setdefault(r.agent_id, Heads(first_snapshot(r.agent_id)))
        named, facts = r.state_snapshot_id == heads.head, None
        if data:
            version, agent, parent, number, found, label = (cbor.decode(data).get(key) for key in range(1, 7))
            placed = named and (version, agent, parent, label) == (1, r.agent_id, heads.head, None)
            self.expect(placed and number == heads.number + 1 == r.number, "Snapshot")
            facts = found if is_facts(found) else None
            self.expect(facts is not None and len(facts) <= 256 and self.follows(heads.facts, r, facts), "Facts")
        else:
            self.expect(named, "Snapshot")
        heads.before = (heads.before + [heads.head])[-1024:]
        heads.head, heads.number, heads.facts = r.snapshot, r.number, facts

    def follows(self, before, r, after):
        if before is None:
            return True
        kept = {key: fact for key, fact in before.items() if key not in r.set and key not in r.removed}
        return set(after) == set(kept) | set(r.set) and all(after[key] == fact for key, fact in kept.items())

    # Approvals.

    def on_ask(self, r):
        self.expect(self.phase == "running", "Closed")
        there = ("args_hash", "result_hash", "provenance", "call_hash", "manifest", "state_snapshot_id")
        whole = r.decision is not None and r.decision[1] == C["Verdict.ask"] and r.held == ZERO and r.enforcement is None
        self.expect(whole and all(getattr(r, name) is not None for name in there), "AskForm")
        account = self.fee(r)
        if not account:
            return self.expect(False, "AskForm")
        self.asked(account, r)
        self.came_from(r)
        self.decided(r)
        manifest, session = self.tools.get(r.tool_id), self.sessions.get(r.session)
        self.expect(manifest is not None and manifest.effect == r.effect and r.call_effect <= r.effect, "Tool")
        self.expect(session is not None and session.label == r.label, "Label")
        self.expect(session is not None and session.row.aggregate is None, "Aggregate")
        self.expect(self.is_for(r, account), "AskForm")
        account.add("used", r.used)
        self.asks = {leaf: one for leaf, one in self.asks.items() if self.time < one.expires}
        waiting = [one.agent_id for one in self.asks.values() if one.answer != DENIED]
        self.expect(len(waiting) < 1024 and waiting.count(r.agent_id) < 32, "AskForm")
        r.elevated, r.approved, r.agreed, r.answer = asks_for_a_level(r), [], None, None
        asked = r.decision[6] if r.decision else []
        caps = [one[3] for one in asked if one[1] == C["ObligationKind.approval_uses"] and one[3] is not None]
        runs_code = manifest is not None and manifest.runs_code
        never = r.elevated or C["EffectClass.irreversible"] in (r.effect, r.call_effect) or runs_code or not r.resources
        r.uses_max = 0 if never else min(caps + [1000])
        self.asks[r.leaf] = r

    def is_for(self, r, account):
        threshold, keys = self.roles[ROLES["approver"]][2], [key[2] for key in self.roles[ROLES["approver"]][3]]
        eligible = [key for key in keys if key not in account.holders()]
        fewer = asks_for_a_level(r)
        among = all(key in eligible for key in r.eligible) and r.eligible == sorted(r.eligible)
        named = r.eligible == eligible or fewer and among
        many = r.threshold == threshold or fewer and r.threshold > threshold
        usual = [one for one in r.means if one not in (3, 4)]
        client = r.threshold == 1 and usual == MEANS and all(a < b for a, b in zip(r.means, r.means[1:]))
        meant = bool(r.means) and set(r.means) <= set(MEANS) if fewer else r.means == MEANS or client
        ends = r.expires == min(self.time + ASK_LIFE, account.token.expires)
        return named and many and meant and len(r.eligible) >= r.threshold and ends

    def on_approval(self, r):
        self.signed("approval", r.control)
        body = read("ApprovalBody", r.control[2])
        if body is None:
            return self.expect(False, "BadControl")
        if len(r.control[3]) != 1:
            return self.expect(False, "Approval")
        self.answered(r, body, r.control[3][0][1])

    def answered(self, r, body, key):
        leaf, answer, means, scopes_of, uses, expires = body[:6]
        once, given_set, no = (C["ApprovalAnswer." + name] for name in ("once", "set", "deny"))
        later, bare = expires is None or self.time < expires, scopes_of is None and uses is None
        formed = {once: bare and later, no: bare and expires is None}
        formed = formed.get(answer, uses is not None and later and means not in (3, 4))
        found = next((seq for seq, one in self.sets.items() if one["leaf"] == leaf and self.time < one["until"]), None)
        if found is not None:
            self.expect(formed, "BadControl")
            self.expect(answer == no and key in self.sets[found]["ask"].eligible, "Approval")
            del self.sets[found]
            return
        ask = self.asks.get(leaf)
        permitted = ask is None or means in ask.means and (answer != given_set or self.may_stand(ask, scopes_of, uses, expires))
        self.expect(formed and permitted, "BadControl")
        if ask is None:
            return self.expect(False, "Approval")
        counts = ask.answer is None and self.time < ask.expires and key in ask.eligible and key not in ask.approved
        self.expect(counts, "Approval")
        if answer == no:
            ask.answer = DENIED
            return
        ask.approved.append(key)
        terms = {"uses": uses, "scopes": scopes_of, "expires": expires, "session": expires is None}
        if ask.agreed:
            terms = agree(ask.agreed, terms)
            ask.agreed = None
        if terms is None:
            return self.expect(False, "Approval")
        if len(ask.approved) < ask.threshold:
            ask.agreed = terms
        elif terms["uses"] is not None:
            self.begin_set(r, self.asks.pop(leaf), terms)
        else:
            ask.answer = (r.seq, ask.expires if terms["expires"] is None else min(terms["expires"], ask.expires))

    def may_stand(self, ask, scopes_of, uses, expires):
        wide = True
        if scopes_of is not None:
            plain = list(scopes_of) == [ask.tool_id] and all(one[0] != 1 for one in scopes_of[ask.tool_id].values())
            wide = plain and not ask.label & 1 and expires is not None
        return uses is not None and 0 < uses <= ask.uses_max and wide and (ask.session in self.sessions or expires is not None)

    def begin_set(self, r, ask, terms):
        account = self.accounts.get(ask.capability_token_id)
        if account is None:
            return self.expect(False, "Approval")
        most = min(self.time + SET_LIFE, account.token.expires)
        until = most if terms["expires"] is None else min(most, terms["expires"])
        session = ask.session if terms["session"] else None
        self.sets = {seq: one for seq, one in self.sets.items() if self.time < one["until"]}
        self.sets[r.seq] = {"ask": ask, "leaf": ask.leaf, "session": session, "left": terms["uses"], "until": until}
        while len(self.sets) > 1024:
            del self.sets[min(self.sets)]

    def end_sets(self, session):
        ends = lambda one: one["session"] is not None if session is None else one["session"] == session
        self.sets = {seq: one for seq, one in self.sets.items() if not ends(one)}

    def used_up(self, r):
        account = self.accounts.get(r.capability_token_id)
        found = lambda ask: ask.answer is not None and ask.answer[0] == r.approval and self.time < ask.answer[1]
        ask = next((ask for ask in self.asks.values() if found(ask)), None)
        if ask is None:
            self.expect(not r.preconditions, "Approval")
            return self.use_set(r, account)
        asked = self.accounts.get(ask.capability_token_id)
        same = is_of(ask, r) and account is not None and asked is not None and self.renews(account, asked)
        same = same and not set(account.holders()) & set(ask.eligible)
        elevated = ask.elevated and ask.policy_hash == r.policy_hash
        same = same and (elevated or not asks_for_a_level(r)) and ask.preconditions == r.preconditions
        self.expect(same, "Approval")
        del self.asks[ask.leaf]

    def use_set(self, r, account):
        one, session = self.sets.get(r.approval), self.sessions.get(r.session)
        if one is None:
            return self.expect(False, "Approval")
        ask = one["ask"]
        asked = self.accounts.get(ask.capability_token_id)
        fine = is_of(ask, r) and ask.policy_hash == r.policy_hash
        fine = fine and account is not None and asked is not None and self.renews(account, asked)
        fine = fine and not set(account.holders()) & set(ask.eligible)
        fine = fine and one["session"] in (None, r.session) and session is not None
        fine = fine and label_leq(session.label, ask.label) and r.decision is not None
        if fine:
            listed = len(r.decision[3]) == r.decision[4] and set(r.decision[3]) <= set(ask.decision[3])
            fine = listed and not asks_for_a_level(r) and r.decision[2] == ask.decision[2]
        self.expect(fine and self.time < one["until"] and one["left"] > 0, "Approval")
        one["left"] = max(0, one["left"] - 1)
        if not one["left"]:
            del self.sets[r.approval]


def is_of(ask, r):
    return (ask.agent_id, ask.tool_id, ask.manifest) == (r.agent_id, r.tool_id, r.manifest)


def agree(one, two):
    ends = [end for end in (one["expires"], two["expires"]) if end is not None]
    terms = {"uses": None, "scopes": None, "expires": min(ends, default=None), "session": one["session"] or two["session"]}
    if one["uses"] is None or two["uses"] is None:
        return terms
    if one["scopes"] != two["scopes"]:
        return None
    return terms | {"uses": min(one["uses"], two["uses"]), "scopes": one["scopes"]}


def asks_for_a_level(r):
    return any(one[1] == C["ObligationKind.approval"] for one in (r.decision[6] if r.decision else []))


def first_snapshot(agent):
    return crypto.derive("SNAPSHOT", cbor.encode({1: 1, 2: agent, 3: None, 4: 0, 5: {}, 6: None}))


def is_facts(found):
    try:
        for key, fact in found.items():
            record.typed("text FactKey", key)
            record.typed("bstr of 32", fact)
        return True
    except (Refused, AttributeError):
        return False


def is_nothing(name, value):
    return value == ZERO if name in ("held", "used") else value is None


def cut(one):
    """The dimension that an obligation cuts, and to what."""
    if one[1] != C["ObligationKind.budget_cut"] or one[2] not in DIMENSIONS or one[3] is None:
        return None
    dimension = DIMENSIONS.index(one[2])
    return (dimension, one[3]) if dimension in METERED else None


def keepable(one, manifest):
    name = next(name for name, code in CODES["ObligationKind"].items() if code == one[1])
    honours = one[1] in manifest.honours
    return {
        "result_cap": honours and one[3] is not None,
        "read_only": honours or manifest.reads,
        "openat2": honours,
        "budget_cut": cut(one) is not None,
        "approval": False,
    }.get(name, True)


def is_sound(decision):
    verdict, _, matches, count, digest, obligations = (decision[key] for key in range(1, 7))
    listed = len(matches)
    ids = [one.encode() for one in matches]
    place = lambda one: (one[1], one[2] is not None, (one[2] or "").encode())
    places = [place(one) for one in obligations]
    takes = [C["ObligationKind." + name] for name in ("result_cap", "read_only", "budget_cut")]
    taking = any(one[1] in takes for one in obligations)
    formed = listed <= 16 and count >= listed and (digest is not None) == (count > listed) and len(obligations) <= 32
    ordered = all(a < b for a, b in zip(ids, ids[1:])) and all(a < b for a, b in zip(places, places[1:]))
    short = all(len((one[2] or "").encode()) <= 64 for one in obligations)
    return formed and ordered and short and {0: not taking, 1: taking}.get(verdict, True)


def pays_enough(r, held):
    if r.reason == R["not_run"]:
        return r.used == ZERO
    given_up = r.flags & FLAG["RUNNING"] or r.reason in (R["panicked"], R["abandoned"])
    in_full = given_up or r.tx == C["TxOutcome.unknown"]
    counted = [n for n in range(10) if n not in MEASURED and n != CONCURRENT]
    return (not in_full or all(r.used[n] == held[n] for n in counted)) and r.used[CALLS] == 1


def is_consistent(r):
    kind = next(name for name, code in CODES["RefusalKind"].items() if code == r.refusal_kind)
    name = next(name for name, code in R.items() if code == r.reason)
    if kind == "control":
        return all(is_nothing(name, getattr(r, name)) for name in CALL)
    verdict = r.decision[1] if r.decision else None
    lets = verdict in (None, 0, 1, 2)
    if kind in ("asked", "deferred"):
        said = name == kind and verdict == {"asked": 2, "deferred": 3}[kind]
    else:
        said = {
            "denied": verdict == 4, "constraint": verdict == 4, "asked": False, "deferred": False,
            "approval_denied": verdict == 2, "obligation": lets and verdict is not None, "reduced": verdict in (1, 2),
            "over_budget": lets, "exhausted": lets, "concurrency_limit": lets,
        }.get(name)  # fmt: skip
        if said is None:
            looked = of_run(r.reason) or name == "panicked"
            said = verdict is None or looked and verdict == 2
    there = ("agent_id policy_hash state_snapshot_id capability_token_id tool_id args_hash provenance call_hash session "
             "manifest").split()  # fmt: skip
    whole = r.decision is None or all(getattr(r, name) is not None for name in there)
    named = (r.tool_id is None) == (r.manifest is None)
    return said and whole and named and r.held == ZERO and r.enforcement is None and r.result_hash is not None
