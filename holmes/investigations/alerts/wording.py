"""How alerts that belong together are called, and how bad they are. Used for incidents and investigations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from holmes.investigations.alerts.subjects import namespace_of, subject_of
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holmes.investigations.records.values import Alert

_RANKS: Final = {"critical": 4, "error": 3, "page": 3, "warning": 2, "info": 1, "none": 0}
_UNKNOWN_RANK: Final = 2
_MOST_SEVERITY_CHARACTERS: Final = 64
_MOST_TITLE_CHARACTERS: Final = 200


class AlertFacts(NamedTuple):
    """What titles need to know of an alert. `place` is its object as people write it, empty without one."""

    name: str
    severity: str | None
    place: str
    namespace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherFacts:
    """The facts of many alerts together: so many, of these `kinds` (which have no place), in `places` different places.

    One of these is `place`; `shared` are those that the alerts beside them have, too.
    """

    count: int = 0
    kinds: tuple[AlertFacts, ...] = ()
    places: int = 0
    place: str = ""
    shared: frozenset[str] = frozenset()


NO_OTHER_FACTS: Final = OtherFacts()


def facts_of(alert: Alert) -> AlertFacts:
    """The facts of an alert."""
    subject = subject_of(alert.labels)
    return AlertFacts(alert.name, alert.severity, subject.path if subject else "", namespace_of(alert.labels))


def worst_severity(alerts: Iterable[AlertFacts]) -> str | None:
    """The worst of their severities as it was spelled; None when no alert has one."""
    severities = {alert.severity: None for alert in alerts if alert.severity}
    if not severities:
        return None
    return shortened(max(severities, key=_rank), _MOST_SEVERITY_CHARACTERS, mark="")


def alerts_title(alerts: Sequence[Alert], more: int = 0) -> str:
    """For example `KubePodCrashLooping: shop/checkout (3 alerts)`. There are so many `more` alerts."""
    return title_of([facts_of(alert) for alert in alerts], OtherFacts(count=more))


def title_of(alerts: Sequence[AlertFacts], others: OtherFacts = NO_OTHER_FACTS) -> str:
    """Like `alerts_title`, for `alerts` and `others` together. Of others without facts only the number is told."""
    kinds = dict.fromkeys((alert.name, alert.severity) for alert in (*others.kinds, *alerts))
    worst_first = sorted(kinds, key=lambda kind: -_rank(kind[1]))
    names = tuple(dict.fromkeys(_one_line(name) for name, _ in worst_first))
    title = names[0] if names else "alert"
    if len(names) > 1:
        title += f" and {len(names) - 1} other" + ("s" if len(names) > 2 else "")
    if place := "" if others.count and not others.kinds else _place(alerts, others):
        title += f": {place}"
    number = len(alerts) + others.count
    return f"{title} ({number} alerts)" if number > 1 else title


def _place(alerts: Sequence[AlertFacts], others: OtherFacts) -> str:
    """The object, or how many of them in which namespace."""
    paths = {alert.place for alert in alerts if alert.place} - others.shared
    namespaces = {alert.namespace for alert in (*others.kinds, *alerts)}
    number = others.places + len(paths)
    if number == 1:
        return next(iter(paths), others.place)
    where = next(iter(namespaces)) if len(namespaces) == 1 else ""
    return f"{number} objects in {where}" if number and where else f"{number} objects" if number else where


def _rank(severity: str | None) -> int:
    return _RANKS.get(severity.lower(), _UNKNOWN_RANK) if severity else -1


def _one_line(text: str) -> str:
    return shortened(" ".join(text.split()), _MOST_TITLE_CHARACTERS, mark="")
