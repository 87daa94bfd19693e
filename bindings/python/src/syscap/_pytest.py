"""The fixture `syscap_home`, for pytest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .errors import NoServer
from .testing import Home


@pytest.fixture
def syscap_home() -> Iterator[Home]:
    """A real server on a home of this test's own; skipped, saying why, where there is no `syscap`."""
    try:
        home = Home()
    except NoServer as error:
        pytest.skip(str(error))
    with home:
        yield home
