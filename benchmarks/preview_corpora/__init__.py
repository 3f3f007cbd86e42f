"""Made-up but realistic Kubernetes output with one planted fault each, for `benchmarks/previews.py` and the tests.

`corpus(family, seed)` gives the same case for the same arguments on every machine. Seeds 0 to 99 are for building the
previews; recall is measured with seeds from 1000 on. The facts of a case are what a reader must see to know the fault:
the object and the value that is wrong, or the line that tells.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from benchmarks.preview_corpora.cases import FAMILIES, Case, Family, Made
from benchmarks.preview_corpora.events import make_events
from benchmarks.preview_corpora.logs import make_logs
from benchmarks.preview_corpora.object_texts import as_json, as_yaml
from benchmarks.preview_corpora.objects import make_objects
from benchmarks.preview_corpora.tables import make_table
from benchmarks.preview_corpora.words import APPS, NAMESPACES, USERS, pod_name

__all__ = ["APPS", "FAMILIES", "NAMESPACES", "USERS", "Case", "Family", "corpus", "pod_name"]


def corpus(family: Family, seed: int) -> Case:
    """The case of `family` with `seed`."""
    chance = random.Random(f"{family}-{seed}")  # noqa: S311  made-up data, not a secret
    makers: dict[Family, Callable[[random.Random], Made]] = {
        "logs": make_logs,
        "table": make_table,
        "json": lambda chance: make_objects(chance, as_json),
        "yaml": lambda chance: make_objects(chance, as_yaml),
        "events": make_events,
    }
    name, text, facts = makers[family](chance)
    return Case(family=family, seed=seed, name=name, text=text, facts=facts)
