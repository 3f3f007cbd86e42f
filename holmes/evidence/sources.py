"""Determines the command or tool call that produced a result, and whether the result is complete.

If a command has unknown options, its result is treated as incomplete, because a filtered list does not prove absence.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holmes.evidence.words import lexicon
from holmes.values.expressions import expression
from holmes.values.on_demand import called

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.values.json_types import JsonValue
    from holmes.values.messages import ToolCall

_WORD = expression(r"'[^'\n]*'|\"[^\"\n]*\"|\S+")
_WITH_VALUE: Final = frozenset({"-n", "--namespace", "-o", "--output", "--context", "--kubeconfig", "--sort-by"})
_WITHOUT_VALUE: Final = frozenset({"-A", "--all-namespaces", "--no-headers", "--show-labels", "--show-kind"})
_SELECTORS: Final = frozenset({"-l", "--selector", "--field-selector"})
_VERBS: Final = frozenset({"get", "describe", "logs", "top", "events"})
_PLAIN_ARGUMENTS: Final = frozenset({"kind", "name", "namespace", "output", "resource", "object", "what"})
_CUTS = expression(r"(?:head|tail|sed|awk|--limit|--tail|--since|--chunk-size)(?:=.*)?$")
_CUT = expression(
    r"showing \d|\d more (?:lines|items|rows)|truncated|\"?continue\"?: \"?[A-Za-z0-9]|remainingItemCount|omitted|"
    r"\(cut|output (?:was )?(?:cut|limited)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The source of a result, and which part of the cluster the result shows.

    `names` contains the names of the objects. `namespace` is `*` for all namespaces and None if unknown. `is_complete`
    means that only kind, name and namespace selected the content. `is_cut` means that a limit on lines or objects
    shortened the result. `filters` contains the selected labels or fields, and `|` represents an unknown filter.
    `words` contains all words of the command.
    """

    kind: str = ""
    names: frozenset[str] = frozenset()
    namespace: str | None = None
    is_complete: bool = False
    is_known: bool = False
    is_cut: bool = False
    filters: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()


UNKNOWN_SOURCE: Final = Source()


def canonical_kind(word: str) -> str:
    """Return the kind that a word names, or an empty string if it does not name a kind.

    `svc`, `Services` and `service.v1` all name the kind `service`.
    """
    tags = lexicon().tags([word.partition(".")[0]]) if word else ()
    return next((concept for category, concept in tags if category == "kind"), "")


def source_of(call: ToolCall) -> Source:
    """Determine the source of a result from its tool call."""
    call = called(call)
    try:
        arguments: JsonValue = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return UNKNOWN_SOURCE
    if not isinstance(arguments, dict):
        return UNKNOWN_SOURCE
    command = next((value for key, value in arguments.items() if key in ("command", "cmd")), None)
    if isinstance(command, str):
        return source_of_command(command)
    texts = {key: str(value) for key, value in arguments.items() if value not in (None, "", False)}
    prefix, _, name = texts.get("object", texts.get("name", "")).rpartition("/")
    kind = canonical_kind(prefix or texts.get("kind", texts.get("resource", texts.get("what", ""))))
    if "log" in call.name:
        kind = kind or "pod"
    return Source(
        kind=kind,
        names=frozenset({name} - {""}),
        namespace=texts.get("namespace"),
        is_complete=texts.keys() <= _PLAIN_ARGUMENTS and bool(kind) and "log" not in call.name,
        is_known=True,
        is_cut=bool(texts.keys() & {"tail", "limit", "head", "first_line", "max_lines"}),
        words=frozenset(texts.values()),
    )


def source_of_command(command: str) -> Source:
    """Determine the source of a result from its shell command."""
    words = [word.strip("'\"") for word in _WORD.findall(command[:2_000])]
    if words[:1] == ["helm"] and words[1:2] in (["list"], ["ls"]):
        return _helm_list(words)
    verb = next((index for index, word in enumerate(words[:8]) if word in _VERBS), -1)
    if verb < 0 or "kubectl" not in words[: verb + 1]:
        return Source(is_known=True, words=frozenset(words))
    is_complete, namespace, things = words[0] == "kubectl" and words[verb] in ("get", "describe", "top"), None, []
    position, container = 1, ""
    while position < len(words):
        word = words[position]
        flag, _, value = word.partition("=")
        if flag in _WITH_VALUE or (flag in ("-c", "--container") and words[verb] == "logs"):
            value = value or (words[position + 1] if position + 1 < len(words) else "")
            position += 0 if "=" in word else 1
            namespace = value if flag in ("-n", "--namespace") else namespace
            container = value if flag in ("-c", "--container") else container
        elif word in _WITHOUT_VALUE or re.fullmatch(r"-o(?:wide|yaml|json)", word):
            namespace = "*" if word in ("-A", "--all-namespaces") else namespace
        elif position != verb and (word.startswith("-") or not re.fullmatch(r"[\w./,:-]+", word)):
            is_complete = False
            if word[0] in "|;&>":
                break
        elif position > verb:
            things.append(word)
        position += 1
    kind, names = _kind_and_names(words[verb], things, container)
    return Source(
        kind=kind,
        names=frozenset(names - {""}),
        namespace=namespace,
        is_complete=is_complete and bool(kind),
        is_known=True,
        is_cut=any(_CUTS.match(word) for word in words),
        filters=frozenset((*_filters(words), *(names if len(names) > 1 and words[verb] == "get" else ()))),
        words=frozenset(words),
    )


def _filters(words: list[str]) -> Iterator[str]:
    """Yield the values of `-l` and `--field-selector`, and `|` for a pipe that may filter."""
    for index, word in enumerate(words):
        flag, sign, value = word.partition("=")
        if word == "|" and words[index + 1 : index + 2] not in (["jq"], ["wc"], ["sort"], ["cat"], ["tee"]):
            yield "|"
        elif flag in _SELECTORS:
            yield from (value if sign else " ".join(words[index + 1 : index + 2])).split(",")


def _kind_and_names(verb: str, things: list[str], container: str) -> tuple[str, set[str]]:
    """Return the kind and names after the verb: `pods web-1`, `pod/web-1`.

    For logs, these are the pod and its container.
    """
    prefix, _, name = things[0].rpartition("/") if things else ("", "", "")
    if verb == "logs":
        return canonical_kind(prefix) or "pod", {name, *things[1:2], container}
    if prefix:
        return canonical_kind(prefix), {each.rpartition("/")[2] for each in things}
    return canonical_kind(name), set(things[1:])


def _helm_list(words: list[str]) -> Source:
    spaces = [after for word, after in pairwise(words) if word in ("-n", "--namespace")]
    return Source(
        kind="release",
        namespace="*" if "-A" in words else next(iter(spaces), None),
        is_complete=set(words[2:]) <= {"-n", "--namespace", "-A", "-a", "--all", *spaces},
        is_known=True,
        words=frozenset(words),
    )


def says_it_was_cut(text: str) -> bool:
    """Return whether a result reports that it was shortened."""
    return bool(_CUT.search(text))
