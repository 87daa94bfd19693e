"""Policies of the engine ss01: docs/spec/policy.md."""

import ipaddress
import re
import unicodedata

import cbor
import crypto
import scopes
from cbor import Refused
from tables import CODES, is_uint, name, need

CLASSES = sorted(CODES["EffectClass"], key=CODES["EffectClass"].get)
OBLIGATIONS = CODES["ObligationKind"]
METERED = ("llm_tokens", "disk_write_bytes", "disk_files", "egress_bytes", "ingress_bytes", "credits_micro")
DIMENSIONS = ("calls", "cpu_us", "wall_us", "concurrent") + METERED
VERDICTS = ("allow", "degrade", "ask", "defer", "deny")
TAKES_AWAY = ("result_cap", "read_only", "budget_cut")
_HISTORY = re.compile(r"history\.(calls|refusals|bytes)\.(agent|tool)\.(minute|hour|day)")
_TOPIC = re.compile(r"[a-z0-9._-]{1,64}")
_FIXED = {
    "call.tool": "tool", "call.effect": "class", "token.id": "text", "call.agent": "agent", "token.read_only": "bool",
    "call.args_bytes": "int", "token.depth": "int", "token.left_ms": "int", "now.ms": "int", "risk": "int",
    "now.hour": (0, 23), "now.weekday": (1, 7),
}
UNKNOWN = None
LIST_MAX = 256


def keys(value, needed, more=()):
    need(isinstance(value, dict) and set(needed) <= set(value) <= set(needed) | set(more), "keys")


def is_a(text, *called):
    try:
        scopes.host(text, 253) if called[0] == "host" else name(called[0], text)
        return True
    except (Refused, AttributeError):
        return False


def host_of(text):
    text = text.partition("://")[2] if "://" in text else text
    text = text.removesuffix("/").removesuffix(".")
    return text.lower() if text.isascii() and is_a(text.lower(), "host") else None


def controls(text):
    return any(unicodedata.category(one) == "Cc" for one in text)


def kind_of(attribute):
    """What values an attribute can have."""
    need(isinstance(attribute, str), "an attribute")
    if attribute in _FIXED:
        return _FIXED[attribute]
    first, _, rest = attribute.partition(".")
    if first in ("args", "fact", "goal"):
        parts = rest.split(".")
        need(len(parts) <= 9 and all(0 < len(part.encode()) <= 4096 and not controls(part) for part in parts), "parts")
        need(first == "args" or is_a(f"{first}.{parts[0]}", "FactKey"), "a fact's key")
        return "any"
    counted = first == "budget" and rest or attribute.startswith("call.hold.") and attribute[10:]
    need(counted in DIMENSIONS or _HISTORY.fullmatch(attribute), "an attribute")
    return "int"


def within_constant(text):
    parts = text.split("/")
    need(not set(text) & set("*?\\\0") and not {"", ".", ".."} & set(parts), "a path without wildcards")


def block(text):
    address, _, bits = text.partition("/")
    need(re.fullmatch(r"0|[1-9][0-9]*", bits, re.ASCII) and "%" not in address, "a block")
    try:
        found = [ipaddress.ip_address(address).packed, int(bits)]
    except ValueError as error:
        raise Refused("a block") from error
    scopes.cidrs([found])
    return found


