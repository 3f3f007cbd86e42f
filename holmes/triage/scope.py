"""Which part of the cluster a question is about. Called by the plans.

A namespace that is named is checked to exist, and a word behind "in" is only one when it does.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from holmes.triage.lookups import DIAGNOSE_TOOL
from holmes.triage.markdown import code
from holmes.triage.objects import GET_TOOL, WHOLE_CLUSTER

if TYPE_CHECKING:
    from holmes.triage.lookups import Lookups
    from holmes.triage.question import Named, Question

_NEAREST = re.compile(r"nearest existing one is '([a-z0-9][a-z0-9-]{0,62})'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """`namespace` is `*` for the whole cluster; empty leaves it to the tools, which then take the whole cluster too.

    `names` are the names of the question without the namespace. `missing` is a namespace that was asked for and does
    not exist, `guess` a word that might have been one and is none, `nearest` are namespaces that exist in its place.
    """

    namespace: str
    names: tuple[Named, ...]
    guess: str = ""
    missing: str = ""
    nearest: tuple[str, ...] = ()

    @property
    def spoken(self) -> str:
        """For people: "in namespace `shop`"."""
        if self.namespace in ("", WHOLE_CLUSTER):
            return "in the whole cluster"
        return f"in namespace {code(self.namespace)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Existence:
    state: Literal["there", "missing", "not allowed", "unknown"]
    nearest: tuple[str, ...] = ()


def find_scope(lookups: Lookups, question: Question, *, by_diagnosis: bool = False) -> Scope:
    """The scope of `question`. Raises `Waiting`.

    `by_diagnosis` takes the word of the diagnosis, which is made anyway, for whether a namespace exists.
    """
    default = lookups.turn.default_namespace
    named = question.namespace or question.perhaps_namespace
    if named in ("", WHOLE_CLUSTER):
        return Scope(namespace=named or default, names=question.names)
    exists = _by_diagnosis if by_diagnosis and lookups.has(DIAGNOSE_TOOL) else _by_name
    found = exists(lookups, named)
    rest = tuple(replace(each, namespace="") for each in question.names if each.name != named or each.kind)
    # Who may not read namespaces is believed.
    believed = found.state == "not allowed" or (found.state == "unknown" and bool(question.namespace))
    if found.state == "there" or believed:
        return Scope(namespace=named, names=rest)
    if not question.namespace:
        return Scope(namespace=default, names=question.names, guess=named, nearest=found.nearest)
    return Scope(namespace=default or WHOLE_CLUSTER, names=rest, missing=named, nearest=found.nearest)


def _by_diagnosis(lookups: Lookups, name: str) -> _Existence:
    outcome = lookups.ask(DIAGNOSE_TOOL, namespace=name)
    if not outcome.failed:
        return _Existence(state="there")
    if "does not exist" not in outcome.text:
        return _Existence(state="unknown")
    nearest = _NEAREST.search(outcome.text)
    return _Existence(state="missing", nearest=(nearest[1],) if nearest is not None else ())


def _by_name(lookups: Lookups, name: str) -> _Existence:
    outcome = lookups.ask(GET_TOOL, kind="namespaces", name=name)
    if outcome.status == "success":
        return _Existence(state="there")
    if outcome.is_forbidden:
        return _Existence(state="not allowed")
    if "not found" not in outcome.text.lower() and outcome.status != "no_data":
        return _Existence(state="unknown")
    listed = lookups.ask(GET_TOOL, kind="namespaces")
    existing = [line.split()[0] for line in listed.text.splitlines()[1:] if line.strip()]
    if listed.status != "success":
        existing = []
    return _Existence(state="missing", nearest=tuple(difflib.get_close_matches(name, existing, n=3, cutoff=0.5)))
