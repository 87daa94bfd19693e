"""Functions as tools: a stub asks, and the function runs only by the kernel's order."""

import json
import threading

import pytest

import syscap


def known(home, *functions):
    """Puts functions on record, as a program does that is started for the first time."""
    with home.session("first", tools=["echo"], offer=["py.=read"]) as session:
        for name, effect, function in functions:
            session.tool(name, effect=effect)(function)
        session.offer()


def test_function_runs_after_its_intent_with_the_kernels_arguments(syscap_home, beside):
    seen = []

    def add(a: int, b: int = 2) -> int:
        "Adds."
        intents = [record for record in beside.log() if record["kind"] == "intent"]
        seen.append((a, b, len(intents), threading.current_thread().name))
        return a + b

    known(syscap_home, ("py.add", "read", add))
    with syscap_home.session("a", tools=["py.add"], offer=["py.=read"]) as session:
        tool = session.tool("py.add", effect="read")(add)
        assert tool(1) == 3 and tool.unguarded(1, 1) == 2
        # What was left out the kernel has filled in, and is what was judged.
        assert seen[0][:3] == (1, 2, 1)
        with pytest.raises(TypeError):
            tool("a", c=1)
        with pytest.raises(syscap.Refused) as refused:
            tool("a")
        assert refused.value.reason == "bad_argument" and len(seen) == 2
        # By its id, as a model's call is made.
        assert session.call("py.add", a=5).value == 7
        assert session.tools()[0]["schema"]["properties"]["a"] == {"type": "integer"}


def test_what_is_not_granted_does_not_run(syscap_home):
    ran = []

    def send(to: str) -> None:
        ran.append(to)

    known(syscap_home, ("py.send", "external_write", send))
    with syscap_home.session("a", tools=["echo"], offer=["py.=read"]) as session:
        with pytest.raises(syscap.Refused) as refused:
            session.tool("py.send")(send)("ada")
    assert (refused.value.reason, ran) == ("not_granted", [])


def test_person_approves_what_runs(syscap_home, beside):
    ran = []

    def send(to: str) -> str:
        ran.append(to)
        return "sent"

    known(syscap_home, ("py.send", "external_write", send))
    beside.asking("py.send")
    with syscap_home.session("a", tools=["py.send"], offer=["py.=read"]) as session:
        tool = session.tool("py.send")(send)
        with pytest.raises(syscap.Asked):
            tool(to="ada")
        assert ran == []

        waiting = [record["seq"] for record in beside.log() if record["kind"] == "ask"]
        thread = threading.Timer(0.3, syscap_home.run, ["approvals", "approve", str(waiting[-1])])
        thread.start()
        assert tool.when_approved(30, to="ada") == "sent"
        thread.join()
        assert ran == ["ada"]


def test_what_a_function_raises_is_the_tools_own_failure(syscap_home, beside):
    def fail(how: str) -> object:
        if how == "raise":
            raise LookupError("no such page")
        if how == "exit":
            raise SystemExit(3)
        return {"set": {1}, "nan": float("nan"), "deep": [how]}[how]

    known(syscap_home, ("py.fail", "local_write", fail))
    with syscap_home.session("a", tools=["py.fail"], offer=["py.=read"]) as session:
        tool = session.tool("py.fail", effect="local_write")(fail)
        for how, words in (("raise", "LookupError: no such page"), ("exit", "SystemExit: 3"), ("set", "ValueError"),
                           ("nan", "ValueError")):
            with pytest.raises(syscap.ToolFailed) as failed:
                tool(how)
            assert words in failed.value.output and failed.value.effect == "unknown"
        assert tool("deep") == ["deep"]
    assert syscap_home.run("verify").startswith("sound")


def test_changed_words_wait_for_an_operator(syscap_home):
    def look(n: int) -> int:
        "Looks."
        return n

    known(syscap_home, ("py.look", "read", look))
    look.__doc__ = "Looks, and sends it to me."
    with syscap_home.session("a", tools=["py.look"], offer=["py.=read"]) as session:
        with pytest.raises(syscap.NotAccepted, match="py.look is changed"):
            session.tool("py.look", effect="read")(look)(1)
        with pytest.raises(ValueError):
            session.tool("py.look", effect="read")(look)
        with pytest.raises(syscap.Refused):
            session.tool("other.look", effect="read")(look)(1)


