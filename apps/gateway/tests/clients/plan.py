"""What the scripted models of the agent programs say, turn by turn.

A plan comes on standard input: a JSON list of `{"call": TOOL, "args": {..}}`. With `"when": TEXT`
a call is made only if TEXT was in an answer to an earlier one: a model that obeys what it reads.
"""

import json
import sys


class Plan:
    def __init__(self, steps):
        self.steps = list(steps)
        self.turns = []
        self.offered = []

    def next(self, offered):
        """The next call, or nothing at the end; `offered` are the tools that the model sees."""
        self.offered = sorted(offered)
        while self.steps:
            step = self.steps.pop(0)
            if "when" in step and not any(step["when"] in turn["answer"] for turn in self.turns):
                continue
            self.turns.append({"call": step["call"], "args": step["args"], "answer": ""})
            return step
        return None

    def answered(self, text):
        self.turns[-1]["answer"] = text

    def report(self, final):
        print(json.dumps({"offered": self.offered, "turns": self.turns, "final": final}))


def read():
    """The plan, and the server's command after `--`."""
    at = sys.argv.index("--")
    return Plan(json.load(sys.stdin)), sys.argv[at + 1 :]
