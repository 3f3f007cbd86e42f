"""Reads the health of a custom resource from its status.

A condition type has a polarity: `Ready` is bad when it is False, `Degraded` when it is True. Types with an unknown
polarity are ignored, because the resource may work. Kinds that follow no convention are in `custom_table`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.custom_table import HEALTHS, values_at
from holmes.diagnosis.facts.custom_words import gist, specificity
from holmes.diagnosis.facts.evidence import edited_at
from holmes.kubernetes.fields import duration, moment, text, written
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from holmes.diagnosis.facts.custom_table import Health, KindRow
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, Severity
    from holmes.values.json_types import JsonObject, JsonValue

_SUMMARIES: Final = ("Ready", "Available", "Healthy")
_GOOD: Final[dict[str, Severity]] = {
    "Ready": "critical", "Available": "critical", "Healthy": "critical", "Programmed": "critical",
    "Accepted": "critical", "Established": "critical", "Installed": "critical", "Succeeded": "warning",
    "Synced": "warning", "Reconciled": "warning", "ResolvedRefs": "warning", "Valid": "warning",
}  # fmt: skip
"""Condition types that are False on failure, with the severity of the failure."""
_GOOD_ENDINGS: Final = expression(r"(?:Ready|Healthy|Synchronized|Succeeded)$")
"""Condition types that are False on failure, unless a condition for the whole object is True."""
_BAD: Final[dict[str, Severity]] = {"Failed": "critical", "Error": "critical", "Stalled": "critical"}
"""Condition types that are True on failure, with the severity of the failure."""
_BAD_ENDINGS: Final = expression(
    r"(?:Error|Errors|Failed|Failing|Failure|Failures|Degraded|Stalled|Pressure|Conflict|NotReady|Unhealthy|"
    r"Unavailable|Unreachable)$"
)
_HARMLESS: Final = expression(r"^(?!NotReady)(?:No|Not|Ignored?|Recovered|Without)(?=[A-Z])")
_SUSPENDED: Final = expression(r"(?:^|[a-z/])(?:Suspended|Paused|Hibernat\w+|hibernation)$|^Stopped$")
"""Condition types that are True while the controller leaves the object alone on purpose."""

_BY_DESIGN: Final = expression(
    r"complete|succeeded|finished|suspend|paus|disabled|inactive|stopped|hibernat|scaledtozero|superseded|vminotexists|"
    r"cancel",
    re.IGNORECASE,
)
_DEFINITE: Final = expression(r"fail|error|invalid|notfound|missing|denied|forbidden|unauthorized", re.IGNORECASE)
_NOT_YET: Final = expression(r"notfound|missing", re.IGNORECASE)
"""Reasons of a failure that are usual in the first minutes, while the status of the condition is Unknown."""
_GOING_ON: Final = expression(
    r"creat|pending|progress|reconcil|provision|install|upgrad|updat|wait|initiali|starting|deploying", re.IGNORECASE
)
_STATES: Final = (
    "status.phase", "status.state", "status.health", "status.health.status", "status.status", "status.currentState",
    "status.lastState", "status.lastOperation.state",
)  # fmt: skip
_BAD_STATE: Final = expression(
    r"(?!no[nt]?[ _-]?(?:error|fail))[\w-]*(?:fail(?:ed|ure)?|error|errored|crash\w*)", re.IGNORECASE
)
_WEAK_STATE: Final = expression(r"degraded|unhealthy|broken|faulted|faulty|unavailable|invalid|lost|red", re.IGNORECASE)
_GOOD_STATE: Final = expression(
    r"ready|running|active|healthy|available|succeeded|success|completed?|ok|bound|online|synced|deployed|established|"
    r"operational|connected|valid|initialized|enabled|normal|green",
    re.IGNORECASE,
)
_SLOW_STATE: Final = expression(r"(?:creat|provision|initiali[sz]|install|start|deploy|bootstrapp?)ing", re.IGNORECASE)
_ERRORS: Final = (
    "status.lastError", "status.lastErrors", "status.error", "status.errorMessage", "status.failureMessage",
    "status.errors",
)  # fmt: skip
_NO_ERROR: Final = expression(r"\W*(?:none|nil|null|no error|0|ok|success|false)?\W*", re.IGNORECASE)
_MESSAGES: Final = ("status.message", "status.reason", "status.error", "status.errorMessage", "status.failureMessage")
_SEVERITY: Final[dict[Health, Severity]] = {"failed": "critical", "degraded": "warning", "progressing": "warning"}
_EXPERIMENT: Final = "Chaos experiment is running"
_LONGEST_STATE_CHARACTERS: Final = 40
_RENEWAL_SECONDS: Final = 86_400.0
"""A renewal can take some time, for example while its issuer limits the rate."""
_SOON_SECONDS: Final = 7 * 86_400.0
_LONG_GRACES: Final = 5
_PATIENT_GRACES: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """The state that a custom resource reports, if it is not healthy.

    `head` is the field or condition with its value, `words` explains it, and `note` is about its age. `intended` states
    that a person wants it, for example that the object is suspended.
    """

    title: str
    head: str
    words: str = ""
    note: str = ""
    severity: Severity
    proof: tuple[Evidence, ...]
    since: float | None = None
    intended: bool = False

    @property
    def why(self) -> str:
        """The state with its explanation, as the part of a sentence."""
        told = ": ".join(filter(None, (self.head, self.words.rstrip("."))))
        return f"{told}; {self.note}" if self.note else told


def trouble_in_status(state: ClusterState, each: ClusterObject, row: KindRow) -> Trouble | None:
    """Return what the status reports, or None if it reports that the object is healthy or still starting."""
    health, told = _of_fields(state, each, row)
    if health in {"skipped", "suspended", "failed", "active"}:
        return told
    conditions = _conditions(each)
    held = next((_held(each, one) for one in conditions if _is_suspended(one)), None)
    if held is not None:
        return held
    judged = () if "*" in row.ignored else sorted(conditions, key=lambda one: text(one, "type") in _SUMMARIES)
    found = [trouble for one in judged if (trouble := _of_condition(state, each, one, row))]
    found = found or list(filter(None, (_not_renewed(state, each),)))
    found.sort(key=lambda one: one.severity != "critical")  # then the details, because they say more than a summary
    if found and told is not None:
        return replace(told, words=told.words or found[0].why, proof=(*told.proof, *found[0].proof))
    if found or row.fields:
        return _with_expiry(state, each, _with_most_specific(found, each)) if found else told
    return _of_convention(state, each)


def _with_most_specific(found: list[Trouble], each: ClusterObject) -> Trouble:
    """Return the most severe trouble with the words of the condition that says most."""
    first, best = found[0], max(found, key=lambda one: specificity(one.words, each))
    if specificity(best.words, each) <= specificity(first.words, each):
        return first
    return replace(first, head=best.head, words=best.words, proof=best.proof)


def _with_expiry(state: ClusterState, each: ClusterObject, told: Trouble) -> Trouble:
    """Return the trouble with the time when what the resource issued expired, which users of it notice first."""
    ends = moment(each.text("status", "notAfter"))
    expired = f"it expired at {written(ends)}" if ends and ends <= state.now else ""
    return replace(told, note=expired) if expired and expired not in told.words else told


def _not_renewed(state: ClusterState, each: ClusterObject) -> Trouble | None:
    """Return a failure if what the resource issues was to be renewed long ago, but still expires at its old time."""
    due, ends = moment(each.text("status", "renewalTime")), moment(each.text("status", "notAfter"))
    if not due or not ends or state.now - due < _RENEWAL_SECONDS:
        return None
    expired = ends <= state.now
    return Trouble(
        title=f"{each.kind} was not renewed",
        head=f"its renewal was due {duration(state.now - due)} ago",
        words=f"it expire{'d' if expired else 's'} at {written(ends)}",
        severity="critical" if ends - state.now < _SOON_SECONDS else "warning",
        proof=(evidence.field(each, "status", "renewalTime"), evidence.field(each, "status", "notAfter")),
        since=due,
    )


def of_generation(state: ClusterState, each: ClusterObject) -> Trouble | None:
    """Return a failure if the controller has not processed the latest change for a long time, otherwise None."""
    wanted, seen = each.integer("metadata", "generation"), each.at("status", "observedGeneration")
    lasted = state.now - edited_at(each)
    if not isinstance(seen, int) or not 0 < seen < wanted or lasted < _LONG_GRACES * state.patience_seconds:
        return None
    return Trouble(
        title=f"Controller has not processed the latest change to {each.kind}",
        head=f"its controller has observed generation {seen} of {wanted}, and the last change is {duration(lasted)} "
        "old",
        note="the controller is probably not running",
        severity="warning",
        proof=(evidence.field(each, "status", "observedGeneration"), evidence.field(each, "metadata", "generation")),
    )


def _conditions(each: ClusterObject) -> tuple[JsonObject, ...]:
    """Return the conditions of the status, which can also be a map from the type to the condition or its status."""
    found = each.at("status", "conditions")
    if not isinstance(found, dict):
        return each.children("status", "conditions")
    return tuple({"type": name, **_as_condition(value)} for name, value in found.items())


def _as_condition(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {"status": str(value).capitalize()}


def _is_suspended(condition: JsonObject) -> bool:
    return text(condition, "status") == "True" and _SUSPENDED.search(text(condition, "type")) is not None


def _held(each: ClusterObject, condition: JsonObject) -> Trouble:
    kind = text(condition, "type")
    return Trouble(
        title=f"{each.kind} is suspended",
        head=": ".join(filter(None, (f"{kind} is True", text(condition, "reason")))),
        words=text(condition, "message"),
        severity="info",
        proof=(evidence.value(each, f"status.conditions[type={kind}].status", "True"),),
        since=moment(text(condition, "lastTransitionTime")),
        intended=True,
    )


def _of_fields(state: ClusterState, each: ClusterObject, row: KindRow) -> tuple[Health, Trouble | None]:
    """Return the health that the fields in the table report, and the trouble if the object is not healthy."""
    told = [
        (HEALTHS.index(health), field.path, found)
        for field in row.fields
        for found in values_at(each.body, field.path)
        for health, pattern in field.values
        if pattern.fullmatch(found)
    ]
    if not told:
        return "healthy", None
    rank, path, found = min(told, key=lambda one: one[0])
    health, messages = HEALTHS[rank], row.messages or _MESSAGES
    made = HEALTHS.index("progressing") in {one[0] for one in told} and state.age_seconds(each) < _makes_seconds(state)
    if health in {"failed", "degraded"} and made:
        return "progressing", None
    if health in {"skipped", "healthy"} or (health == "progressing" and not _is_late(state, each, row.grace_seconds)):
        return health, None
    trouble = _of_state(each, path, found, _SEVERITY.get(health, "info"), messages)
    if health == "progressing":
        return health, _late(state, each, trouble, found)
    if health == "suspended":
        return health, replace(trouble, title=f"{each.kind} is suspended", intended=True)
    return health, replace(trouble, title=_EXPERIMENT, intended=True) if health == "active" else trouble


def _makes_seconds(state: ClusterState) -> float:
    """Return the age up to which an object that is still being made may be reported as unhealthy by its operator."""
    return 2 * _LONG_GRACES * state.patience_seconds


def _is_late(state: ClusterState, each: ClusterObject, grace_seconds: float | None = None) -> bool:
    """Return whether the object has been in progress for too long."""
    lasted = state.now - _changed_at(each)
    return lasted >= (_PATIENT_GRACES * state.patience_seconds if grace_seconds is None else grace_seconds)


def _changed_at(each: ClusterObject) -> float:
    """Return the time of the last recorded change, in seconds since the epoch."""
    conditions = [text(one, key) for one in _conditions(each) for key in ("lastTransitionTime", "lastUpdateTime")]
    times = [moment(one) for one in (*conditions, each.text("status", "health", "lastTransitionTime"))]
    return max((edited_at(each), *(one for one in times if one is not None)))


def _late(state: ClusterState, each: ClusterObject, trouble: Trouble, found: str) -> Trouble:
    lasted = duration(state.now - _changed_at(each))
    return replace(
        trouble,
        title=f"{each.kind} has been {found} for a long time",
        note=f"its last recorded change is {lasted} old",
    )


def _of_state(
    each: ClusterObject, path: str, found: str, severity: Severity, messages: tuple[str, ...] = _MESSAGES
) -> Trouble:
    told = [(place, gist("; ".join(values_at(each.body, place)))) for place in messages]
    told = [(place, words) for place, words in told if words and words != found][:1]
    is_word, field = len(found) <= _LONGEST_STATE_CHARACTERS, path.removeprefix("status.").replace(".*", "[]")
    return Trouble(
        title=f"{each.kind} has {field} {found}" if is_word else f"{each.kind} is not healthy",
        head=f"{field} is {found}",
        words=told[0][1] if told else "",
        severity=severity,
        proof=tuple(evidence.value(each, at.replace(".*", "[]"), value) for at, value in ((path, found), *told)),
    )


def _polarity(kind: str, row: KindRow) -> tuple[str, Severity] | None:
    """Return the status that means a failure, and its severity, or None if the type says nothing about failures."""
    if kind in row.ignored:
        return None
    for status, known in (("False", row.good), ("True", row.bad), ("False", _GOOD), ("True", _BAD)):
        if kind in known:
            return status, known[kind]
    if _HARMLESS.match(kind):
        return None
    if _BAD_ENDINGS.search(kind):
        return "True", "warning"
    return ("False", "warning") if _GOOD_ENDINGS.search(kind) else None


def reports_failure(condition: JsonObject, row: KindRow) -> bool:
    """Return whether a condition reports a failure, or may do so because the meaning of its type is unknown."""
    known = _polarity(text(condition, "type"), row)
    return text(condition, "status") in ({known[0], "Unknown"} if known is not None else {"False", "Unknown"})


def _of_condition(state: ClusterState, each: ClusterObject, condition: JsonObject, row: KindRow) -> Trouble | None:
    kind, status, reason = (text(condition, key) for key in ("type", "status", "reason"))
    bad, severity = _polarity(kind, row) or ("", "warning")
    partly = bad == "False" and status == "Degraded"
    unclear = status == "Unknown" and reason != "" and (kind in _SUMMARIES or kind in row.good)
    if not bad or not (status == bad or partly or unclear) or _is_harmless(each, condition, row):
        return None
    changed = moment(text(condition, "lastTransitionTime"))
    lasted = state.now - (changed if changed is not None else each.created)
    definite = _DEFINITE.search(reason) is not None and not (unclear and _NOT_YET.search(reason))
    going_on = not definite and (unclear or _GOING_ON.search(reason) is not None)
    if lasted < _patience_seconds(state, row, definite=definite, going_on=going_on):
        return None
    message = text(condition, "message") or _other_message(each, kind, row)
    path = f"status.conditions[type={kind}]"
    return Trouble(
        title=f"{each.kind} is {'not ' if status != 'True' else ''}{_words(kind)}",
        head=": ".join(filter(None, (f"{kind} is {status}", reason))),
        words=gist(message),
        severity="warning" if going_on or partly else severity,
        proof=tuple(
            evidence.value(each, f"{path}.{key}", condition[key])
            for key in ("message", "status", "reason")
            if condition.get(key)
        ),
        since=changed,
    )


def _is_harmless(each: ClusterObject, condition: JsonObject, row: KindRow) -> bool:
    """Return whether the condition is intended, information, or a detail of an object that is ready as a whole."""
    kind = text(condition, "type")
    if text(condition, "severity") == "Info":
        return True
    if kind in row.bad or (kind in row.good and kind not in _GOOD):
        return False
    detail = kind not in _GOOD and _GOOD_ENDINGS.search(kind) is not None and _is_ready(each)
    return detail or _BY_DESIGN.search(text(condition, "reason")) is not None


def _is_ready(each: ClusterObject) -> bool:
    conditions = _conditions(each)
    return any(text(one, "type") in _SUMMARIES and text(one, "status") == "True" for one in conditions)


def _patience_seconds(state: ClusterState, row: KindRow, *, definite: bool, going_on: bool) -> float:
    if going_on and row.grace_seconds is not None:
        return row.grace_seconds
    if definite:
        return state.grace_seconds
    return (_PATIENT_GRACES if going_on else _LONG_GRACES) * state.patience_seconds


def _other_message(each: ClusterObject, kind: str, row: KindRow) -> str:
    """Return the message of another failing condition, for a condition that has none."""
    for one in _conditions(each):
        bad = _polarity(text(one, "type"), row)
        if bad is not None and text(one, "type") != kind and text(one, "status") == bad[0] and text(one, "message"):
            return text(one, "message")
    return "; ".join(words for place in row.messages for words in values_at(each.body, place))


def _words(kind: str) -> str:
    named = {
        "Error": "in error",
        "Failed": "in a failed state",
        "Succeeded": "successful",
        "ReconcileError": "not reconciled",
        "NotReady": "not ready",
    }
    plain = kind.isalpha() and kind[1:].islower()
    return named.get(kind, kind.lower() if plain else f"in condition {kind}")


def _of_convention(state: ClusterState, each: ClusterObject) -> Trouble | None:
    """Return the failure that usual fields report, for kinds outside the table."""
    states = [(path, found) for path in _STATES if (found := each.text(*path.split(".")))]
    for path, found in states:
        if _BAD_STATE.fullmatch(found) or _WEAK_STATE.fullmatch(found):
            return _of_state(each, path, found, "critical" if _BAD_STATE.fullmatch(found) else "warning")
    if _is_ready(each) or any(_GOOD_STATE.fullmatch(found) for _, found in states):
        return None
    if state.now - edited_at(each) >= _LONG_GRACES * state.patience_seconds:
        for path in _ERRORS:
            found = "; ".join(values_at(each.body, path))
            if not _NO_ERROR.fullmatch(found):
                return replace(_of_state(each, path, found, "warning", ()), title=f"{each.kind} reports an error")
        if not _conditions(each) and each.at("status", "ready") is False:
            return replace(_of_state(each, "status.ready", "false", "warning"), title=f"{each.kind} is not ready")
    slow = [one for one in states if _SLOW_STATE.fullmatch(one[1])]
    if slow and _is_late(state, each):
        return _late(state, each, _of_state(each, *slow[0], "warning"), slow[0][1])
    return None
