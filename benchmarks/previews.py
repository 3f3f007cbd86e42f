"""How often a preview shows the one planted fault: `python benchmarks/previews.py [CASES]`.

Prints for each family the recall of structured previews, of a plain head and of head and tail, all of the same budget
of 150, 300 and 1000 real tokens. Seeds start at 1000; the previews were built with seeds below 100. Exits with 1 when a
family is below 95 % at 300 tokens, or when a preview is above its budget.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.preview_corpora import FAMILIES, Case, Family, corpus
from holmes.previews import head_and_tail, prefix_that_fits, structured_preview
from holmes.tokens import TokenCounter

BUDGETS = (150, 300, 1_000)
FIRST_SEED = 1_000
TARGET = 0.95
TARGET_BUDGET = 300


@dataclass(slots=True, kw_only=True)
class Recall:
    """Faults found by budget and way of cutting, of `cases`."""

    family: Family
    cases: int = 0
    structured: dict[int, int] = field(default_factory=lambda: dict.fromkeys(BUDGETS, 0))
    head: dict[int, int] = field(default_factory=lambda: dict.fromkeys(BUDGETS, 0))
    both_ends: dict[int, int] = field(default_factory=lambda: dict.fromkeys(BUDGETS, 0))
    over_budget: int = 0
    megabytes: float = 0.0
    cpu_seconds: float = 0.0
    missed: list[str] = field(default_factory=list)

    def share(self, budget: int) -> float:
        """Recall of structured previews."""
        return self.structured[budget] / max(1, self.cases)


def measure(family: Family, seeds: range, counter: TokenCounter) -> Recall:
    """Recall over the cases of `family` with `seeds`."""
    recall = Recall(family=family)
    for seed in seeds:
        _measure_case(recall, corpus(family, seed), counter)
    return recall


def _measure_case(recall: Recall, case: Case, counter: TokenCounter) -> None:
    recall.cases += 1
    for budget in BUDGETS:
        started = time.process_time()
        preview = structured_preview(case.text, budget, counter)
        recall.cpu_seconds += time.process_time() - started
        recall.megabytes += len(case.text) / 1e6
        recall.over_budget += counter.count_text(preview.text) > budget
        found = case.found_in(preview.text)
        recall.structured[budget] += found
        if not found and budget == TARGET_BUDGET:
            recall.missed.append(f"{case.family} {case.seed}: {case.name}")
        recall.head[budget] += case.found_in(case.text[: prefix_that_fits(case.text, budget, counter)])
        recall.both_ends[budget] += case.found_in(head_and_tail(case.text, budget, counter).render())


def report(results: list[Recall]) -> str:
    """The results as a table."""
    lines = [f"{'family':8} {'cases':>5} {'tokens':>6} {'structured':>11} {'head':>6} {'head+tail':>10}"]
    for recall in results:
        for budget in BUDGETS:
            parts = (recall.structured[budget], recall.head[budget], recall.both_ends[budget])
            shares = [f"{part / max(1, recall.cases):.0%}" for part in parts]
            lines.append(
                f"{recall.family:8} {recall.cases:5} {budget:6} {shares[0]:>11} {shares[1]:>6} {shares[2]:>10}"
            )
        speed = 1000 * recall.cpu_seconds / max(0.001, recall.megabytes)
        lines.append(f"{'':8} {speed:.0f} ms of CPU per MB; above the budget: {recall.over_budget}")
    return "\n".join(lines)


def main() -> int:
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    counter = TokenCounter()
    results = [measure(family, range(FIRST_SEED, FIRST_SEED + cases), counter) for family in FAMILIES]
    print(report(results))
    for recall in results:
        for name in recall.missed:
            print(f"missed at {TARGET_BUDGET}: {name}")
    failed = [recall for recall in results if recall.share(TARGET_BUDGET) < TARGET or recall.over_budget]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
