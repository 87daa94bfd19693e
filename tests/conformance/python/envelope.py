"""Envelopes of calls, their admission, results and error objects: docs/spec/calls.md."""

import re

import cbor
import jsonform
import tables
from cbor import Refused
from fold import DIMENSIONS
from tables import need

BYTES_MAX, INPUTS_MAX, TRACE_BYTES_MAX = 1 << 20, 16, 64

# Which reason a fault of the bytes has; any other is malformed.
BYTES = {
    "depth": "too_deep", "duplicate key": "duplicate_key", "integer": "number_range", "float": "number_range",
    "negative zero": "number_range", "not finite": "number_range",
}


class Refusal(Refused):
    """A refusal and the field that it is about."""

    def __init__(self, reason, field):
        super().__init__(reason)
        self.field = field


def item(data, form):
    try:
        return cbor.decode(jsonform.to_cbor(data) if form == "json" else data, cbor.DATA)
    except Refused as error:
        raise Refusal(BYTES.get(str(error), "malformed"), None) from error


def an_id(value):
    digits = isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef")
    return digits or isinstance(value, bytes) and len(value) == 32


def is_name(kind):
    def holds(value):
        try:
            tables.name(kind, value)
        except Refused:
            return False
        return True

    return holds


def provenance(value):
    if not isinstance(value, dict):
        return False
    inputs, trace = value.get("inputs", []), value.get("trace", "")
    return (
        isinstance(value.get("source"), str)
        and value["source"] in tables.CODES["Source"]
        and tables.is_uint(value.get("time", 0))
        and isinstance(inputs, list)
        and len(inputs) <= INPUTS_MAX
        and all(map(tables.is_uint, inputs))
        and isinstance(trace, str)
        and len(trace.encode()) <= TRACE_BYTES_MAX
    )


FIELDS = {
    "v": tables.is_uint, "args": lambda value: isinstance(value, dict), "proof": lambda _: False,
    "tool_id": is_name("ToolId"), "agent_id": is_name("AgentId"), "provenance": provenance,
    "policy_hash": an_id, "idempotency_key": is_name("IdempotencyKey"), "state_snapshot_id": an_id,
    "capability_token_id": an_id,
}


def complete(data, form, session):
    """The completed bytes, by the values of the session."""
    if len(data) > BYTES_MAX:
        raise Refusal("too_large", "envelope")
    given = item(data, form)
    if not isinstance(given, dict):
        raise Refusal("bad_field", "envelope")
    if any(not isinstance(key, str) for key in given):
        raise Refusal("malformed", None)
    for key, holds in FIELDS.items():
        if key in given and not holds(given[key]):
            raise Refusal("bad_proof" if key == "proof" else "bad_field", key)
    if given.get("v", 1) != 1:
        raise Refusal("unknown_version", "v")
    for key in ("tool_id", "args"):
        if key not in given:
            raise Refusal("missing_field", key)
    ids = {key: bytes.fromhex(session[key]) for key in ("policy_hash", "state_snapshot_id", "capability_token_id")}
    origin = {"source": session["source"], "time": session["time"]}
    return cbor.encode({"v": 1, "agent_id": session["agent_id"], "provenance": origin} | ids | given)


# The faults of a call in the order of admission, and their reasons.
ADMISSION = {
    "overloaded": "overloaded", "closing": "closing", "no session": "no_session", "proof": "bad_proof",
    "no policy": "policy_not_in_force", "envelope": "unknown_version", "inputs": "bad_field", "not bound": "not_bound",
    "revoked": "revoked", "frozen": "frozen", "expired": "expired", "not yet valid": "not_yet_valid",
    "stale": "stale_revocations", "clock": "clock_unconfirmed", "unknown tool": "unknown_tool",
    "not granted": "not_granted", "read only": "read_only_token", "no room": "no_room",
    "other policy": "policy_not_in_force", "other tools": "tools_mismatch", "no call left": "over_budget",
    "another's key": "not_bound", "key in flight": "key_in_flight", "key unknown": "outcome_unknown",
    "key erased": "outcome_erased", "answer erased": "outcome_erased", "arguments erased": "outcome_erased",
    "key": "key_reused", "key lost": "outcome_lost", "reference form": "bad_reference",
    "reference": "unknown_reference", "reference in flight": "reference_in_flight",
    "reference erased": "reference_erased", "argument": "unknown_argument", "bad argument": "bad_argument",
    "missing argument": "missing_argument", "tool": "not_found", "too many": "too_large", "not compared": "not_compared",
    "scope": "out_of_scope", "policy hash": "policy_mismatch", "snapshot": "unknown_snapshot", "denied": "denied",
    "deferred": "deferred", "approval denied": "approval_denied", "obligation": "obligation", "reduced": "reduced",
    "exhausted": "exhausted", "budget": "over_budget", "asked": "asked", "concurrency": "concurrency_limit",
}


