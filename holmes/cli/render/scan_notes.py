"""Words the limits of a scan report the same way for every format: an empty scope, and objects that are too young."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.cli.render.terminal import counted

if TYPE_CHECKING:
    from holmes.values.findings import DiagnosisReport

_MOST_NAMES: Final = 6


def place_of(report: DiagnosisReport) -> str:
    """Return the scope of the report, for example `in namespace shop` or `in the whole cluster eu`."""
    if not report.namespaces:
        return f"in the whole cluster {report.cluster}".rstrip()
    where = f"in {counted(len(report.namespaces), 'namespace')} {', '.join(report.namespaces)}"
    where = where.replace("1 namespace", "namespace")
    return f"{where} of cluster {report.cluster}" if report.cluster else where


def is_empty(report: DiagnosisReport) -> bool:
    """Return whether the scope contains no object that rules can judge, so that nothing is known to be healthy."""
    return report.objects == 0 and not report.incidents


def empty_note(report: DiagnosisReport) -> str:
    """Return a sentence about an empty scope, without a full stop."""
    if not report.complete:
        return f"Nothing was checked {place_of(report)}: 0 objects could be read"
    return f"Nothing to check {place_of(report)}: 0 objects found"


def young_note(report: DiagnosisReport) -> str:
    """Return a sentence about the objects that were left out because they may still be starting, or an empty text."""
    young = report.too_young
    if young is None:
        return ""
    names = [str(each) for each in young.objects[:_MOST_NAMES]]
    more = f" and {young.total - len(names):,} more" if young.total > len(names) else ""
    are = "is" if young.total == 1 else "are"
    why = f"{counted(young.total, 'object')} {are} younger than {young.grace_seconds:g} s and may still be starting"
    return f"{why}: {', '.join(names)}{more}; scan again later, or use --grace 0"


def notes_of(report: DiagnosisReport) -> tuple[str, ...]:
    """Return all sentences about the limits of the report."""
    empty = empty_note(report) if is_empty(report) else ""
    return tuple(note for note in (empty, young_note(report)) if note)
