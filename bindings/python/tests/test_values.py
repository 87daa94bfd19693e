"""What can be said, and what can't."""

import dataclasses
import enum
import json
import re
import subprocess
import sys
import typing

import pytest

from conftest import ROOT, SOURCES
from syscap import key_of
from syscap._cbor import decode, encode
from syscap._reasons import REASONS
from syscap._schema import Function, plain
from syscap._wire import TX


def cases(name):
    return json.loads((ROOT / f"tests/conformance/vectors/{name}.json").read_text())["cases"]


def test_items_are_read_and_written_as_the_vectors_say():
    valid = [bytes.fromhex(case["bytes"]) for case in cases("cbor")
             if (case["kind"], case.get("profile"), case["result"]) == ("item", "DATA", "valid")]
    assert len(valid) > 50
    for data in valid:
        value, end = decode(data)
        assert end == len(data) and encode(value) == data, data.hex()


def deep(levels):
    value = None
    for _ in range(levels):
        value = [value]
    return value


def cycle():
    value = []
    value.append(value)
    return value


@pytest.mark.parametrize("value", [
    float("nan"), float("inf"), 1 << 64, -(1 << 64) - 1, "\ud800", {1: 2}, {True: 1}, {None: 1}, {"a": {1, 2}},
    object(), deep(65), cycle(), 1j, {"a": "\udfff"},
])
def test_what_has_no_form_is_a_value_error(value):
    with pytest.raises(ValueError):
        encode(plain(value))


@pytest.mark.parametrize("value", [
    (1 << 64) - 1, -(1 << 64), 0.0, -0.0, 1.5, 1e300, "\U0001f600", b"\x00", [], {}, deep(63), {"$ref": 1},
])
def test_what_has_one_comes_back(value):
    assert decode(encode(plain(value)))[0] == value


def test_reasons_are_those_of_the_page():
    page = (ROOT / "docs/spec/calls.md").read_text()
    rows = re.findall(r"^\| (\d{3}) \| `([a-z_]+)` \| ([a-z]+) \|$", page, re.M)
    assert {int(code): (name, retry) for code, name, retry in rows} == REASONS


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Place:
    name: str
    at: list[float] = dataclasses.field(default_factory=list)


def test_function_has_the_manifest_of_its_hints():
    def send(to: typing.Annotated[str, "Whom."], n: int, place: Place, colour: Colour, how: typing.Literal["a", "b"],
             data: bytes = b"", tags: list[str] | None = None, share: float = 0.5, any_: typing.Any = None,
             flag: bool = False) -> None:
        "Sends."

    one = Function(send, "py.send", "external_write", 10, False, None)
    kinds = {param[1]: (param[2], param[3]) for param in one.manifest[7]}
    assert kinds == {
        "to": (1, 1), "n": (2, 1), "place": (6, 1), "colour": (1, 1), "how": (1, 1), "data": (4, 2), "tags": (5, 2),
        "share": (8, 2), "any_": (0, 2), "flag": (3, 2),
    }
    assert one.manifest[5] == "Sends." and one.manifest[7][0][7] == "Whom." and one.manifest[11] == 10_000
    properties = one.schema["properties"]
    assert properties["place"]["properties"]["at"] == {"type": "array", "items": {"type": "number"}}
    assert properties["colour"] == {"enum": ["red"]} and properties["how"] == {"enum": ["a", "b"]}
    given = one.given({"place": {"name": "x", "at": [1]}, "colour": "red", "share": 1})
    assert given == {"place": Place("x", [1.0]), "colour": Colour.RED, "share": 1.0}
    for wrong in ({"n": "1"}, {"n": True}, {"how": "c"}, {"place": "x"}, {"flag": 1}):
        with pytest.raises((TypeError, ValueError)):
            one.given(wrong)


def test_functions_that_no_call_can_name_are_refused():
    def bare(a): ...
    def many(*args: int): ...
    def more(**args: int): ...
    def only(a: int, /): ...
    def odd(a: set): ...
    for function in (bare, many, more, only, odd):
        with pytest.raises(TypeError):
            Function(function, "py.x", "read", 1, False, None)
    with pytest.raises(ValueError):
        Function(lambda: None, "py.x", "writes", 1, False, None)


def test_key_needs_the_conversation():
    with pytest.raises(ValueError):
        key_of("openai", "", "c0")
    one = key_of("openai", "t1", "c0")
    assert re.fullmatch("[0-9a-f]{40}", one) and one != key_of("openai", "t2", "c0")


def test_package_is_there_where_only_a_program_reaches_the_server():
    """On Windows and macOS what is Linux's own is missing."""
    code = ("import asyncio, os\nfor name in ('register_at_fork', 'pread', 'O_PATH', 'O_DIRECTORY', 'fork'):\n"
            "    delattr(os, name)\ndel asyncio.open_unix_connection\nimport syscap, syscap.aio\n"
            "try:\n    syscap.connect(command=['/none'])\nexcept syscap.NoServer:\n    print('imported')")
    ran = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True,
                         env={"PYTHONPATH": str(SOURCES)}, check=False)
    assert ran.stdout == "imported\n", ran.stderr


def test_numbers_are_those_of_the_page():
    page = (ROOT / "docs/spec/channel.md").read_text()
    said = re.search(r"The effect: ([^.]*)\.", page).group(1)
    assert {name: int(code) for code, name in re.findall(r"(\d) `(\w+)`", said)} == TX
    rows = re.search(r"\| 1 \| issue", page) and re.findall(r"^\| (\d+) \| (\w+) \|", page.split("## Requests")[1], re.M)
    verbs = {name: int(code) for code, name in rows[:9]}
    assert [verbs[name] for name in ("take", "call", "cancel", "close", "wait", "tools", "left", "offer", "withdraw")
            ] == list(range(1, 10))
