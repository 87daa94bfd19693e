"""A toy host for the conformance suite: it decides, limits and performs calls, and keeps nothing on disk.

One line of JSON in, one out: docs/conformance.md.
"""

import hashlib
import json
import os
import stat
import sys
import threading
import urllib.request

TOOLS = {"write": {"path": str, "text": str}, "read": {"path": str}, "get": {"page": str}, "count": {"by": int}}
LOCK = threading.Lock()


class Refused(Exception):
    """A call or a request that is not to be."""

    def __init__(self, reason, ask=None):
        super().__init__(reason)
        self.ask = ask


class Host:
    def start(self, ask):
        claims = ["decide", "scope", "budget", "approve", "delegate"]
        return {"implementation": "toy", "version": "1", "claims": claims, "pids": [os.getpid()]}

    def reset(self, ask):
        self.place, self.now, self.policy, self.approvers = ask, ask["clock"], ask["policy"], ask["approvers"]
        self.tokens, self.asks, self.keys = {}, {}, {}

    def advance(self, ask):
        # A clock that goes back revives nothing.
        self.now = max(self.now, self.now + ask["ms"])

    def grant(self, ask):
        token = {
            "agent": ask["agent"], "tools": ask["tools"], "budget": ask["budget"], "parent": ask["parent"],
            "until": self.now + ask["life_ms"], "depth": ask["depth"], "revoked": False,
            "used": {"calls": 0, "bytes": 0, "units": 0},
        }
        if any(limit < 0 for limit in token["budget"].values()) or set(token["tools"]) - set(TOOLS):
            raise Refused("bad grant")
        if ask["parent"] is not None:
            self.is_narrower(token, self.live(ask["parent"]))
        name = os.urandom(16).hex()
        self.tokens[name] = token
        return {"token": name}

    def is_narrower(self, child, parent):
        if child["depth"] >= parent["depth"]:
            raise Refused("no delegation")
        if child["agent"] != parent["agent"] and not child["agent"].startswith(parent["agent"] + "/"):
            raise Refused("another agent")
        for tool, scope in child["tools"].items():
            if tool not in parent["tools"]:
                raise Refused("wider tools")
            for name in scope:
                if not any(within(name, of) for of in parent["tools"][tool]):
                    raise Refused("wider scope")
        for name, limit in child["budget"].items():
            if limit > parent["budget"][name]:
                raise Refused("wider budget")
        if child["until"] > parent["until"]:
            raise Refused("longer life")

    def revoke(self, ask):
        self.tokens[ask["token"]]["revoked"] = True

    def approve(self, ask):
        asked = self.asks.get(ask["ask"])
        if asked is None or ask["by"] not in self.approvers["names"]:
            raise Refused("not eligible")
        if asked["answer"] is not None:
            raise Refused("answered")
        if ask["answer"] == "no":
            asked["answer"] = "no"
        else:
            asked["by"] = sorted({*asked["by"], ask["by"]})
            if len(asked["by"]) >= self.approvers["needed"]:
                asked["answer"] = "yes"

    # A call.

    def live(self, name):
        token = self.tokens.get(name)
        if token is None:
            raise Refused("no such token")
        for one in self.chain(token):
            if one["revoked"]:
                raise Refused("revoked")
            if self.now >= one["until"]:
                raise Refused("expired")
        return token

    def chain(self, token):
        while token is not None:
            yield token
            token = self.tokens.get(token["parent"])

    def begin(self, ask):
        """Everything that can say no. What is returned may be done, once."""
        token = self.live(ask["token"])
        if ask["agent"] != token["agent"]:
            raise Refused("not bound")
        tool, args = ask["tool"], ask["args"] if "args" in ask else parsed(ask["text"])
        if not isinstance(tool, str) or tool not in TOOLS:
            raise Refused("unknown tool")
        if tool not in token["tools"]:
            raise Refused("not granted")
        key = ask.get("key")
        slot = json.dumps([ask["agent"], tool, key])
        if key is not None and slot in self.keys:
            return self.again(self.keys[slot], args)
        check_args(tool, args)
        self.in_scope(token["tools"][tool], tool, args)
        approved = self.decide(ask["token"], ask["agent"], tool, args)
        self.reserve(token, tool, args)
        if approved:  # for one call
            del self.asks[approved]
        if key is not None:
            self.keys[slot] = {"args": args, "state": "running", "answer": None}
        return None, tool, args, slot if key is not None else None

    def again(self, used, args):
        if used["args"] != args:
            raise Refused("key reused")
        if used["state"] == "running":
            raise Refused("key in flight")
        return used["answer"], None, None, None

    def in_scope(self, scope, tool, args):
        if tool in ("write", "read"):
            parts = components(args["path"])
            if not any(parts[: len(of)] == of for of in map(components, scope)):
                raise Refused("out of scope")
        elif tool == "get" and args["page"] not in scope:
            raise Refused("out of scope")

    def decide(self, token, agent, tool, args):
        said = {rule["then"] for rule in self.policy if holds(rule, agent, tool, args)}
        if "deny" in said or not said:
            raise Refused("denied")
        if "ask" in said:
            call = json.dumps([token, agent, tool, args], sort_keys=True)
            digest = hashlib.sha256(call.encode()).hexdigest()
            asked = self.asks.setdefault(digest, {"by": [], "answer": None})
            if asked["answer"] == "no":
                raise Refused("approval denied")
            if asked["answer"] != "yes":
                raise Refused("asked", digest)
            return digest
        return None

    def reserve(self, token, tool, args):
        cost = {"calls": 1, "bytes": len(args["text"].encode()) if tool == "write" else 0,
                "units": args["by"] if tool == "count" else 0}
        for one in self.chain(token):
            if any(one["used"][name] + amount > one["budget"][name] for name, amount in cost.items()):
                raise Refused("over budget")
        for one in self.chain(token):
            for name, amount in cost.items():
                one["used"][name] += amount

    def end(self, slot, answer):
        if slot is not None:
            self.keys[slot].update(state="done", answer=answer)

    def perform(self, tool, args):
        if tool == "write":
            return write(self.place["files"], components(args["path"]), args["text"])
        if tool == "read":
            return read(self.place["files"], components(args["path"]))
        path = f"/{args['page']}" if tool == "get" else f"/count/{args['by']}"
        with urllib.request.urlopen(self.place["server"] + path, timeout=20) as answer:
            return answer.read().decode()


