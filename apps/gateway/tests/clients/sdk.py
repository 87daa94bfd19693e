"""Drives an MCP server with the official Python SDK.

    python sdk.py MODE -- COMMAND ARGS...

MODE is `auto` (the newest protocol revision, else the one before), `legacy` or a revision. Steps
come on standard input, one JSON object a line; for each, one JSON object goes to standard output.
"""

import asyncio
import json
import sys
import time
from collections import Counter

import anyio
from mcp import MCPError, StdioServerParameters
from mcp.client.client import Client
from mcp_types import PromptReference, ToolListChangedNotification


def plain(result):
    """A result as JSON, as it was on the wire."""
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


class Driver:
    def __init__(self, client):
        self.client = client
        self.changed = 0

    async def run(self, step):
        """One step; what the protocol calls an error is an observation like others."""
        try:
            return await getattr(self, step.pop("do"))(**step)
        except MCPError as error:
            error = error.error
            return {
                "protocol_error": error.code,
                "message": error.message,
                "data": error.data,
            }

    async def about(self):
        return {"protocol": self.client.protocol_version}

    async def command(self, words):
        """Runs a program beside, as an operator does."""
        ran = await anyio.run_process(words, check=False)
        return {"code": ran.returncode, "out": ran.stdout.decode(), "err": ran.stderr.decode()}

    async def ping(self):
        await self.client.send_ping()
        return {}

    async def tools(self):
        result = await self.client.list_tools(cache_mode="bypass")
        return {"tools": [plain(tool) for tool in result.tools]}

    async def follow(self, syscap, stderr, seconds=30):
        """Runs the command that the gateway prints for tools that are missing, as an operator
        would: as printed it shows what it would grant, without its last word it grants that.
        Waits until the client is told that its list changed."""
        before = plain(await self.client.list_tools(cache_mode="bypass"))
        told = before["_meta"]["dev.syscap/missing"]
        mark, printed = "that is shown after: ", await anyio.Path(stderr).read_text()
        line = next(line for line in printed.splitlines() if mark in line)
        command = f'syscap() {{ "{syscap}" "$@"; }}; {line.split(mark, 1)[1]}'
        heard = self.changed
        await anyio.run_process(["sh", "-c", command])
        await anyio.run_process(["sh", "-c", command.removesuffix(" --dry-run")])
        with anyio.fail_after(seconds):
            while self.changed == heard:
                await anyio.sleep(0.05)
        after = plain(await self.client.list_tools(cache_mode="bypass"))
        names = [[tool["name"] for tool in listed["tools"]] for listed in (before, after)]
        return {"told": told, "before": names[0], "after": names[1], "meta": after.get("_meta")}

    async def call(self, name, args=None, meta=None, timeout=30):
        progress = []

        async def on_progress(done, total, message):
            progress.append([done, total, message])

        result = await self.client.call_tool(
            name, args or {}, timeout, progress_callback=on_progress, meta=meta
        )
        return plain(result) | {"progress": progress}

    async def again(self, name, args, seconds):
        """Calls until it goes well, for so long at the most."""
        until = time.monotonic() + seconds
        while True:
            result = await self.run({"do": "call", "name": name, "args": args})
            if not result.get("isError") or time.monotonic() > until:
                return result
            await anyio.sleep(0.2)

    async def cancel(self, name, args, after=1):
        """Gives a call up once it has reported progress `after` times."""
        started = anyio.Event()
        seen = 0

        async def on_progress(*_):
            nonlocal seen
            seen += 1
            if seen >= after:
                started.set()

        async def wait():
            await self.client.call_tool(name, args, 60, progress_callback=on_progress)
            started.set()

        begun = time.monotonic()
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await started.wait()
            group.cancel_scope.cancel()
        return {"progress": seen, "seconds": time.monotonic() - begun}

    async def many(self, name, args, times, together):
        """Calls `times` times, `together` at once: how often each outcome came."""
        limit = anyio.Semaphore(together)
        outcomes = Counter()

        async def one(number):
            async with limit:
                step = {"do": "call", "name": name, "args": args | {"text": str(number)}}
                outcomes[outcome(await self.run(step), str(number))] += 1

        async with anyio.create_task_group() as group:
            for number in range(times):
                group.start_soon(one, number)
        return {"outcomes": dict(outcomes)}

    async def prompts(self):
        return plain(await self.client.list_prompts())

    async def prompt(self, name, args=None):
        return plain(await self.client.get_prompt(name, args))

    async def complete(self, name, argument, value):
        reference = PromptReference(type="ref/prompt", name=name)
        return plain(
            await self.client.complete(reference, {"name": argument, "value": value})
        )

    async def resources(self):
        return plain(await self.client.list_resources())

    async def templates(self):
        return plain(await self.client.list_resource_templates())

    async def read(self, uri):
        return plain(await self.client.read_resource(uri))


def outcome(result, sent):
    """In a word: `ok`, `wrong` (another call's answer), or the refusal's reason."""
    if "protocol_error" in result:
        return f"protocol_error {result['protocol_error']}"
    if result.get("isError"):
        refusal = result.get("_meta", {}).get("dev.syscap/refusal", {})
        return refusal.get("reason", "error")
    return "ok" if result["content"][0]["text"] == sent else "wrong"


async def main(mode, command):
    server = StdioServerParameters(command=command[0], args=command[1:])
    driver = Driver(None)

    async def hear(message):
        if isinstance(message, ToolListChangedNotification):
            driver.changed += 1

    async with Client(
        server, mode=mode, raise_exceptions=False, message_handler=hear
    ) as client:
        driver.client = client
        for line in sys.stdin:
            print(json.dumps(await driver.run(json.loads(line))), flush=True)


if __name__ == "__main__":
    at = sys.argv.index("--")
    asyncio.run(main(sys.argv[1], sys.argv[at + 1 :]))