class Policy:
    """A document that was read whole."""

    def __init__(self, data):
        document = cbor.decode(data)
        keys(document, ("v", "constraints"), ("params",))
        need(document["v"] == 1 and type(document["v"]) is int, "v")
        need(isinstance(document["constraints"], list) and len(document["constraints"]) <= 65535, "constraints")
        self.params = document.get("params", {})
        self.named, self.asked = {}, set()
        made = self.read_params()
        read = [self.constraint(one) for one in document["constraints"]]
        need(self.asked == set(self.named), "a parameter that nothing asks for")
        read.sort(key=lambda one: one["id"])
        ids = [one["id"] for one in read]
        need(len(ids) == len(set(ids)), "an id that stands once")
        self.contradiction(read)
        canonical = {"v": 1, "constraints": read} | ({"params": self.params} if self.params else {})
        self.bytes = cbor.encode(canonical)
        self.hash = crypto.derive("POLICY", cbor.encode({1: {1: "ss01", 2: 1}, 2: self.bytes}))
        self.constraints = sorted(read + made, key=lambda one: one["id"])
        for one in read:
            for example in one.get("examples", []):
                self.example(one, example)

    def contradiction(self, read):
        seen = {}
        for one in read:
            if one["effect"] == "allow" or one["on_fail"] == "block":
                same = (cbor.encode(one["subject"]), cbor.encode(self.resolved(one["when"])))
                need(seen.setdefault(same, one["effect"]) == one["effect"], "no contradiction")

    def resolved(self, when):
        """A condition with its parameters put in."""
        if isinstance(when, dict) and set(when) == {"param"}:
            return self.named[when["param"]]
        if isinstance(when, dict):
            return {key: self.resolved(value) for key, value in when.items()}
        return [self.resolved(one) for one in when] if isinstance(when, list) else when

    def example(self, one, example):
        keys(example, ("given",), ("holds", "verdict"))
        need(len(example) > 1 and example.get("verdict", "deny") in VERDICTS, "an example")
        need(type(example.get("holds", True)) is bool, "holds")
        given = example["given"]
        need(isinstance(given, dict), "given")
        for attribute in given:
            kind_of(attribute)
        decision = self.decide(given)
        need(example.get("verdict", decision["verdict"]) == decision["verdict"], "an example's verdict")
        matches = self.applies(one, given) and self.is_match(one, given)
        need(example.get("holds", matches) == matches, "an example that holds")

    def read_params(self):
        need(isinstance(self.params, dict) and len(self.params) <= 1024, "params")
        made = []
        for key, value in self.params.items():
            if key == "tools":
                self.tools(value)
                made.append(self.made("tools", self.no_tool(value)))
            elif key == "agents":
                need(isinstance(value, dict), "agents")
                within = [{"op": "within", "args": ["call.agent", agent]} for agent in value]
                made.append(self.made("agents", {"op": "not", "args": [{"op": "any", "args": within}]}))
                for one, (agent, tools) in zip(within, value.items()):
                    name("AgentId", agent)
                    self.tools(tools)
                    made.append(self.made(f"agents.{agent}", {"op": "all", "args": [one, self.no_tool(tools)]}))
            elif key == "risk":
                need(isinstance(value, dict), "risk")
                self.tools(list(value))
                need(all(is_uint(points) and points <= 100 for points in value.values()), "points")
            elif key not in ("elevated", "client_means"):
                need(re.fullmatch(r"[a-z][a-z0-9_]{0,63}", key, re.ASCII), "a parameter's name")
                need(not isinstance(value, list) or len(value) <= 4096, "a list within its limit")
                for constant in value if isinstance(value, list) else [value]:
                    self.plain(constant)
                self.named[key] = value
        return made

    def tools(self, value):
        need(isinstance(value, list) and len(value) <= 4096, "a list of tools")
        for tool in value:
            name("ToolId", tool)

    def no_tool(self, tools):
        return {"op": "not", "args": [{"op": "in", "args": ["call.tool", tools]}]}

    def made(self, key, when):
        return {"id": f"params.{key}", "effect": "deny", "subject": None, "when": when, "on_fail": "block"}

    def constraint(self, one):
        needed = ("id", "effect", "subject", "when", "on_fail", "reason")
        keys(one, needed, ("v", "obligations", "examples"))
        need(one.get("v", 1) == 1, "v")
        name("ConstraintId", one["id"])
        need(not one["id"].startswith("params."), "an id of its own")
        need(one["effect"] in ("allow", "deny") and one["on_fail"] in ("block", "ask", "defer", "degrade"), "effect")
        need(one["on_fail"] != "degrade" or one["effect"] == "deny", "a deny that degrades")
        need(isinstance(one["reason"], str) and len(one["reason"].encode()) <= 256, "reason")
        self.subject(one["subject"])
        self.nodes = 1024
        self.condition(one["when"])
        obligations = one.get("obligations", [])
        need(isinstance(obligations, list) and len(obligations) <= 16, "obligations")
        for obligation in obligations:
            self.obligation(one, obligation)
        takes = any(obligation["type"] in TAKES_AWAY for obligation in obligations)
        need(one["on_fail"] != "degrade" or takes, "an obligation that takes something away")
        need(isinstance(one.get("examples", []), list) and len(one.get("examples", [])) <= 64, "examples")
        read = {key: one[key] for key in needed}
        if obligations:
            read["obligations"] = unite(obligations)
        return read | ({"examples": one["examples"]} if one.get("examples") else {})

    def subject(self, subject):
        if subject is not None:
            need(isinstance(subject, dict) and len(subject) == 1, "subject")
            if "tool_id" in subject:
                name("ToolId", subject["tool_id"])
            else:
                need(subject.get("capability") in CLASSES, "an effect class")

    def obligation(self, one, obligation):
        fields = {"result_cap": "bytes", "read_only": "", "openat2": "", "budget_cut": "dimension max",
                  "approval": "level", "approval_uses": "max", "notify": "topic"}  # fmt: skip
        kind = obligation.get("type") if isinstance(obligation, dict) else None
        need(kind in fields, "an obligation")
        keys(obligation, ["type", *fields[kind].split()])
        need(is_uint(obligation.get("max", 0)) and is_uint(obligation.get("bytes", 1)), "a number")
        need(obligation.get("bytes", 1) >= 1 and obligation.get("dimension", METERED[0]) in METERED, "a cap or a cut")
        topic = obligation.get("topic", "t")
        need(obligation.get("level", "elevated") == "elevated" and isinstance(topic, str) and _TOPIC.fullmatch(topic), "topic")
        of_ask = one["effect"] == "deny" and one["on_fail"] == "ask"
        fits = kind not in ("approval", "approval_uses") and (one["effect"] == "allow" or one["on_fail"] == "degrade")
        need(kind == "notify" or of_ask or fits, "an obligation that stands here")

    def condition(self, when):
        self.nodes -= 1
        need(self.nodes >= 0, "nodes")
        keys(when, ("op", "args"))
        op, args = when["op"], when["args"]
        need(isinstance(op, str) and isinstance(args, list), "an operation")
        if op in ("all", "any", "not"):
            need(op != "not" or len(args) == 1, "one condition")
            return [self.condition(one) for one in args]
        need(op in OPERATIONS and len(args) == (1 if op in ("exists", "missing") else 2), "an operation's arguments")
        kind = kind_of(args[0])
        if op == "schema":
            need(args[1] in ("text", "integer", "boolean", "bytes", "list", "map", "path", "number"), "a type")
        elif op == "in":
            constants = self.constants(args[1])
            for constant in constants:
                self.fits("eq", kind, constant)
        elif len(args) == 2:
            constant = self.one(args[1])
            self.fits(op, kind, constant)

    def constants(self, value):
        if isinstance(value, dict):
            value = self.param(value)
            return value if isinstance(value, list) else [value]
        need(isinstance(value, list) and 0 < len(value) <= 4096, "a list of constants")
        return [self.one(constant) for constant in value]

    def one(self, value):
        value = self.param(value) if isinstance(value, dict) else value
        return self.plain(value)

    def param(self, value):
        keys(value, ("param",))
        need(value["param"] in self.named, "a parameter")
        self.asked.add(value["param"])
        return self.named[value["param"]]

    def plain(self, value):
        need(type(value) in (bool, int) or isinstance(value, str) and len(value.encode()) <= 4096, "a constant")
        return value

    def fits(self, op, kind, constant):
        is_int = type(constant) is int
        ranged = isinstance(kind, tuple)
        if op == "eq":
            need(kind != "int" or is_int, "an integer")
            need(not ranged or is_int and kind[0] <= constant <= kind[1], "an integer in range")
            need(kind != "bool" or type(constant) is bool, "a boolean")
            need(kind not in ("text", "tool", "class", "agent") or isinstance(constant, str), "text")
            need(kind != "tool" or is_a(constant, "ToolId"), "a tool's id")
            need(kind != "class" or constant in CLASSES, "an effect class")
            need(kind != "agent" or is_a(constant, "AgentId"), "an agent's id")
        elif op in ("lt", "le", "gt", "ge"):
            need(is_int and (kind in ("any", "int") or ranged), "an integer")
        else:
            need(isinstance(constant, str), "text")
            texts = ("text", "tool", "class")
            need(kind == "any" or op == "within" and kind == "agent" or op in ("prefix", "suffix") and kind in texts, "kind")
            if op == "within":
                need(kind != "agent" or is_a(constant, "AgentId"), "an agent's id")
                within_constant(constant)
            elif op == "domain":
                need(host_of(constant), "a host")
            elif op == "cidr":
                block(constant)

    # Decisions.

    def applies(self, one, given):
        subject = one["subject"] or {}
        tool, effect = given.get("call.tool"), given.get("call.effect")
        return subject.get("tool_id", tool) == tool and subject.get("capability", effect) == effect

    def is_match(self, one, given):
        truth = self.truth(one["when"], given)
        return truth is True if one["effect"] == "allow" else truth is not False

    def truth(self, when, given):
        op, args = when["op"], when["args"]
        if op in ("all", "any", "not"):
            parts = [self.truth(one, given) for one in args]
            if op == "not":
                return UNKNOWN if parts[0] is UNKNOWN else not parts[0]
            decides = op == "any"
            return decides if decides in parts else UNKNOWN if UNKNOWN in parts else not decides
        constant = self.resolved(args[1]) if len(args) == 2 else None
        constant = [constant] if op == "in" and not isinstance(constant, list) else constant
        if op == "in" and not constant:
            return False
        if args[0] == "risk" and "risk" not in given:
            given = given | {"risk": self.risk(given)} if given.get("call.effect") in CLASSES else given
        return test(op, constant, args[0] in given, given.get(args[0]), args[0] == "call.agent")

    def risk(self, given):
        base = (0, 10, 20, 30, 60, 90)[CLASSES.index(given["call.effect"])]
        return max(base, self.params.get("risk", {}).get(given.get("call.tool"), 0))

    def decide(self, given):
        applicable = [one for one in self.constraints if self.applies(one, given)]
        matching = [one for one in applicable if self.is_match(one, given)]
        granted = any(one["effect"] == "allow" for one in matching)
        gave = []
        for one in applicable:
            matches, on_fail = one in matching, {"block": "deny"}.get(one["on_fail"], one["on_fail"])
            if one["effect"] == "allow" and matches:
                takes = any(asked["type"] in TAKES_AWAY for asked in one.get("obligations", []))
                gave.append(("degrade" if takes else "allow", one["id"]))
            elif matches or one["effect"] == "allow" and not granted:
                gave.append((on_fail, one["id"]))
        base = "allow" if any(one["effect"] == "allow" for one in applicable) else "deny"
        verdict = max([base] + [given for given, _ in gave], key=VERDICTS.index)
        return {
            "verdict": verdict,
            "deciding": next((key for given, key in gave if given == verdict), None),
            "matches": [one["id"] for one in matching][:16],
            "obligations": [on_record(one) for one in unite([a for m in matching for a in m.get("obligations", [])])],
        }