def within(name, of):
    return components(name)[: len(components(of))] == components(of)


def components(path):
    parts = path.split("/")
    if any(part in ("", ".", "..") or "\0" in part or len(part.encode()) > 255 for part in parts):
        raise Refused("bad path")
    return parts


def parsed(text):
    def once(pairs):
        if len({key for key, _ in pairs}) < len(pairs):
            raise Refused("duplicate key")
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=once)
    except ValueError:
        raise Refused("malformed") from None


def check_args(tool, args):
    kinds = TOOLS[tool]
    if not isinstance(args, dict) or set(args) != set(kinds):
        raise Refused("bad arguments")
    if any(type(args[name]) is not kind for name, kind in kinds.items()):
        raise Refused("bad argument")
    if tool == "count" and not 0 <= args["by"] < 1 << 40:
        raise Refused("bad argument")


def holds(rule, agent, tool, args):
    if rule.get("tool", tool) != tool or rule.get("agent", agent) != agent:
        return False
    test = rule.get("if")
    if test is None:
        return True
    value = args.get(test["argument"])
    for name, compare in (("is", lambda a, b: a == b), ("begins", str.startswith), ("above", lambda a, b: a > b)):
        if name in test:
            # What can't be compared never allows.
            return compare(value, test[name]) if type(value) is type(test[name]) else rule["then"] != "allow"
    return rule["then"] != "allow"


def opened(root, parts, flags):
    """A file below a folder, name by name: no link is followed, wherever it is put meanwhile."""
    here = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts[:-1]:
            there = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = there
        file = os.open(parts[-1], flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600, dir_fd=here)
    finally:
        os.close(here)
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        os.close(file)
        raise Refused("not a file of one name")
    return os.fdopen(file, "r+" if flags & os.O_RDWR else "r")


def write(root, parts, text):
    with opened(root, parts, os.O_RDWR | os.O_CREAT) as file:
        file.truncate()
        file.write(text)


def read(root, parts):
    with opened(root, parts, os.O_RDONLY) as file:
        return file.read()


def call(host, ask):
    with LOCK:
        answer, tool, args, slot = host.begin(ask)
    if tool is None:
        return answer
    answer = host.perform(tool, args)
    with LOCK:
        host.end(slot, answer)
    return answer


def answered(host, ask):
    try:
        if ask["do"] == "call":
            said = {"ok": call(host, ask)}
        elif ask["do"] in ("start", "reset", "advance", "grant", "revoke", "approve"):
            with LOCK:
                said = {"ok": getattr(host, ask["do"])(ask)}
        else:
            said = {"ok": None} if ask["do"] == "stop" else {"unsupported": True}
    except Refused as refused:
        said = {"refused": str(refused), "ask": refused.ask}
    except (OSError, ValueError, KeyError) as error:
        said = {"failed": type(error).__name__}
    with LOCK:
        print(json.dumps({"id": ask["id"], **said}), flush=True)


def main():
    host = Host()
    for line in sys.stdin:
        ask = json.loads(line)
        if ask["do"] == "call":
            threading.Thread(target=answered, args=(host, ask), daemon=True).start()
        else:
            answered(host, ask)
            if ask["do"] == "stop":
                return


if __name__ == "__main__":
    main()