def admit(faults):
    order = list(ADMISSION)
    if any("key" in fault or fault in ("answer erased", "arguments erased") for fault in faults):  # what the call names is held against what is in force first
        for named in ("policy hash", "snapshot"):
            order.remove(named)
            order.insert(order.index("another's key"), named)
    for fault in order:
        if fault in faults:
            raise Refused(ADMISSION[fault])


NEEDED, DETAILS = {"kind", "code", "reason", "retry", "hint"}, {"field", "got", "allowed"}


def is_control(character):
    return ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0


def error(data, tx):
    found = cbor.decode(data, cbor.DATA)
    need(isinstance(found, dict), "keys")
    failed = found.get("reason") == "tool_failed"  # by the tool's own word
    may, more = (set(), {"output"}) if failed else (DETAILS, set())
    need(NEEDED | more <= set(found) <= NEEDED | more | may, "keys")
    need(tables.is_uint(found["code"]), "code")
    need(all(isinstance(found[key], str) for key in found if key not in ("code", "output")), "text")
    need(found["kind"] in ("refused", "asked", "deferred", "failed"), "kind")
    for key in DETAILS & set(found):
        need(len(found[key].encode()) <= 256 and not any(map(is_control, found[key])), key)
    row = tables.REASONS.get(found["reason"], {})
    need(found["code"] == row.get("code"), "a code of its reason")
    may_be_done = found["kind"] == "failed" and tx == "unknown" and row["retry"] in ("fix", "wait")
    retry = "ask" if may_be_done else row["retry"]
    need(found["retry"] in ({retry, "ask", "never"} if failed else {retry}), "retry")
    need(not failed or found["kind"] == "failed", "kind")


PLAIN = ("read_only", "openat2")
NUMBERED = ("result_cap", "approval_uses")
NAMED = ("approval", "notify")


def number(text):
    need(re.fullmatch("0|[1-9][0-9]{0,19}", text, re.ASCII) and tables.is_uint(int(text)), "a number")


def obligation(words):
    need(isinstance(words, str), "text")
    name, space, rest = words.partition(" ")
    need(name in tables.CODES["ObligationKind"] and (space == "") == (name in PLAIN), "an obligation")
    if name in NUMBERED:
        number(rest)
    elif name == "budget_cut":
        dimension, _, most = rest.partition(" ")
        need(dimension, "a dimension")
        number(most)


def keys(value, needed, more=()):
    need(isinstance(value, dict) and set(needed) <= set(value) <= set(needed) | set(more), "keys")


def amounts(value):
    need(isinstance(value, dict), "amounts")
    need(all(name in DIMENSIONS and tables.is_uint(amount) and amount for name, amount in value.items()), "amounts")


def digest(value):
    need(isinstance(value, bytes) and len(value) == 32, "a digest")


def receipt(value):
    intent = ("intent_seq", "intent_leaf") if isinstance(value, dict) and "intent_seq" in value else ()
    keys(value, ("log", "outcome_seq", "outcome_leaf", "used", "left", "enforcement", *intent))
    for key in ("log", "outcome_leaf", *intent[1:]):
        digest(value[key])
    need(all(tables.is_uint(value[key]) for key in ("outcome_seq", *intent[:1])), "a position")
    amounts(value["used"])
    amounts(value["left"])
    need(value["enforcement"] in tables.CODES["Enforcement"], "enforcement")


RESULT = ("v", "status", "tool_id", "agent_id", "state_snapshot_id", "provenance", "tx_outcome", "result_hash", "receipt")


def result(data):
    found = cbor.decode(data, cbor.DATA)
    need(isinstance(found, dict), "a map")
    delivered = "result" if found.get("status") == "ok" else "error"
    keys(found, (*RESULT, delivered), ("degraded", "constraint"))
    need(found["v"] == 1 and found["v"] is not True, "v")
    need(isinstance(found["status"], str) and found["status"] in tables.CODES["Status"], "status")
    need(isinstance(found["tx_outcome"], str) and found["tx_outcome"] in tables.CODES["TxOutcome"], "tx_outcome")
    for key, kind in (("tool_id", "ToolId"), ("agent_id", "AgentId")):
        if found[key] is not None:
            tables.name(kind, found[key])
    if found["state_snapshot_id"] is not None:
        digest(found["state_snapshot_id"])
    digest(found["result_hash"])
    if found["provenance"] is not None:
        origin(found["provenance"])
    if "degraded" in found:
        need(isinstance(found["degraded"], list) and found["degraded"], "degraded")
        for words in found["degraded"]:
            obligation(words)
    if "constraint" in found:
        tables.name("ConstraintId", found["constraint"])
    receipt(found["receipt"])
    if delivered == "error":
        error(cbor.encode(found["error"]), found["tx_outcome"])


def origin(value):
    keys(value, ("source",), ("claimed", "time", "inputs", "trace"))
    need(provenance(value) and value.get("inputs") != [], "provenance")
    need("claimed" not in value or value["claimed"] in tables.CODES["Source"], "claimed")
