"""Calls of a session, against a real server."""

import json
import os
import threading

import pytest

import syscap
from conftest import ROOT
from syscap._wire import VERSION


def test_call_gives_its_value_and_where_it_stands(syscap_home, beside):
    with syscap_home.session("a", tools=["echo", "fs.*"], workspace=True) as session:
        assert session.agent == "a"
        session.call("fs.write", path="a.txt", text="hello")
        answer = session.call("fs.read", {"path": "a.txt"})
        assert (answer.value["text"], answer.effect) == ("hello", "no_op")
        record = beside.log()[answer.receipt.outcome_seq]
        assert (record["kind"], record["leaf"]) == ("outcome", answer.receipt.outcome_leaf.hex())
        # What looks like a reference is data, unless it is said to be one.
        assert session.call("echo", value={"$ref": 7}).value == {"value": {"$ref": 7}}
        given = session.call("echo", {"value": {"$ref": {"record": answer.receipt.outcome_seq, "path": ["text"]}}},
                             refs=True)
        assert given.value == {"value": "hello"}
        assert session.left["calls"] == 996
        assert {tool["name"] for tool in session.tools()} >= {"echo", "fs_read"}
        assert session.tools().id_of("fs_read") == "fs.read"
        openai, anthropic = session.tools().openai()[0], session.tools().anthropic()[0]
        assert openai["function"]["name"] == anthropic["name"] == "echo"
        assert "additionalProperties" not in json.dumps(session.tools().gemini())
        assert session.tools().mcp()[0]["inputSchema"] == anthropic["input_schema"]
    assert syscap_home.run("verify").startswith("sound")


def test_refusals_say_what_would_be_taken(syscap_home, beside):
    with syscap_home.session("a", tools=["fs.read", "echo"], workspace=True, budget={"calls": 3}) as session:
        with pytest.raises(syscap.Refused) as refused:
            session.call("fs.read", path="../x")
        error = refused.value
        assert (error.reason, error.field, error.retry) == ("bad_path", "path", "fix")
        assert beside.log()[error.record]["kind"] == "refusal"
        assert syscap_home.path not in error.for_model and "bad_path" in error.for_model
        with pytest.raises(syscap.Failed) as failed:
            session.call("fs.read", path="none.txt")
        assert (failed.value.reason, failed.value.effect) == ("not_found", "no_op")
        with pytest.raises(syscap.OverBudget) as spent:
            for _ in range(4):
                session.call("echo", value=1)
        assert (spent.value.field, spent.value.allowed) == ("calls", "0")


def test_what_can_not_be_said_is_not_sent(syscap_home, beside):
    with syscap_home.session("a", tools=["echo"]) as session:
        before = len(beside.log())
        for value in (float("nan"), 1 << 64, "\ud800", {1: 2}, "x" * 1_200_000):
            with pytest.raises(ValueError):
                session.call("echo", value=value)
        assert len(beside.log()) == before
        assert session.call("echo", value=1).value == {"value": 1}
    with pytest.raises(syscap.Error, match="closed"):
        session.call("echo", value=1)


def test_key_makes_a_call_once(syscap_home, beside):
    with syscap_home.session("a", tools=["fs.write"], workspace=True) as session:
        first = session.call("fs.write", path="a", text="1", key="t1.c0")
        again = session.call("fs.write", path="a", text="1", key="t1.c0")
        assert (again.value, again.effect) == (first.value, "no_op") and beside.kinds().count("intent") == 1
        with pytest.raises(syscap.Refused) as refused:
            session.call("fs.write", path="b", text="1", key="t1.c0")
        assert refused.value.reason == "key_reused"


def test_person_is_waited_for(syscap_home, beside):
    beside.asking("fs.write")
    with syscap_home.session("a", tools=["fs.write"], workspace=True) as session:
        def write():
            return session.call("fs.write", path="a", text="x")

        with pytest.raises(syscap.Asked) as asked:
            write()
        request = asked.value.request
        assert session.wait(request, 0) == ("waiting", None)
        answers = threading.Timer(0.2, syscap_home.run, ["approvals", "approve", str(request)])
        answers.start()
        assert asked.value.wait(30)
        assert write().effect == "committed"
        answers.join()
        with pytest.raises(syscap.Asked) as asked:
            write()
        syscap_home.run("approvals", "deny", str(asked.value.request), "--because", "not now")
        assert session.wait(asked.value.request, 30) == ("denied", "not now")
        assert not asked.value.wait(0)


