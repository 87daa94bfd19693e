"""A scripted model on loopback, for real clients: Anthropic's Messages API and Gemini's generateContent.

    model.py SCRIPTS LOG        prints its port, and serves until it is ended

SCRIPTS is a JSON file: {"main": [STEP, ..], NAME: [STEP, ..]}. A step is a list of blocks, each a text or
[NAME, INPUT], a use of a tool. The n-th answer of a conversation is the n-th step, and after the last one
a text. A conversation whose first message holds `script:NAME` follows that script; a sub-agent has its
own conversation. `@PORT@` in a script is the model's own port, where a page answers. LOG gets a line for each request: the tools that
it offers, by name, those that it names and does not load yet, and the last message.
"""

import http.server
import itertools
import json
import re
import sys
import threading

SCRIPTS, LOG = {}, open(sys.argv[2], "a")
USES = itertools.count(1)
LOCK = threading.Lock()


def step(texts, answers):
    """The next step of a conversation that begins with these texts and had so many answers."""
    named = re.findall(r"script:([a-z_]+)", texts)
    steps = SCRIPTS[named[-1] if named else "main"]
    return steps[answers] if answers < len(steps) else ["That is all."]


def note(tools, last, messages=()):
    with LOCK:
        line = {"tools": tools, "deferred": deferred(messages), "last": last}
        print(json.dumps(line), file=LOG, flush=True)


def deferred(messages):
    """The tools that Claude Code names without their schemas."""
    blocks = [b for m in messages for b in m["content"] if isinstance(m["content"], list)]
    text = "\n".join(block.get("text", "") for block in blocks)
    found = re.search(r"deferred tools are now available[^\n]*\n((?:[\w-]+\n)+)", text)
    return found.group(1).split() if found else []


def anthropic(body):
    """The blocks of an answer, in the form of the Messages API."""
    if not body.get("tools"):
        return [{"type": "text", "text": "A title"}]
    messages = body["messages"]
    note([tool["name"] for tool in body["tools"]], messages[-1]["content"], messages)
    texts = json.dumps(next(m["content"] for m in messages if m["role"] == "user"))
    blocks = []
    for block in step(texts, sum(m["role"] == "assistant" for m in messages)):
        if isinstance(block, str):
            blocks.append({"type": "text", "text": block})
        else:
            name, given = block
            use = f"toolu_{next(USES):04}"
            blocks.append({"type": "tool_use", "id": use, "name": name, "input": given})
    return blocks


def events(body, blocks, stop):
    """The same as server-sent events."""
    message = {
        "id": f"msg_{next(USES):04}", "type": "message", "role": "assistant", "content": [],
        "model": body.get("model", "m"), "stop_reason": None, "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    yield {"type": "message_start", "message": message}
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            begun, delta = dict(block, text=""), {"type": "text_delta", "text": block["text"]}
        else:
            begun = dict(block, input={})
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": begun}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": stop, "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


def gemini(body):
    """An answer in the form of generateContent."""
    declared = [d["name"] for t in body.get("tools", []) for d in t.get("functionDeclarations", [])]
    contents = body["contents"]
    note(declared, contents[-1])
    texts = json.dumps([c for c in contents if c["role"] == "user"][:2])
    blocks = step(texts, sum(c["role"] == "model" for c in contents)) if declared else ["{}"]
    parts = [
        {"text": block} if isinstance(block, str)
        else {"functionCall": {"name": block[0], "args": block[1]}}
        for block in blocks
    ]
    content = {"role": "model", "parts": parts}
    return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]}


class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send("application/json", b"{}")

    do_HEAD = do_GET

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        if "enerateContent" in self.path:
            answer = json.dumps(gemini(body))
            if "stream" in self.path:
                return self.send("text/event-stream", f"data: {answer}\n\n".encode())
            return self.send("application/json", answer.encode())
        if "ountTokens" in self.path or "count_tokens" in self.path:
            return self.send("application/json", b'{"input_tokens": 1, "totalTokens": 1}')
        if not self.path.split("?")[0].endswith("/v1/messages"):
            return self.send("application/json", b"{}")
        blocks = anthropic(body)
        stop = "tool_use" if any(b["type"] == "tool_use" for b in blocks) else "end_turn"
        if body.get("stream"):
            lines = [f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events(body, blocks, stop)]
            return self.send("text/event-stream", "".join(lines).encode())
        message = next(events(body, blocks, stop))["message"]
        answer = dict(message, content=blocks, stop_reason=stop)
        self.send("application/json", json.dumps(answer).encode())

    def send(self, kind, body):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def handle(self):
        try:
            super().handle()
        except ConnectionError:
            pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
SCRIPTS.update(json.loads(open(sys.argv[1]).read().replace("@PORT@", str(server.server_port))))
print(server.server_port, flush=True)
server.serve_forever()
