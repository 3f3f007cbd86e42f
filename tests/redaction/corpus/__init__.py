"""A corpus of secrets in many forms, and of texts that look like secrets.

`own/` was written with the engine in view, `blind/` without it. `tester/` contains attempts to bypass the engine.
Tokens in the files contain a mark, so that scanners of repositories ignore them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import yaml

PARTS: Final = ("own", "blind", "tester")
_MARK: Final = "\N{BROKEN BAR}"
_LOOK_ALIKES: Final = "look_alikes.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A text with `secrets` that must be masked, and text to `keep`."""

    id: str
    form_class: str
    text: str
    secrets: tuple[str, ...]
    keep: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAlike:
    """A text without a secret, and its expected form: unchanged except for escape sequences."""

    id: str
    text: str
    shown: str


@cache
def forms(part: str) -> tuple[Form, ...]:
    """The forms of one part of the corpus, by class."""
    return tuple(
        Form(
            id=str(entry["id"]),
            form_class=str(entry["class"]),
            text=_unmarked(entry["text"]),
            secrets=tuple(_unmarked(secret) for secret in entry["secrets"]),
            keep=tuple(_unmarked(kept) for kept in entry.get("keep") or ()),
        )
        for path in sorted(_folder(part).glob("*.yaml"))
        if path.name != _LOOK_ALIKES
        for entry in yaml.safe_load(path.read_text(encoding="utf-8"))
    )


@cache
def look_alikes(part: str) -> tuple[LookAlike, ...]:
    """The look-alikes of one part of the corpus."""
    path = _folder(part) / _LOOK_ALIKES
    entries = yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else []
    return tuple(
        LookAlike(
            id=str(entry["id"]), text=_unmarked(entry["text"]), shown=_unmarked(entry.get("shown") or entry["text"])
        )
        for entry in entries
    )


def _folder(part: str) -> Path:
    return Path(__file__).parent / part


def _unmarked(text: object) -> str:
    return str(text).replace(_MARK, "")
