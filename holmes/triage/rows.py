"""Rows of objects for inventory answers: one narrow jq call, read as tab-separated lines.

Called by the plans of inventory questions. What a user may not list in the whole cluster is tried in
the default namespace, and the answer says so.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from holmes.triage.citing import Source, source_of
from holmes.triage.markdown import code, counted, plain, sentence, table
from holmes.triage.matching import is_pod_of
from holmes.triage.objects import WHOLE_CLUSTER, locate
from holmes.triage.report import NO_LLM
from holmes.triage.verdicts import missing_namespace_text, missing_object_text, paragraphs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.triage.conversation import Outcome
    from holmes.triage.lookups import Lookups
    from holmes.triage.question import Named, Question
    from holmes.triage.scope import Scope
    from holmes.values.json_types import JsonValue

JQ_TOOL: Final = "kubectl_jq"
_MOST_ROWS_SHOWN: Final = 40
_MOST_NAMES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An inventory question with everything its plan needs."""

    lookups: Lookups
    question: Question
    scope: Scope

    @property
    def namespace(self) -> str:
        """Where to look: the namespace of the question, the user's default, or the whole cluster."""
        return self.scope.namespace or WHOLE_CLUSTER

    def call(self, tool: str, **arguments: JsonValue) -> tuple[Outcome, str]:
        """What `tool` gives in the scope, and where that was; in the default namespace if no more is allowed."""
        outcome = self.lookups.ask(tool, namespace=self.namespace, **arguments)
        if self.namespace == WHOLE_CLUSTER and outcome.is_forbidden:
            narrower = self.lookups.ask(tool, **arguments)
            if not narrower.failed:
                return narrower, "in the default namespace (the whole cluster may not be read)"
        return outcome, self.place

    @property
    def place(self) -> str:
        """For people: where was looked."""
        return "in the whole cluster" if self.namespace == WHOLE_CLUSTER else f"in namespace {code(self.namespace)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Cells of objects, one line each. `failure` is why there are none, empty when there just are none."""

    cells: tuple[tuple[str, ...], ...] = ()
    place: str = ""
    failure: str = ""
    source: Source = field(default_factory=Source)

    @property
    def marker(self) -> str:
        """The citation of all of them."""
        last = min(len(self.cells), _MOST_ROWS_SHOWN)
        return self.source.marker(1, last) if self.source.lines else self.source.marker(1)


def read_rows(asked: Asked, kinds: str, expression: str) -> Rows:
    """The rows that a jq expression over objects of `kinds` gives. Raises `Waiting`."""
    outcome, place = asked.call(JQ_TOOL, kind=kinds, expression=expression)
    if outcome.failed:
        return Rows(failure=outcome.reason, place=place)
    if outcome.status != "success":
        return Rows(place=place)
    cells = tuple(tuple(line.split("\t")) for line in outcome.text.splitlines() if "\t" in line)
    return Rows(cells=_closest(cells, wanted_names(asked)), place=place, source=source_of(outcome))


def _closest(cells: tuple[tuple[str, ...], ...], names: Sequence[Named]) -> tuple[tuple[str, ...], ...]:
    """Only objects of these very names and their pods, if there are such: `cart` is not `cart-worker`."""
    wanted = {each.name for each in names}
    exact = tuple(row for row in cells if _is_of(row[0].rpartition("/")[2], wanted))
    return exact or cells


def _is_of(name: str, wanted: set[str]) -> bool:
    return any(name == each or is_pod_of(name, each) or is_pod_of(each, name) for each in wanted)


def name_filter(names: Sequence[Named]) -> str:
    """A jq condition that holds for the objects of these names and for what is named after them; `true` without names.

    Names are DNS names, and are written as JSON texts, so that nothing in a question becomes part of the program.
    """
    conditions = []
    for named in names[:_MOST_NAMES]:
        written = json.dumps(named.name)
        conditions.append(
            f'(. == {written} or startswith({written} + "-") or (. as $n | {written} | startswith($n + "-")))'
        )
        if named.prefix:
            conditions.append(f"startswith({written})")
    return f"(.metadata.name | {' or '.join(conditions)})" if conditions else "true"


def wanted_names(asked: Asked) -> tuple[Named, ...]:
    """The names of the question that mean an object: the certain ones if there are any."""
    names = [each for each in asked.scope.names if each.kind not in ("Namespace", "Node")]
    return tuple(each for each in names if each.certain) or tuple(names)


def rows_answer(asked: Asked, rows: Rows, noun: str, header: Sequence[str], lead: str = "") -> str:
    """A table of `rows` with what it is about; or that there is nothing, or why it could not be read."""
    if rows.failure:
        return failed_answer(asked, noun, rows.failure)
    if not rows.cells:
        return nothing_answer(asked, noun, rows.place)
    shown = rows.cells[:_MOST_ROWS_SHOWN]
    left = len(rows.cells) - len(shown)
    more = f"\n\n... and {counted(left, 'more row')}." if left else ""
    about = lead or f"{counted(len(rows.cells), noun)} {rows.place}:"
    return answer(asked, about, f"{table(header, shown)}{more}", rows.marker.strip() and f"Source:{rows.marker}")


def failed_answer(asked: Asked, what: str, reason: str) -> str:
    """That something could not be looked up, and why."""
    return answer(asked, f"**The {plain(what)} could not be looked up {asked.place}**: {sentence(plain(reason))}")


def nothing_answer(asked: Asked, noun: str, place: str) -> str:
    """That there is nothing of the kind; for a name that does not exist, what is called nearly so."""
    names = wanted_names(asked)
    if names:
        located = locate(asked.lookups, names, asked.scope.namespace)
        if located.state != "found":
            return answer(asked, missing_object_text(located, asked.scope))
        said = ", ".join(code(str(ref)) for ref in located.objects[:3])
        return answer(asked, f"No {noun} was found for {said} {place}.")
    return answer(asked, f"No {noun} was found {place}.")


def answer(asked: Asked, *parts: str) -> str:
    """The parts of an answer, with what is always said."""
    return paragraphs(missing_namespace_text(asked.scope), *parts, NO_LLM)
