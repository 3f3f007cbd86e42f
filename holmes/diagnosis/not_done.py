"""Rows of the catalogue that no rule recognises, with the reason. Written into `docs/rules.md` by `table`."""

from __future__ import annotations

from typing import Final

NOT_DONE: Final[dict[str, str]] = {
    "P19": "not a rule of its own: every other rule quotes the decisive line of a log that it asked for",
    "G03": "not a rule of its own: every incident says what was changed shortly before",
}
