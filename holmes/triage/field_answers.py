"""Answers what a field of an object is: "which kernel does node-1 run", "the reclaim policy of volume data"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from holmes.diagnosis.facts.evidence import has_secret_name, shown
from holmes.kubernetes.fields import text
from holmes.triage.cells import cell_of, has_cell
from holmes.triage.facts import fact, place_of, table_of
from holmes.triage.field_filters import KEY_PARTS
from holmes.triage.markdown import counted
from holmes.triage.not_read import asks_how_full
from holmes.triage.vocabulary import vocabulary, word_list, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook
    from holmes.values.json_types import JsonObject, JsonValue

_OUTER_KEYS: Final = frozenset({"spec", "template", "metadata"})
_MARKS: Final = frozenset({"labels", "annotations"})
_VARIABLES: Final = word_list("environment words")
_OTHERWISE: Final = frozenset({
    "status", "age", "created", "restarts", "node", "namespace", "replicas", "images", "address", "pods",
    "secret", "claim", "value", "version", "current", "last run",
})  # fmt: skip
"""Columns that other answers explain better, and words that are more often names."""
_JUDGING: Final = (
    "why", "trouble", "logs", "count", "permission", "changes", "when", "events", "health", "usage", "images",
    "placement", "negation", "exec", "port_forward", "how_to",
)  # fmt: skip
_ASKING: Final = word_list("interrogatives") | word_list("asking") | word_list("requests")
_STATING: Final = word_list("yes or no") | word_list("modals")
_OF: Final = word_list("of")
_ON: Final = word_list("locating")
_THEIR: Final = word_list("possessives")
_AND: Final = word_list("conjunctions")
_DETERMINERS: Final = word_list("determiners")
_PROBES: Final = frozenset({"liveness", "readiness", "startup"})
_VERSIONS: Final = frozenset({
    "version", "versions", "versionen", "kubelet", "kubelet-version", "kubernetes", "k8s", "node", "run", "runs",
    "running", "have", "has", "hat", "lauft", "tiene", "a", "s", "is", "its",
})  # fmt: skip
_LONGEST: Final = 4
_MOST_TOLD: Final = 4
_LEAST_PARTS: Final = 2


def asks_field(question: Question, subject: Subject) -> bool:
    """Return whether a question asks for a field of named objects, by a column of lists or by the field's own name."""
    states = not question.words or question.words[0] in _STATING
    nodes = bool(subject.objects) and all(each.kind == "Node" for each in subject.objects)
    judging = [each for each in _JUDGING if each != "images" or not nodes]  # "kubelet version", "os image"
    other = question.complains or question.comparisons or question.asks(*judging)
    if not subject.named or states or other or _asks_for_pods(question) or asks_how_full(question):
        return False
    led = _words_before_names(question, subject)
    belongs = bool(led) and led[-1] in (_OF | _ON if nodes else _OF)  # "reclaim policy of the volume data"
    opens = question.words[0] in _ASKING or question.asks("list") or not _ASKING.isdisjoint(question.words[:2])
    return (opens or belongs) and bool(_rows(question, subject.objects))


def _asks_for_pods(question: Question) -> bool:
    """Return whether pods are asked for, and a field is only their condition: "which pods of node-1 are in zone a"."""
    listed = {each.last + 1 for each in question.found if each.sense == "concept" and each.name == "list"}
    return any(each.name == "Pod" and each.sense == "kind" and each.first in listed for each in question.found)


def asks_condition(question: Question, subject: Subject) -> bool:
    """Return whether a question asks if a condition of named objects holds: "is node-1 under memory pressure"."""
    other = question.asks("why", "logs", "count", "when", "changes")
    asks = not _STATING.isdisjoint(question.words[:1]) and not other
    return asks and any(_conditions(question, each) for each in subject.objects)


def condition(asked: Asked) -> FirstLook:
    """Answer whether the conditions that the question names hold, with their reasons."""
    found = [(each, one) for each in asked.subject.objects for one in _conditions(asked.question, each)]
    told = "; ".join(
        f"{text(one, 'type')} of {each.ref} is {text(one, 'status')}"
        f"{f' ({reason})' if (reason := text(one, 'reason')) else ''}"
        for each, one in found[:_MOST_TOLD]
    )
    holds = [text(one, "status") == "True" for _, one in found]
    return fact(asked, f"{'Yes' if all(holds) else 'No' if not any(holds) else 'Partly'}: {told}.")