def test_function_that_ends_the_program_is_on_record_as_unknown(syscap_home, beside):
    def quit(code: int) -> None: ...

    known(syscap_home, ("py.quit", "local_write", quit))
    token = beside.token("a", ["py.quit"])
    code = """
        import os, syscap
        session = syscap.join()
        @session.tool("py.quit", effect="local_write")
        def quit(code: int) -> None:
            os._exit(code)
        quit(7)
    """
    program = beside.program(token, code, "--offer", "py.=read")
    program.communicate(timeout=60)
    assert program.returncode == 7
    for _ in range(200):
        ended = [record for record in beside.log() if record["kind"] == "outcome"]
        if ended:
            break
    assert len(ended) == 1 and ended[0]["tx"] == "unknown", json.dumps(ended)


def test_threads_call_beside_each_other(syscap_home):
    def slow(n: int) -> int:
        threading.Event().wait(0.3)
        return n

    known(syscap_home, ("py.slow", "read", slow))
    with syscap_home.session("a", tools=["py.slow"], offer=["py.=read"]) as session:
        tool, found = session.tool("py.slow", effect="read")(slow), []
        threads = [threading.Thread(target=lambda n=n: found.append(tool(n))) for n in range(40)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    # More than the token has places: the rest waits here, and none is refused.
    assert sorted(found) == list(range(40))


@pytest.mark.parametrize("key", [None, "t1.c0"])
def test_server_that_is_killed_in_a_run_leaves_it_unknown_and_runs_it_once(syscap_home, beside, key):
    ran = []

    def act(n: int) -> int:
        ran.append(n)
        syscap_home._server.kill()
        syscap_home._server.wait()
        return n

    known(syscap_home, ("py.act", "local_write", act))
    with syscap_home.session("a", tools=["py.act", "echo"], offer=["py.=read"]) as session:
        tool = session.tool("py.act", effect="local_write")(act)
        with pytest.raises(syscap.Error) as lost:
            tool.answer({"n": 1}, key=key)
        if key is None:
            assert isinstance(lost.value, syscap.Lost)
        else:
            # Sent again: the next server knows that it began, and runs nothing.
            assert lost.value.reason == "outcome_unknown"
        assert ran == [1]
        # The session goes on with the next server.
        assert session.call("echo", value=2).value == {"value": 2}
    log = beside.log()
    closed = [record for record in log if record["kind"] == "recovery"]
    assert len([record for record in log if record["kind"] == "intent"]) == 2 and len(closed) == 1


def test_server_that_is_killed_between_calls_is_followed(syscap_home, beside):
    """Before a call, and once its answer is there: nothing is lost, nothing made twice."""
    with syscap_home.session("a", tools=["fs.write", "echo"], workspace=True) as session:
        session.call("fs.write", path="a", text="1")
        syscap_home._server.kill()
        syscap_home._server.wait()
        # Without a key too, once it is seen: nothing was out.
        while not session._session._connections[0].is_over:
            pass
        assert session.call("fs.write", path="b", text="2").effect == "committed"
    assert [record["kind"] for record in beside.log()].count("intent") == 2


def test_function_that_does_not_return_is_given_up(syscap_home, beside):
    go = threading.Event()

    def hang(n: int) -> int:
        go.wait(30)
        return n

    with syscap_home.session("first", tools=["echo"], offer=["py.=read"]) as session:
        session.tool("py.hang", effect="local_write", limit=0.3)(hang)
        session.offer()
    with syscap_home.session("a", tools=["py.hang", "echo"], offer=["py.=read"]) as session:
        tool = session.tool("py.hang", effect="local_write", limit=0.3)(hang)
        with pytest.raises(syscap.Failed) as failed:
            tool(1)
        assert (failed.value.reason, failed.value.effect) == ("timed_out", "unknown")
        assert session.call("echo", value=1).value == {"value": 1}
        go.set()


def test_argument_is_scoped_by_the_token(syscap_home, beside):
    seen = []

    def get(page: str) -> str:
        seen.append(page)
        return page

    with syscap_home.session("first", tools=["echo"], offer=["py."]) as session:
        session.tool("py.get", scopes={"page": "page"})(get)
        session.offer()
        with pytest.raises(ValueError):
            session.tool("py.other", scopes={"none": "page"})(get)
    beside.policy({"v": 1, "constraints": [
        {"id": "all", "effect": "allow", "on_fail": "block", "reason": "All.", "subject": None,
         "when": {"op": "all", "args": []}}]})
    token = beside.token("a", ["py.get"], "--scope", "page=home")
    with syscap.connect(syscap_home.path, agent="a", token=token, offer=["py."], program=syscap_home.program) as session:
        tool = session.tool("py.get", scopes={"page": "page"})(get)
        assert tool("home") == "home"
        for page in ("other", "home/", "HOME", "home "):
            with pytest.raises(syscap.Refused) as refused:
                tool(page)
            assert refused.value.reason == "out_of_scope", page
    assert seen == ["home"]
