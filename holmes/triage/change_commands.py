"""Writes the kubectl command for a change that a person asks for. Holmes never runs it.

A change without a command in this module, or without its values in the question, has no command.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import children, text
from holmes.kubernetes.kinds import SCALED
from holmes.triage.filters import pod_spec
from holmes.triage.vocabulary import beginnings
from holmes.values.expressions import expression
from holmes.values.fixes import namespace_option, resource_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject

    _Builder: TypeAlias = Callable[[Question, ClusterObject], str]

_ROLLED: Final = ("Deployment", "StatefulSet", "DaemonSet")
_KEPT: Final = frozenset({
    "Namespace", "PersistentVolume", "PersistentVolumeClaim", "Secret", "CustomResourceDefinition", "Node",
    "StorageClass",
})  # fmt: skip
"""Kinds whose deletion loses data or much more than the object. No command is offered for it."""
_NUMBER_WORDS: Final = {
    "zero": "0", "null": "0", "cero": "0", "one": "1", "two": "2", "three": "3", "zwei": "2", "drei": "3", "dos": "2",
    "tres": "3", "deux": "2", "trois": "3",
}  # fmt: skip
_UNDONE: Final = ("cordon", "suspend", "labelling", "annotating")
"""Changes that a removal turns into their opposite: "remove the label"."""
_REPLICAS: Final = expression(
    rf"\b(?:to|auf|a|to exactly|replicas?=?|=|x)\s*(?P<to>\d{{1,4}}|{'|'.join(_NUMBER_WORDS)})\b"
    r"|\b(?P<of>\d{1,4})\s*(?:replicas?|repliken|replikas?|pods?|instan\w+)\b"
)
_AMOUNT: Final = expression(r"\b\d+(?:\.\d+)?\s?(?:[kmgt]i?b?|m|cores?|cpus?)?\b")
_QUANTITY: Final = expression(r"(?P<number>\d+(?:\.\d+)?)\s?(?P<unit>[kmgt]i?b?|m|cores?|cpus?)?$")
_IMAGE: Final = expression(r"(?<!\S)(?:[\w.-]+(?::\d+)?/)*[\w./-]+:[\w.-]+(?!\S)")
_REVISION: Final = expression(r"\brevision (\d{1,6})\b|\brev (\d{1,6})\b")
_SETTING: Final = expression(
    r"\b(?P<key>[A-Z][A-Z0-9_]{1,60})\b(?:\s?=\s?| (?:to|auf|a|à|en) )(?P<value>[\w.:/@-]{1,120})"
)


def change_command(question: Question, subject: Subject, objects: Sequence[ClusterObject]) -> str:
    """Return the command for the change of one of `objects` in the question, or an empty string."""
    plain, kinds = question.text, set(question.kinds)
    for named in subject.named:
        plain = plain.replace(named.name, " ")
    targets = sorted(objects, key=lambda each: each.kind not in kinds)
    for name, builder in _CHANGES.items():
        command = next(filter(None, (builder(question, each) for each in targets)), "")
        undone = name in _UNDONE and beginnings("deletion order").search(plain)
        if command and not undone and beginnings(name).search(plain):
            return command
    return ""


def _line(verb: str, each: ClusterObject, *more: str) -> str:
    return " ".join(filter(None, (f"kubectl {verb}", shlex.quote(resource_path(each.ref)), *more))) + namespace_option(
        each.ref
    )


def _restart(_question: Question, each: ClusterObject) -> str:
    return (
        _line("rollout restart", each) if each.kind in _ROLLED else _line("delete", each) if each.kind == "Pod" else ""
    )


def _scale(question: Question, each: ClusterObject) -> str:
    match = _REPLICAS.search(question.text)
    if match is None or each.kind not in SCALED:
        return ""
    number = match["of"] or _NUMBER_WORDS.get(match["to"], match["to"])
    return _line("scale", each, f"--replicas={number}")


def _delete(_question: Question, each: ClusterObject) -> str:
    return "" if each.kind in _KEPT else _line("delete", each)


def _of_node(verb: str, *options: str) -> _Builder:
    def command(_question: Question, each: ClusterObject) -> str:
        return " ".join((f"kubectl {verb}", shlex.quote(each.name), *options)) if each.kind == "Node" else ""

    return command


def _rollback(question: Question, each: ClusterObject) -> str:
    match = _REVISION.search(question.text)
    number = next(filter(None, match.groups()), "") if match else ""
    return _line("rollout undo", each, f"--to-revision={number}" if number else "") if each.kind in _ROLLED else ""


def _image(question: Question, each: ClusterObject) -> str:
    match = _IMAGE.search(question.text)
    container = _container(question, each)
    if match is None or each.kind not in (*_ROLLED, "Pod") or not container:
        return ""
    return _line("set image", each, shlex.quote(f"{container}={match[0]}"))


def _resources(question: Question, each: ClusterObject) -> str:
    """Return the command for a request or a limit. The last amount in the question is the new one."""
    amounts = [match[0] for match in _AMOUNT.finditer(question.text) if match[0] not in each.name]
    what = "memory" if beginnings("memory").search(question.spoken) else "cpu"
    amount = _quantity(amounts[-1], what) if amounts else ""
    if not amount or each.kind not in _ROLLED:
        return ""
    option = "--requests" if beginnings("request words").search(question.spoken) else "--limits"
    many = len(children(pod_spec(each), "containers")) > 1
    container = f"-c {shlex.quote(_container(question, each))}" if many else ""
    return _line("set resources", each, container, f"{option}={what}={amount}")


def _quantity(written: str, what: str) -> str:
    """Return an amount in the notation of Kubernetes: `1gi` is `1Gi`, and `512 mb` is `512Mi`."""
    match = _QUANTITY.match(written)
    if match is None:
        return ""
    unit = (match["unit"] or "").rstrip("b")
    if what == "cpu":
        return match["number"] + ("m" if unit == "m" else "")
    return f"{match['number']}{unit[0].upper()}i" if unit else ""


def _suspend(value: str) -> _Builder:
    def command(_question: Question, each: ClusterObject) -> str:
        if each.kind in ("CronJob", "Job"):
            return _line("patch", each, "-p", shlex.quote(f'{{"spec":{{"suspend":{value}}}}}'))
        verb = "pause" if value == "true" else "resume"
        return _line(f"rollout {verb}", each) if each.kind == "Deployment" else ""

    return command


def _stop(question: Question, each: ClusterObject) -> str:
    return _suspend("true")(question, each) if each.kind == "CronJob" else ""


def _trigger(_question: Question, each: ClusterObject) -> str:
    if each.kind != "CronJob":
        return ""
    name = shlex.quote(f"{each.name}-manual")
    return f"kubectl create job {name} --from=cronjob/{each.name}{namespace_option(each.ref)}"


def _label(verb: str) -> _Builder:
    def command(question: Question, each: ClusterObject) -> str:
        terms = " ".join(shlex.quote(str(term)) for term in question.labels if not term.negated)
        return _line(verb, each, terms) if terms else ""

    return command


def _set(question: Question, each: ClusterObject) -> str:
    """Return the command for `KEY to value` in a ConfigMap or in the environment of a workload."""
    match = _SETTING.search(question.written)
    if match is None:
        return _line("edit", each) if each.kind == "ConfigMap" else ""
    if each.kind == "ConfigMap":
        patch = f'{{"data":{{"{match["key"]}":"{match["value"]}"}}}}'
        return _line("patch", each, "--type=merge", "-p", shlex.quote(patch))
    return _line("set env", each, shlex.quote(f"{match['key']}={match['value']}")) if each.kind in _ROLLED else ""


def _container(question: Question, each: ClusterObject) -> str:
    names: Sequence[str] = [text(one, "name") for one in children(pod_spec(each), "containers")]
    return next((name for name in names if name in question.words), names[0] if names else "")


_CHANGES: Final[Mapping[str, _Builder]] = {
    "uncordon": _of_node("uncordon"),
    "cordon": _of_node("cordon"),
    "drain": _of_node("drain", "--ignore-daemonsets", "--delete-emptydir-data"),
    "rollback": _rollback,
    "restart": _restart,
    "resume": _suspend("false"),
    "suspend": _suspend("true"),
    "trigger": _trigger,
    "labelling": _label("label"),
    "annotating": _label("annotate"),
    "stopping": _stop,
    "new image": _image,
    "amounts of containers": _resources,
    "scaling order": _scale,
    "deletion order": _delete,
    "setting order": _set,
}
"""The changes with their words in the vocabulary, the most specific first."""