def _conditions(question: Question, each: ClusterObject) -> tuple[JsonObject, ...]:
    """Return the conditions whose types the question spells in at least two words."""
    return tuple(
        one for one in each.children("status", "conditions")
        if len(parts := [part.lower() for part in KEY_PARTS.findall(text(one, "type"))]) >= _LEAST_PARTS
        and _spells(question.words, parts)
    )  # fmt: skip


def _spells(words: tuple[str, ...], parts: list[str]) -> bool:
    return any(words[at : at + len(parts)] == tuple(parts) for at in range(len(words) - len(parts) + 1))


def field_answer(asked: Asked) -> FirstLook:
    """Return the values of the fields that the question names."""
    found = _rows(asked.question, asked.subject.objects)
    rows = [
        (str(each.ref), title, value or cell_of(asked.state, each, title) or "none") for each, title, value in found
    ]
    told = "; ".join(f"{name}: {title} {value}" for name, title, value in rows[:_MOST_TOLD])
    others = list(_other_columns(asked.question, {title for _, title, _ in rows}))
    if others:
        return fact(
            asked, f"{told}. Not answered: {', '.join(f'`{each}`' for each in others)}.", verdict="inconclusive"
        )
    table = table_of(("object", "field", "value"), rows) if len(rows) > _MOST_TOLD else None
    return fact(asked, f"{told}." if table is None else f"{counted(len(rows), 'field')} {place_of(asked)}.", table)


def _other_columns(question: Question, titles: set[str]) -> Iterator[str]:
    """Yield the words for columns beside the fields that were found: the size in "storage class and size of data"."""
    for each in question.found:
        said = question.words[each.first : each.last + 1]
        joined = _AND.intersection((*question.words[each.first - 1 : each.first], *question.words[each.last + 1 :][:1]))
        names = vocabulary().columns.get(said, ()) if each.sense == "concept" and joined else ()
        longer = (*question.words[max(0, each.first - 1) : each.first], *said) in vocabulary().columns  # "os image"
        if names and titles.isdisjoint(names) and not longer:
            yield " ".join(said)


def _words_before_names(question: Question, subject: Subject) -> tuple[str, ...]:
    names = {part for each in subject.named for part in (each.name, *words_of(each.name))}
    kinds = {at for each in question.found if each.sense == "kind" for at in range(each.first, each.last + 1)}
    first = next((at for at, word in enumerate(question.words) if word in names), 0)
    while first - 1 in kinds or (question.words[first - 1 : first] and question.words[first - 1] in _DETERMINERS):
        first -= 1
    return question.words[:first]


def _rows(question: Question, objects: tuple[ClusterObject, ...]) -> list[tuple[ClusterObject, str, str]]:
    """Return the object, the title and the value of each field. The value of a column is empty, see `cell_of`."""
    columns = [(each, title, "") for each in objects for title in dict.fromkeys(_columns(question, each))]
    if any(title != "version" for _, title, _ in columns):  # "container runtime version"
        columns = [one for one in columns if one[1] != "version"]
    return columns or [
        (each, path, shown(value))
        for each in objects
        if each.kind != "Secret"
        for path, value in _spelled_fields(question, each)
    ]


def _columns(question: Question, each: ClusterObject) -> Iterator[str]:
    kind = each.kind if not each.group else f"{each.kind}.{each.group}"
    for at in range(len(question.words)):
        for length in range(min(_LONGEST, len(question.words) - at), 0, -1):
            phrase = question.words[at : at + length]
            for name in vocabulary().columns.get(phrase, ()) if phrase != (each.name,) else ():
                plain = name not in _OTHERWISE or (
                    name == "version"
                    and each.kind == "Node"
                    and not question.found_word
                    and _of_kubelet(question, each)
                )
                if plain and (has_cell(each.kind, name) or has_cell(kind, name)):
                    yield name


