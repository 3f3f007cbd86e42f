"""Adds up the figures of the processes of one server, for one scrape. Used by `metrics`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client.samples import Sample

_FIRST_ONE_COUNTS: Final = frozenset({"holmes_build_info", "process_start_time_seconds", "process_max_fds"})


class MergedFigures(Collector):
    """`own` figures plus `others`: samples of the same name and labels become their sum."""

    def __init__(self, own: Iterable[Metric], others: Iterable[Metric]) -> None:
        self._own = own
        self._others = others

    def collect(self) -> Iterator[Metric]:
        """The families in the order of `own`, then those that only `others` have."""
        families: dict[str, Metric] = {}
        for each in (*self._own, *self._others):
            known = families.get(each.name)
            if known is None:
                families[each.name] = each
            elif each.name not in _FIRST_ONE_COUNTS:
                families[each.name] = _sum(known, each)
        yield from families.values()


def _sum(one: Metric, other: Metric) -> Metric:
    samples: dict[tuple[str, tuple[tuple[str, str], ...]], Sample] = {}
    for each in (*one.samples, *other.samples):
        key = (each.name, tuple(sorted(each.labels.items())))
        known = samples.get(key)
        samples[key] = each if known is None else known._replace(value=known.value + each.value)
    summed = Metric(one.name, one.documentation, one.type, one.unit)
    summed.samples = _with_their_series(samples.values())
    return summed


def _with_their_series(samples: Iterable[Sample]) -> list[Sample]:
    """In an order in which the samples of one histogram stand together, as the formats demand."""
    series: dict[tuple[tuple[str, str], ...], list[Sample]] = {}
    for each in samples:
        labels = tuple(sorted((name, value) for name, value in each.labels.items() if name != "le"))
        series.setdefault(labels, []).append(each)
    return [each for together in series.values() for each in together]
