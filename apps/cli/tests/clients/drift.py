"""Compares the tools that clients offer with the lists of `syscap hook`. A notice, no test.

    drift.py FOLDER NODE        FOLDER holds node_modules with the clients

Each client says hello to the scripted model (model.py) on loopback, with a HOME of its own.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

FOLDER, NODE = pathlib.Path(sys.argv[1]) / "node_modules", sys.argv[2]
HERE = pathlib.Path(__file__).parent
LISTS = HERE.parent.parent / "src" / "hook"


def offered(command, environment, settings=None):
    """The names of the tools that a client offers to its model."""
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        (place / "scripts.json").write_text('{"main": [["Hello."]]}')
        (place / "work").mkdir()
        for name, text in (settings or {}).items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)
        log = place / "log"
        words = [sys.executable, HERE / "model.py", place / "scripts.json", log]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as model:
            try:
                url = f"http://127.0.0.1:{model.stdout.readline().strip()}"
                own = {"HOME": str(place), "PATH": os.environ["PATH"]}
                own |= {name: value.replace("@URL@", url) for name, value in environment.items()}
                subprocess.run(
                    command, cwd=place / "work", env=own, stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120, check=True,
                )
            finally:
                model.kill()
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        return {name for line in lines for name in line["tools"] + line["deferred"]}


def compare(client, package, command, environment, settings=None):
    version = json.loads((FOLDER / package / "package.json").read_text())["version"]
    text = (LISTS / f"{client}.tsv").read_text()
    listed = {line.split("\t")[0] for line in text.splitlines() if not line.startswith("#")}
    names = offered(command, environment, settings)
    if not names:
        sys.exit(f"{package} {version} has offered no tools: the check itself has drifted")
    missing = sorted(names - listed)
    for name in missing:
        print(f"notice: {package} {version} offers {name}, which {client}.tsv does not have")
    print(f"{package} {version}: {len(names)} tools, {len(missing)} of them not listed")


claude = FOLDER / "@anthropic-ai/claude-code-linux-x64"
compare(
    "claude_code", "@anthropic-ai/claude-code-linux-x64", [claude / "claude", "-p", "Hello."],
    {
        "ANTHROPIC_API_KEY": "x", "ANTHROPIC_BASE_URL": "@URL@",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    },
)
gemini = FOLDER / "@google/gemini-cli/bundle/gemini.js"
compare(
    "gemini_cli", "@google/gemini-cli", [NODE, gemini, "--yolo", "-p", "Hello."],
    {
        "GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": "@URL@",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    },
    {".gemini/settings.json": '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'},
)
