"""How long the tests are: `make test` runs a fixed share of the expensive cases, `make test-long` all of them.

`HOLMES_TESTS=long` selects the long form. Tests that exist only in the long form have the marker `long`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, TypeVar

Case = TypeVar("Case")
LONG: Final = os.environ.get("HOLMES_TESTS") == "long"


def count(*, long: int, short: int) -> int:
    """The number of examples, rounds or requests."""
    return long if LONG else short


def cases(of: Sequence[Case], every: int) -> Sequence[Case]:
    """All cases, or in the short form the first of each `every`."""
    return of if LONG else of[::every]
