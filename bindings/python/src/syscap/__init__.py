"""A client of syscap: tools that run by a capability kernel's order, within tokens, budgets and a policy.

`join()` takes the session that `syscap ticket HOME --agent A --token T -- COMMAND` has given this process;
`syscap.aio` has the same names for asyncio. Functions become tools by `Session.tool`: a stub asks the
kernel, and the function runs only when the kernel orders it, with the kernel's arguments.
"""

from ._models import Tools
from ._sync import Session, Tool, connect, join, session
from .aio import Answer, Receipt, key_of
from .errors import (Asked, Deferred, Error, Failed, Forked, Lost, NoServer, NotAccepted, OverBudget, Refused,
                     ToolFailed, Version)

__all__ = [
    "Answer", "Asked", "Deferred", "Error", "Failed", "Forked", "Lost", "NoServer", "NotAccepted", "OverBudget",
    "Receipt", "Refused", "Session", "Tool", "ToolFailed", "Tools", "Version", "connect", "join", "key_of",
    "session",
]
