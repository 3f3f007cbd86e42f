"""Adds up the figures of the processes of one server, for one scrape. Used by `metrics`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client.samples import Sample

_FIRST_ONE_COUNTS: Final = frozenset({"holmes_build_info", "process_start_time_seconds"})


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
    """Both are made by `Instruments`, so that their histograms have the same buckets, which stay together."""
    samples: dict[tuple[str, tuple[tuple[str, str], ...]], Sample] = {}
    for each in (*one.samples, *other.samples):
        key = (each.name, tuple(sorted(each.labels.items())))
        known = samples.get(key)
        samples[key] = each if known is None else known._replace(value=known.value + each.value)
    summed = Metric(one.name, one.documentation, one.type, one.unit)
    summed.samples = list(samples.values())
    return summed
