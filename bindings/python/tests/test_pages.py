"""What the pages say runs: the examples of the adapters, and the README's size."""

import pathlib
import re
import subprocess
import sys
import os

import pytest

from conftest import ROOT, SOURCES

EXAMPLES = ROOT / "bindings/python/examples"
NEEDS = {"openai_agents": "agents", "pydantic_ai": "pydantic_ai", "langchain": "langchain"}


@pytest.mark.parametrize("name", sorted(NEEDS))
def test_example_runs_without_an_account(name, syscap_home, beside):
    pytest.importorskip(NEEDS[name], reason=f"{NEEDS[name]} is not installed")
    example = EXAMPLES / f"with_{name}.py"
    assert len(example.read_text().splitlines()) <= 40
    environment = os.environ | {"PYTHONPATH": str(SOURCES)}

    def run(token):
        words = [syscap_home.program, "ticket", syscap_home.path, "--agent", "a", "--token", token, "--offer",
                 "py.=read", "--", sys.executable, "-B", str(example)]
        return subprocess.run(words, capture_output=True, text=True, env=environment, timeout=60)
    # The first run puts the tool on record; a token grants it then.
    first = run(beside.token("a", ["echo"]))
    assert first.returncode == 0 and "not_granted" in first.stdout, first
    second = run(beside.token("a", ["py.look_up"]))
    assert second.returncode == 0 and "bee: an insect" in second.stdout, second
    assert syscap_home.run("verify").startswith("sound")


def test_readme_is_short():
    text = (ROOT / "bindings/python/README.md").read_text()
    code = re.search(r"```python\n(.*?)```", text, re.S).group(1)
    assert len([line for line in code.splitlines() if line]) <= 25


def test_page_names_what_there_is():
    """Each name of the package that the page has, and each line of code that it shows, is one."""
    import syscap
    page = (ROOT / "docs/python.md").read_text()
    for name in re.findall(r"`syscap\.(\w+)[`(]", page):
        assert hasattr(syscap, name) or (SOURCES / "syscap" / f"{name}.py").exists(), name
    for code in re.findall(r"```python\n(.*?)```", page, re.S):
        compile(code, "docs/python.md", "exec")
    assert pathlib.Path(SOURCES / "syscap/py.typed").exists()