def on_record(obligation):
    named = obligation.get("dimension") or obligation.get("level") or obligation.get("topic")
    return {"kind": obligation["type"], "name": named, "max": obligation.get("bytes", obligation.get("max"))}


def unite(obligations):
    place = lambda one: (OBLIGATIONS[one["type"]], on_record(one)["name"] or "")
    united = {}
    for one in sorted(obligations, key=lambda one: (*place(one), on_record(one)["max"] or 0)):
        united.setdefault(place(one), one)
    return list(united.values())


# Tests.


def tagged(value, is_agent=False):
    """A value's kind and content."""
    if isinstance(value, dict):
        (kind, content) = next(iter(value.items()))
        return ("other", content) if kind == "type" else (kind, content)
    if isinstance(value, list):
        return "list", [tagged(one) for one in value]
    if isinstance(value, str):
        return "agent" if is_agent else "text", value
    return {bool: "bool", int: "int"}.get(type(value), "null"), value


def below(text, outer, joint="/"):
    return text == outer or text.startswith(outer + joint)


def address_in(text, constant):
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return UNKNOWN
    if getattr(address, "scope_id", None) is not None:
        return UNKNOWN
    address = getattr(address, "ipv4_mapped", None) or address
    return scopes.in_block([address.packed, 8 * len(address.packed)], block(constant))