def _of_kubelet(question: Question, node: ClusterObject) -> bool:
    """Return whether no other program is named: "postgres version on node-1" is not the version of the node."""
    kinds = {
        question.words[at] for each in question.found if each.sense == "kind" for at in range(each.first, each.last + 1)
    }
    known = kinds | _ASKING | _OF | _ON | _DETERMINERS | _STATING | _VERSIONS | {node.name, *words_of(node.name)}
    return known.issuperset(question.words)


def _spelled_fields(question: Question, each: ClusterObject) -> Iterator[tuple[str, JsonValue]]:
    """Yield the fields whose names the question spells in at least two words: "termination grace period seconds"."""
    words = tuple(word.removesuffix("s") for word in question.words)
    for part in ("spec", "status"):
        for path, value in fields(each.body.get(part, {}), part):
            key = [
                one.lower().removesuffix("s") for one in KEY_PARTS.findall(path.rpartition(".")[2].partition("[")[0])
            ]
            if len(key) > _LEAST_PARTS and key[-1] in ("second", "name"):
                key = key[:-1]
            if len(key) >= _LEAST_PARTS and _spells(words, key) and not isinstance(value, (dict, list)):
                yield path, value


def asks_for_owners(question: Question) -> bool:
    """Return whether workloads are asked for by what their settings name: "which workloads have web in their env"."""
    listed = question.found_word and question.asks("list") and question.asks("settings")
    return listed and not _THEIR.isdisjoint(question.words)


def settings(asked: Asked) -> FirstLook:
    """Return the fields of the named objects whose names match words of the question, for example `readinessProbe`."""
    asks_probe = not {"probe", "probes"}.isdisjoint(asked.question.words)
    probes = _PROBES & {*asked.question.words} or (_PROBES if asks_probe else frozenset())
    words = {spelling for word in (*asked.question.words, *probes) for spelling in (word, word.removesuffix("s"))}
    words |= {"port"} if "puerto" in words else set()
    words |= {"env", "from"} if words & _VARIABLES else set()
    others = {f"{each}Probe" for each in _PROBES - probes} if probes else set()
    rows = [
        (str(each.ref), path, shown(value))
        for each in asked.subject.objects
        if each.kind != "Secret"
        for path, value in fields(each.body.get("spec", {}), "spec")
        if _is_named(path, words) and not isinstance(value, (dict, list)) and others.isdisjoint(path.split("."))
    ]
    if not rows:
        about = asked.subject.objects[0].ref
        return fact(asked, f"The spec of {about} has no such field.")
    summary = (
        f"{rows[0][0]}: {rows[0][1]} is {rows[0][2]}."
        if len(rows) == 1
        else f"{counted(len(rows), 'field')} {place_of(asked)}."
    )
    return fact(asked, summary, table_of(("object", "field", "value"), rows) if len(rows) > 1 else None)


def fields(value: JsonValue, path: str) -> Iterator[tuple[str, JsonValue]]:
    """Yield each field below `value` with its path."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"{path}.{key}", "(not shown)" if has_secret_name(key) and isinstance(item, str) else item
            yield from fields(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            named = isinstance(item, dict) and "value" in item and isinstance(item.get("name"), str)
            if named:  # only the name shows whether the value is secret
                yield f"{path}[{index}].value", _named_value(cast("JsonObject", item))
            else:
                yield from fields(item, f"{path}[{index}]")


def _named_value(item: JsonObject) -> str:
    """Return an entry with a name and a value as `NAME=value`, so that masking recognises a secret by its name."""
    name = text(item, "name")
    return f"{name}={'(not shown)' if has_secret_name(name) else shown(item.get('value'))}"


def _is_named(path: str, words: set[str]) -> bool:
    """Return whether a key of the path consists of words of the question: `livenessProbe` of a probe's port."""
    keys = [key for key in path.split(".") if key not in _OUTER_KEYS]
    parts = [{part.lower().removesuffix("s") for part in KEY_PARTS.findall(key.partition("[")[0])} for key in keys]
    marked = any(key in _MARKS for key in keys) and not any(one & {"label", "annotation"} & words for one in parts)
    return not marked and any(one and one <= words for one in parts)
