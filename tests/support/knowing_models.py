"""A scripted model that knows the expected cause of a case, reads its objects, and cites what they show.

It stands for a model that is right where the rules are not: its evidence is real, and only its insight is scripted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.kinds import KINDS, WORKLOADS
from holmes.llm.scripted import ScriptedCall, ScriptedModel, ScriptedReply, scripted_call
from holmes.values.messages import ToolMessage
from holmes.values.tools import label_of, output_text
from tests.support.weak_models import name_of, turn_of

if TYPE_CHECKING:
    from holmes.values.model import ModelRequest
    from tests.triage.corpus.loading import Case

_RESULT: Final = re.compile(r"\[result ([0-9a-f]+)\]")
_QUOTED_CHARACTERS: Final = 160
_MOST_CULPRITS: Final = 2
_NAMES: Final = {kind.name: kind.resource for kind in KINDS}
_WITH_LOGS: Final = frozenset({*WORKLOADS, "Pod"})


def knowing_model(case: Case) -> ScriptedModel:
    """Return a model that blames the first expected culprit, with the words that the case expects."""
    culprits, says = case.expected.culprits, case.expected.says

    def reply(request: ModelRequest) -> ScriptedReply:
        if turn_of(request) == 0:
            return ScriptedReply(tool_calls=tuple(_calls(request, culprits)))
        found = list(_lines(request, culprits, says))
        kind, _, path = culprits[0].partition(" ")
        words = "; ".join(dict.fromkeys(f"`{quote}`" for quote, _ in found)) or "it is at fault"
        evidence = "\n".join(f"- `{quote}` {mark}" for quote, mark in found)
        missing = [each[0] for each in says if not any(one.casefold() in words.casefold() for one in each)]
        more = f" ({', '.join(missing)})" if missing else ""
        cause = f"**Root cause:** {kind} `{path.rpartition('/')[2]}`: {words}{more}."
        return ScriptedReply(text=f"{cause}\n\n**Evidence**\n{evidence}")

    return ScriptedModel(reply, name="scripted knowing")


def _calls(request: ModelRequest, culprits: tuple[str, ...]) -> Iterator[ScriptedCall]:
    for culprit in culprits[:_MOST_CULPRITS]:
        kind, _, path = culprit.partition(" ")
        namespace, _, name = path.rpartition("/")
        place = {"namespace": namespace} if namespace else {}
        yield scripted_call("kubectl_describe", kind=_NAMES.get(kind, kind.lower()), name=name, **place)
        if kind in _WITH_LOGS:
            yield scripted_call("kubernetes_logs", kind=kind, name=name, **place)
        if name != name_of(request):
            yield scripted_call("kubernetes_logs", kind="Deployment", name=name_of(request), **place)


def _lines(
    request: ModelRequest, culprits: tuple[str, ...], says: tuple[tuple[str, ...], ...]
) -> Iterator[tuple[str, str]]:
    """Yield the lines with the expected words, or else with the name of the culprit, as quotes and citations."""
    results = [each for each in request.messages if isinstance(each, ToolMessage) and each.status == "success"]
    name = culprits[0].rpartition("/")[2].rpartition(" ")[2]
    telling = [each for each in says if not any(text in name for text in each)]
    found = [line for each in telling if (line := _first(results, each)) is not None]
    other = _first(results, (name,))
    yield from dict.fromkeys(found or ([other] if other is not None else []))


def _first(results: list[ToolMessage], texts: tuple[str, ...]) -> tuple[str, str] | None:
    for result in results:
        label = _RESULT.search(label_of(result) or "")
        for number, line in enumerate(output_text(result).splitlines(), 1):
            text = next((each for each in texts if each.casefold() in line.casefold()), "")
            if label and text:
                return _around(line, line.casefold().index(text.casefold())), f"[[{label[1]}:{number}]]"
    return None


def _around(line: str, position: int) -> str:
    """Return the words of a line near a position."""
    start = line.rfind(" ", 0, max(0, position - _QUOTED_CHARACTERS // 2)) + 1
    end = line.find(" ", position + _QUOTED_CHARACTERS // 2)
    return line[start : end if end > 0 else None].replace("`", "").strip()
