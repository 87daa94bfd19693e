"""Tokens, by the program `syscap`: this package signs nothing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping

from .errors import Error, NoServer


def issued(program: str, home: str | os.PathLike[str], agent: str, tools: Iterable[str],
           budget: Mapping[str, int], read: Iterable[str], write: Iterable[str]) -> str:
    """The id of a new token, which is on record. Raises Error with what the program says."""
    words = [program, "token", "issue", os.fspath(home), "--agent", agent]
    words += [word for tool in tools for word in ("--tool", tool)]
    words += [word for root in read for word in ("--read", root)]
    words += [word for root in write for word in ("--write", root)]
    words += [word for name, amount in budget.items() for word in ("--budget", f"{name}={amount}")]
    try:
        ran = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError as error:
        raise NoServer(f"{program} can't be started: {error}") from error
    if ran.returncode != 0:
        raise Error(ran.stderr.strip() or f"{program} ended with {ran.returncode}")
    return ran.stdout.strip()