def test_contract_is_kept(syscap_home, beside):
    """As the library in Rust keeps it: answer, reason and kinds of records of each call."""
    contract = json.loads((ROOT / "bindings/contract/calls.json").read_text())
    beside.policy(contract["policy"])
    import base64

    def value(given):
        if isinstance(given, dict) and list(given) == ["$bytes"]:
            return base64.b64decode(given["$bytes"])
        if isinstance(given, dict):
            return {key: value(one) for key, one in given.items()}
        return [value(one) for one in given] if isinstance(given, list) else given

    def shown(given):
        if isinstance(given, bytes):
            return {"$bytes": base64.b64encode(given).decode()}
        if isinstance(given, dict) and list(given) in (["$bytes"], ["$ref"], ["$lit"]):
            return {"$lit": given}
        if isinstance(given, dict):
            return {key: shown(one) for key, one in given.items()}
        return [shown(one) for one in given] if isinstance(given, list) else given

    with syscap_home.session("a", tools=contract["tools"], workspace=True) as session:
        before = len(beside.log())
        for line in contract["calls"]:
            call, wanted = line["call"], line["answer"]
            try:
                if call["args"] is None:
                    # No arguments at all is an empty map here; this is what the map's place holds.
                    answer = session._run(session._session._call(call["tool"], None, None, 0))
                else:
                    answer = session.call(call["tool"], value(call["args"]), key=call.get("key"), refs=True)
            except syscap.Failed as error:
                assert wanted["status"] == "error", call
                assert (error.reason, error.effect) == (wanted["error"]["reason"], wanted["tx_outcome"]), call
            except syscap.Refused as error:
                assert wanted["status"] != "ok", call
                assert (error.reason, error.retry) == (wanted["error"]["reason"], wanted["error"]["retry"]), call
                assert error.field == wanted["error"].get("field"), call
            else:
                assert wanted["status"] == "ok", (call, answer)
                assert (shown(answer.value), answer.effect) == (wanted["result"], wanted["tx_outcome"]), call
        kinds = [kind for kind in beside.kinds()[before:] if kind not in ("boot", "session", "shutdown", "refusals")]
    assert kinds == [kind for line in contract["calls"] for kind in line["records"]]


def test_fork_takes_a_session_of_its_own(beside):
    code = """
        import os, syscap
        session = syscap.join()
        session.call("echo", value=1)
        child = os.fork()
        if child == 0:
            try:
                session.call("echo", value=2)
                print("taken", flush=True)
            except syscap.Forked:
                own = syscap.join()
                print(own.call("echo", value=3).value["value"], flush=True)
                own.close()
            os._exit(0)
        os.waitpid(child, 0)
        print(session.call("echo", value=4).value["value"], flush=True)
        session.close()
    """
    program = beside.program(beside.token("a", ["echo"]), code)
    assert program.communicate(timeout=60)[0].split() == ["3", "4"]
    assert program.returncode == 0


def test_session_that_nobody_closes_ends_with_its_program(beside):
    code = """
        import syscap
        session = syscap.join()
        print(session.call("echo", value=1).value["value"])
    """
    import subprocess
    program = beside.program(beside.token("a", ["echo"]), code, stderr=subprocess.PIPE)
    out, err = program.communicate(timeout=60)
    assert (out, err, program.returncode) == ("1\n", "", 0)


def test_nobody_there_is_said(syscap_home, tmp_path, monkeypatch):
    monkeypatch.delenv("SYSCAP_LANE", raising=False)
    read, write = os.pipe()
    for descriptor in (read, 999):
        with pytest.raises(syscap.NoServer):
            syscap.join(descriptor)
    os.close(read)
    os.close(write)
    with pytest.raises(syscap.NoServer):
        syscap.connect(command=["/bin/true"])
    with pytest.raises(syscap.NoServer):
        syscap.connect(command=[str(tmp_path / "none")])
    with pytest.raises(ValueError):
        syscap.connect(syscap_home.path)
    with pytest.raises(syscap.Error, match="token|tool"):
        syscap_home.session("a", tools=["no.such"])


def test_another_version_is_said(tmp_path):
    other = tmp_path / "other.py"
    other.write_text("import sys, time\nsys.stdout.buffer.write(b'C' + bytes(32) + bytes([0, 0, 0, 6, 0x84, 3, 0x18, "
                     "0x6a, 9, 9]))\nsys.stdout.flush()\nsys.stdin.read()\n")
    import sys
    with pytest.raises(syscap.Version, match=f"9 to 9.*{VERSION}"):
        syscap.connect(command=[sys.executable, str(other)])


LOST = """
    import sys, syscap
    session = syscap.join()
    print("ready", flush=True)
    for line in sys.stdin:
        key = line.strip() or None
        try:
            print(session.call("fs.write", path="f" + (key or "-"), text="x", key=key).effect, flush=True)
        except syscap.Lost:
            print("lost", flush=True)
"""


def test_lost_server_is_dialled_again_and_nothing_runs_twice(beside):
    """The server is killed between calls; what has a key is sent again by itself."""
    token = beside.token("a", ["fs.write"], "--read", "workspace", "--write", "workspace")
    program = beside.program(token, LOST)
    said = iter(program.stdout.readline, "")

    def asks(key):
        program.stdin.write(f"{key}\n")
        program.stdin.flush()
        return next(said).strip()

    assert next(said).strip() == "ready"
    assert asks("k1") == "committed"
    beside.home._server.kill()
    beside.home._server.wait()
    # The ticket's own command has another server begun; the first answer is given again.
    assert asks("k1") == "no_op"
    assert asks("k2") == "committed"
    program.stdin.close()
    assert program.wait(60) == 0
    intents = [record for record in beside.log() if record["kind"] == "intent"]
    assert len(intents) == 2, "k1 once and k2 once"