def equal(constant, kind, value):
    if type(constant) in (bool, int):
        return value == constant if kind == {bool: "bool", int: "int"}[type(constant)] else UNKNOWN
    if kind in ("text", "agent", "path"):
        return value == constant
    if kind == "tree":
        return UNKNOWN if below(constant, value) else False
    return host_of(constant) == value if kind == "host" else UNKNOWN


def compare(op, constant, kind, value):
    """A test of one value."""
    if op == "eq":
        return equal(constant, kind, value)
    if op == "in":
        answers = [equal(one, kind, value) for one in constant]
        return True if True in answers else UNKNOWN if UNKNOWN in answers else False
    if op in ("lt", "le", "gt", "ge") and kind == "int":
        return {"lt": value < constant, "le": value <= constant, "gt": value > constant, "ge": value >= constant}[op]
    if op in ("prefix", "suffix") and kind == "text":
        return value.startswith(constant) if op == "prefix" else value.endswith(constant)
    if op == "within" and kind in ("agent", "path", "tree"):
        return True if below(value, constant) else UNKNOWN if kind == "tree" and below(constant, value) else False
    if op == "domain" and kind == "host":
        host = host_of(constant)
        return value == host or value.endswith("." + host)
    return address_in(value, constant) if op == "cidr" and kind in ("address", "text") else UNKNOWN


