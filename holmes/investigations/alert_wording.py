"""How alerts that belong together are called, and how bad they are. Used for incidents and investigations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.investigations.subjects import namespace_of, subject_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holmes.investigations.values import Alert

_RANKS: Final = {"critical": 4, "error": 3, "page": 3, "warning": 2, "info": 1, "none": 0}
_UNKNOWN_RANK: Final = 2
_MOST_SEVERITY_CHARACTERS: Final = 64
_MOST_TITLE_CHARACTERS: Final = 200


def worst_severity(alerts: Iterable[Alert]) -> str | None:
    """The worst of their severities as it was spelled; None when no alert has one."""
    severities = [alert.severity for alert in alerts if alert.severity]
    return max(severities, key=_rank)[:_MOST_SEVERITY_CHARACTERS] if severities else None


def alerts_title(alerts: Sequence[Alert]) -> str:
    """For example `KubePodCrashLooping: shop/checkout (3 alerts)`."""
    worst_first = sorted(alerts, key=lambda alert: -_rank(alert.severity))
    names = tuple(dict.fromkeys(_one_line(alert.name) for alert in worst_first))
    title = names[0] if names else "alert"
    if len(names) > 1:
        title += f" and {len(names) - 1} other" + ("s" if len(names) > 2 else "")
    if place := _place(alerts):
        title += f": {place}"
    return f"{title} ({len(alerts)} alerts)" if len(alerts) > 1 else title


def _place(alerts: Sequence[Alert]) -> str:
    """The object, or how many of them in which namespace."""
    paths = {subject.path for alert in alerts if (subject := subject_of(alert.labels))}
    namespaces = {namespace_of(alert.labels) for alert in alerts}
    if len(paths) == 1:
        return next(iter(paths))
    where = next(iter(namespaces)) if len(namespaces) == 1 else ""
    return f"{len(paths)} objects in {where}" if paths and where else f"{len(paths)} objects" if paths else where


def _rank(severity: str | None) -> int:
    return _RANKS.get(severity.lower(), _UNKNOWN_RANK) if severity else -1


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_MOST_TITLE_CHARACTERS]
