"""What a call can end with, other than its result."""

from __future__ import annotations

from typing import Any

from ._reasons import REASONS

_BUDGET = {"over_budget", "exhausted", "concurrency_limit"}


class Error(Exception):
    """All errors of this package."""


class Refused(Error):
    """Nothing was done. `reason` is a name of docs/spec/calls.md; `field`, `got` and `allowed` say what
    is at fault, what stood there and what would have been taken; `retry` is fix, wait, ask or never;
    `record` is the number of the record, where there is one."""

    def __init__(self, reason: str, *, field: str | None = None, got: str | None = None,
                 allowed: str | None = None, retry: str = "never", hint: str = "",
                 record: int | None = None) -> None:
        self.reason, self.field, self.got, self.allowed = reason, field, got, allowed
        self.retry, self.hint, self.record = retry, hint, record
        super().__init__(self.for_model)

    @property
    def for_model(self) -> str:
        """One text for a model: what is wrong, and what would be taken."""
        said = [f"{self.reason}: {self.hint}" if self.hint else self.reason]
        said += [f"{name}: {value}" for name, value in
                 (("at", self.field), ("got", self.got), ("allowed", self.allowed)) if value]
        said += [f"(record {self.record})"] if self.record is not None else []
        return " ".join(said)


class Asked(Refused):
    """A person has to approve it: `request` is the record that asks."""

    request: int
    _session: Any = None

    def wait(self, seconds: float = 600) -> Any:
        """Waits for the answer: True once it is approved, and the same call goes on. Awaited with
        `syscap.aio`."""
        return self._session.is_approved(self.request, seconds)


class Deferred(Refused):
    """It may be made later."""


class OverBudget(Refused):
    """The token has not enough left: `field` names the dimension."""


class Failed(Error):
    """It began, and came to no result. `effect` is no_op, rolled_back, committed or unknown."""

    def __init__(self, reason: str, effect: str, retry: str, hint: str, record: int | None) -> None:
        self.reason, self.effect, self.retry, self.hint, self.record = reason, effect, retry, hint, record
        super().__init__(self.for_model)

    @property
    def for_model(self) -> str:
        """One text for a model."""
        return f"{self.reason}: {self.hint} The effect: {self.effect}."


class ToolFailed(Failed):
    """The tool failed by its own word: `output` is what it gave."""

    def __init__(self, output: Any, effect: str, retry: str, hint: str, record: int | None) -> None:
        self.output = output
        super().__init__("tool_failed", effect, retry, hint, record)

    @property
    def for_model(self) -> str:
        return self.output if isinstance(self.output, str) else repr(self.output)


class Lost(Error):
    """The connection broke: what was out without a key may have run."""


class NoServer(Error):
    """Nobody serves the home."""


class Version(Error):
    """The server speaks another version of the protocol."""


class Forked(Error):
    """The session is another process's: take one of your own after the fork."""


class NotAccepted(Error):
    """A tool that was offered is not on record so, and an operator has to accept it."""


def refused(code: int, field: str | None, got: str | None, allowed: str | None) -> Refused:
    """A refusal of the channel: nothing is on record."""
    name, retry = REASONS.get(code, (f"reason {code}", "never"))
    return Refused(name, field=field, got=got, allowed=allowed, retry=retry)


def of_answer(answer: dict[str, Any], error: dict[str, Any], session: Any) -> Error:
    """The error of a call's answer."""
    record, effect = answer["receipt"].get("outcome_seq"), answer["tx_outcome"]
    reason, retry, hint = error["reason"], error["retry"], error["hint"]
    if reason == "tool_failed":
        return ToolFailed(error.get("output"), effect, retry, hint, record)
    if error["kind"] == "failed":
        return Failed(reason, effect, retry, hint, record)
    kinds = {"asked": Asked, "deferred": Deferred}
    kind = OverBudget if reason in _BUDGET else kinds.get(error["kind"], Refused)
    made = kind(reason, field=error.get("field"), got=error.get("got"), allowed=error.get("allowed"),
                retry=retry, hint=hint, record=record)
    if isinstance(made, Asked):
        made.request, made._session = int(error["got"]), session
    return made