def schema(wanted, kind, value):
    types = {
        "bool": ["boolean"], "int": ["integer", "number"], "text": ["text"], "agent": ["text"], "host": ["text"],
        "path": ["path", "text"], "tree": ["path", "text"], "list": ["list"], "other": [],
    }.get(kind, [])  # fmt: skip
    if kind == "other":
        types = [{"float": "number", "empty_list": "list"}.get(value, value)]
    return wanted in types


# Kinds of resources that a test compares.
_COMPARED = {
    "lt": ["int"], "le": ["int"], "gt": ["int"], "ge": ["int"], "prefix": ["text"], "suffix": ["text"],
    "within": ["path", "tree"], "domain": ["host"], "cidr": ["address"],
}  # fmt: skip
OPERATIONS = {"exists", "missing", "schema", "eq", "in", *_COMPARED}


def compared(op, constant, kind):
    if op in ("eq", "in"):
        constants = constant if op == "in" else [constant]
        texts = kind in ("text", "path", "tree", "host")
        return any(isinstance(one, str) and texts or type(one) is int and kind == "int" for one in constants)
    return kind in _COMPARED[op]


def agreed(op, constant, values):
    if len(values) > 1 and any(kind == "tree" for kind, _ in values):
        return UNKNOWN
    answers = {compare(op, constant, kind, value) for kind, value in values}
    return answers.pop() if len(answers) == 1 else UNKNOWN


def test(op, constant, present, value, is_agent):
    """A test of an attribute: True, False or UNKNOWN."""
    kind, value = tagged(value, is_agent)
    if op in ("exists", "missing"):
        return UNKNOWN if kind == "erased" else present == (op == "exists")
    if not present or kind == "erased":
        return UNKNOWN
    if kind == "resources":
        parts = [tagged(one) for one in value]
        if op == "schema":
            return constant == "text" or constant == "path" and all(one in ("path", "tree") for one, _ in parts)
        return agreed(op, constant, parts) if all(compared(op, constant, one) for one, _ in parts) else UNKNOWN
    if op == "schema":
        return schema(constant, kind, value)
    if kind == "list":
        return agreed(op, constant, value) if len(value) <= LIST_MAX else UNKNOWN
    return compare(op, constant, kind, value)
