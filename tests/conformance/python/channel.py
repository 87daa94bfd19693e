"""Frames of the agents' channel: docs/spec/channel.md."""

import cbor
import tables
from tables import need

KINDS = {"client": (2, 3, 5, 6, 7), "server": (4, 5, 6, 7)}
TEXT_BYTES_MAX, WAIT_MS_MAX, WITHIN_MAX = 256, 600_000, 64
FORMS, AGENT, STANDS, AMOUNTS = (1, 2, 3, 4), 2, (1, 2, 3, 4, 5), 10


def uint(value, known=None):
    need(tables.is_uint(value) and (known is None or value in known), "a number")


def text(value):
    need(isinstance(value, str), "a text")


def bstr(value, size=None):
    need(isinstance(value, bytes) and size in (None, len(value)), "bytes")


def boolean(value):
    need(isinstance(value, bool), "true or false")


def null(value):
    need(value is None, "null")


def amounts(value):
    need(isinstance(value, list) and len(value) == AMOUNTS, "amounts")
    [uint(amount) for amount in value]


def record(value, *forms):
    """A map with the keys from 1 on, one for each form."""
    need(isinstance(value, dict) and list(value) == list(range(1, len(forms) + 1)), "a record")
    for form, item in zip(forms, value.values()):
        form(item)


def sent(value):
    def within(value):
        need(isinstance(value, list) and len(value) <= WITHIN_MAX, "a list")
        [uint(one) for one in value]

    def source(value):
        uint(value, tables.CODES["Source"].values())

    record(value, bstr, lambda form: uint(form, FORMS), source, lambda it: record(it, uint, within, boolean))


def listed(form):
    def check(value):
        need(isinstance(value, list), "a list")
        [form(one) for one in value]

    return check


def tool_id(value):
    tables.name("ToolId", value)


def tool(value):
    def schema(value):
        need(value is not None, "a schema")

    def standing(value):
        uint(value, (1, 2, 3, 4))

    def effect(value):
        uint(value, tables.CODES["EffectClass"].values())

    record(value, tool_id, text, text, text, schema, effect, uint, standing, boolean)


def tools(value):
    record(value, listed(tool), uint)


def why(value):
    need(value is None or isinstance(value, str), "why")


def agent(value):
    tables.name("AgentId", value)


def manifest(value):
    tables.shape("Manifest", value)


def offered(value):
    need(isinstance(value, dict), "a record")
    record(value, *(manifest, text)[:max(1, len(value))])


def used(value):
    need(isinstance(value, dict) and list(value)[:3] == [1, 2, 3], "a use")
    need(set(value) <= {1, 2, 3, 4, 5} and list(value) == sorted(value), "a use")
    why(value[1])
    tool_id(value[2])
    need(isinstance(value[3], dict), "arguments")
    [text(value[key]) for key in (4, 5) if key in value]


def chosen(**forms):
    """A list of a number and a value, whose form stands behind that number."""
    def check(value):
        need(isinstance(value, list) and len(value) == 2 and tables.is_uint(value[0]), "a choice")
        need(f"of_{value[0]}" in forms, "a choice")
        forms[f"of_{value[0]}"](value[1])

    return check


def answer(value):
    need(isinstance(value, list) and len(value) == 2 and isinstance(value[0], dict), "an answer")


def result(value):
    return None


def run(value):
    record(value, tool_id, lambda it: bstr(it, 32), agent, uint, uint, lambda args: need(args is not None, "args"),
           amounts, uint, boolean, uint)


ORDERS = {1: run, 2: uint, 3: null}
REQUESTS = {
    1: lambda value: bstr(value, 32), 2: lambda value: record(value, uint, sent), 3: uint, 4: uint,
    5: lambda value: record(value, uint, uint, uint), 6: uint, 7: uint, 8: listed(offered), 9: listed(tool_id),
    10: lambda value: record(value, uint, used, boolean),
    11: lambda value: record(value, uint, uint, chosen(of_1=result, of_2=text, of_3=text)),
}
ANSWERS = {
    1: lambda value: record(value, uint, agent, lambda token: bstr(token, 32)), 3: null, 4: uint,
    5: lambda value: record(value, lambda how: uint(how, STANDS), why), 6: tools,
    7: lambda value: record(value, lambda it: uint(it, range(1, 8)), amounts, amounts, uint, uint),
    8: lambda value: record(
        value, listed(lambda one: record(one, manifest, lambda it: uint(it, (1, 2, 3, 4))))), 9: null,
    10: chosen(of_1=uint, of_2=answer), 11: chosen(of_1=answer, of_2=uint),
}


def refusal(body):
    need(isinstance(body, list) and len(body) == 4, "four")
    uint(body[0])
    for said in body[1:]:
        need(said is None or isinstance(said, str) and len(said.encode()) <= TEXT_BYTES_MAX, "a text")


def channel(data, by, verb=None):
    """The reason for which a server refuses it, if it does."""
    frame = cbor.decode(data, cbor.DATA)
    need(isinstance(frame, dict) and len(frame) == 2, "two entries")
    (key, number), (kind, body) = frame.items()
    need(key == 1 and tables.is_uint(number), "an id")
    need(kind in KINDS[by], "a kind")
    if kind == 3:
        return "wrong_lane"
    if kind == 6:
        refusal(body)
    elif kind in (2, 4):
        need(isinstance(body, list) and len(body) == 2, "a verb and a value")
        if kind == 4:
            need(tables.is_uint(body[0]) and body[0] in ORDERS, "an order")
            ORDERS[body[0]](body[1])
        else:
            need(tables.is_uint(body[0]) and body[0] in REQUESTS, "a verb")
            REQUESTS[body[0]](body[1])
            if body[0] == 5 and body[1][3] > WAIT_MS_MAX:
                return "too_large"
    elif kind == 5 and verb is not None:
        ANSWERS[verb](body)
    return None
