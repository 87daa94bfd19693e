"""A subject with a fault: it stands before another one, and bends one thing of what that does.

    python3 bent.py FAULT COMMAND...

The faults are the classes below `Straight`. What must outlast a kill lies in the subject's folder.
"""

import json
import os
import queue
import shutil
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, "..", "adapters"), os.path.join(HERE, "..", "python")]

from cbor import CONTROL, Decoder
from host import arguments, perform


class Straight:
    """Bends nothing."""

    def __init__(self, command):
        self.behind = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.waiting, self.number, self.lock = {}, 0, threading.Lock()
        self.place, self.is_again = None, False
        # Grants in their order, calls that were begun and not answered, and what a token is now.
        self.grants, self.open, self.now = [], {}, {}
        threading.Thread(target=self.hear, daemon=True).start()

    def hear(self):
        for line in self.behind.stdout:
            said = json.loads(line)
            self.waiting.pop(said.pop("id")).put(said)
        # What is asked of one that has ended is never answered, but for its end.
        for answer in self.waiting.values():
            answer.put(None)

    def ask(self, request):
        """Asks the subject behind."""
        tokens = {key: self.now.get(request[key], request[key]) for key in ("token", "parent") if key in request}
        answer = queue.Queue()
        with self.lock:
            self.number += 1
            self.waiting[self.number] = answer
            self.behind.stdin.write(json.dumps({**request, **tokens, "id": self.number}) + "\n")
            self.behind.stdin.flush()
        said = answer.get()
        if said is None:
            os._exit(1)
        return said

    def keep(self, change):
        with self.lock:
            change()
            with open(os.path.join(self.place["folder"], "bent.json"), "w") as file:
                json.dump([self.place, self.grants, self.open], file)

    def reset(self, request):
        self.place, self.is_again, self.grants, self.open, self.now = request, False, [], {}, {}
        return self.ask(request)

    def start(self, request):
        said = self.ask(request)
        if "folder" in request:
            self.is_again = True
            with open(os.path.join(request["folder"], "bent.json")) as file:
                self.place, self.grants, self.open = json.load(file)
            self.again()
        return said

    def again(self):
        """When it has started in a place that was there."""

    def grant(self, request):
        said = self.ask(request)
        if "ok" in said:
            self.keep(lambda: self.grants.append([said["ok"]["token"], request]))
        return said

    def call(self, request):
        number = str(request["id"])
        self.keep(lambda: self.open.update({number: request}))
        said = self.make(request)
        self.keep(lambda: self.open.pop(number))
        return said

    def make(self, request):
        return self.ask(request)

    def act(self, request):
        """The effect of a call, and nothing else."""
        try:
            perform(self.place, request["tool"], arguments(request))
        except (KeyError, OSError, TypeError, ValueError):
            return {"refused": "it can't be done"}
        return {"ok": None}

    def serve(self):
        for line in sys.stdin:
            threading.Thread(target=self.answer, args=[json.loads(line)], daemon=True).start()
        os._exit(0)

    def answer(self, request):
        said = getattr(self, request["do"], self.ask)(request)
        if request["do"] == "stop":
            self.behind.wait()
        with self.lock:
            print(json.dumps({"id": request["id"], **said}), flush=True)
        if request["do"] == "stop":
            os._exit(0)


class ActsItself(Straight):
    """Calls leave no record."""

    make = Straight.act


class ActsFirst(Straight):
    """The record comes after the effect."""

    def make(self, request):
        self.act(request)
        return self.ask(request)


class SaysOk(Straight):
    """A tool that fails has done its work."""

    def make(self, request):
        said = self.ask(request)
        return {"ok": "done"} if said.get("refused") == "tool_failed" else said


class RefusesItself(Straight):
    """Refusals leave no record."""

    def make(self, request):
        is_good = request["tool"] == "count" and "args" in request and request["args"]["by"] <= 40
        return self.ask(request) if is_good else {"refused": "no"}


class RepeatsItself(Straight):
    """Answers that are given again leave no record."""

    said = {}

    def make(self, request):
        key = request.get("key")
        if key not in self.said:
            said = self.ask(request)
            if key is None:
                return said
            self.said[key] = said
        return self.said[key]


class AsksItself(Straight):
    """Questions and answers leave no record."""

    is_approved = False

    def make(self, request):
        if request["tool"] != "count" or request["args"]["by"] <= 40:
            return self.ask(request)
        return self.act(request) if self.is_approved else {"refused": "asks", "ask": "1"}

    def approve(self, request):
        self.is_approved = request["answer"] == "yes"
        return {"ok": None}


class GrantsItself(Straight):
    """Child tokens leave no record."""

    def grant(self, request):
        parent = request.get("parent")
        return {"ok": {"token": parent}} if parent else super().grant(request)


class RevokesNothing(Straight):
    """Revocations leave no record."""

    def revoke(self, request):
        return {"ok": None}


class ExportsTheBeginning(Straight):
    """The log that is handed on has lost all but its first record."""

    def export(self, request):
        said = self.ask(request)
        path = os.path.join(request["to"], "records.cborseq")
        with open(path, "rb") as file:
            records = file.read()
        decoder = Decoder(records, CONTROL)
        decoder.item()
        os.truncate(path, decoder.at)
        return said


class ExportsArguments(Straight):
    """What callers sent is handed on."""

    sent = ""

    def make(self, request):
        self.sent += json.dumps(request)
        return self.ask(request)

    def export(self, request):
        said = self.ask(request)
        with open(os.path.join(request["to"], "sent"), "w") as file:
            file.write(self.sent)
        return said


class RecordsEachRefusal(Straight):
    """A caller fills the disk: refusals do not come in a row, so each has a record of its own."""

    one = threading.Lock()

    def make(self, request):
        with self.one:
            said = self.ask(request)
            if "refused" in said and request["tool"] == "count":
                self.ask({**request, "args": {"by": 0}})
        return said


class Forgets(Straight):
    """After a start nothing is known but the tokens, and all is allowed."""

    def forget(self):
        shutil.rmtree(os.path.join(self.place["folder"], "home"))
        self.ask({**self.place, "do": "reset", "policy": [{"then": "allow"}]})
        for token, request in self.grants:
            self.now[token] = self.ask(request)["ok"]["token"]

    def again(self):
        self.forget()


class ForgetsAtRevocation(Forgets):
    """A revocation begins another log."""

    def again(self):
        pass

    def revoke(self, request):
        self.forget()
        return self.ask(request)


class FillsBudgets(Straight):
    """After a start each token has all of its budget."""

    def again(self):
        for token, request in self.grants:
            self.now[token] = self.ask(request)["ok"]["token"]


class ForgetsKeys(Straight):
    """After a start no key has been used."""

    def make(self, request):
        if self.is_again and "key" in request:
            request = {**request, "key": request["key"] + "-again"}
        return self.ask(request)


class MakesCallsAgain(Straight):
    """After a start calls are made again that were out when it ended."""

    def again(self):
        for request in self.open.values():
            self.ask({key: value for key, value in request.items() if key != "key"})


class ApprovesItself(Straight):
    """After a start what waits for persons is approved."""

    def make(self, request):
        said = self.ask(request)
        if self.is_again and said.get("ask"):
            for name in self.place["approvers"]["names"]:
                self.ask({"do": "approve", "ask": said["ask"], "answer": "yes", "by": name})
            said = self.ask(request)
        return said


def main():
    fault, *command = sys.argv[1:]
    globals()[fault](command).serve()


if __name__ == "__main__":
    main()
