"""What a scan finds on a real cluster: `python benchmarks/diagnosis.py [--hard] [--save FILE] [NAME ...]`.

Stages the fault scenarios and the healthy ones of `tests/diagnosis/scenarios` on the running test cluster (`python -m
tests.cluster up`), many at once, scans each with `holmes scan` and prints how often the first incident names the exact
object and the changed field or value, how often somebody innocent is blamed, what a scan costs, and every miss. Exits
with 1 when fewer than 95 % are named, anybody innocent is blamed, or a scenario could not be judged.

`--hard` asks `holmes ask` the questions of the hard set instead, prints the figures of both halves and writes them with
the date to `diagnosis_scores.md` beside this file. It exits with 1 when fewer than 70 % of the first paragraphs name
the cause, or anybody innocent is blamed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.diagnosis.scenarios.answers import HALVES, figures_of, figures_table
from tests.diagnosis.scenarios.api import Api
from tests.diagnosis.scenarios.hard_set import answer_live, load_hard
from tests.diagnosis.scenarios.model import load_scenarios
from tests.diagnosis.scenarios.run import Run, describe_score, run_scenarios, running_cluster
from tests.diagnosis.scenarios.scoring import Score
from tests.diagnosis.scenarios.summary import Summary, load_scores, median_and_most, save_scores, summarize

PROMISED_SHARE = 0.95
PROMISED_HARD_SHARE = 0.70
SCORES = Path(__file__).with_name("diagnosis_scores.md")


def print_figures(columns: Sequence[tuple[str, Summary]]) -> None:
    """One column per group of scenarios."""
    rows: tuple[tuple[str, Callable[[Summary], str]], ...] = (
        ("fault scenarios", lambda one: f"{one.faults}"),
        ("  exact object named first", lambda one: share(one.culprit, one.faults)),
        ("  changed field or value named", lambda one: share(one.value, one.faults)),
        ("  both", lambda one: share(one.both, one.faults)),
        ("  an innocent object blamed", lambda one: share(one.blamed_in_faults, one.faults)),
        ("  further incidents beside the fault", lambda one: share(one.extra, one.faults)),
        ("healthy or noisy scenarios", lambda one: f"{one.healthy}"),
        ("  something blamed", lambda one: share(one.blamed_in_healthy, one.healthy)),
        ("did not show on the cluster", lambda one: f"{one.not_shown}"),
        ("scan failed", lambda one: f"{one.failed}"),
    )
    print(f"{'':<38}" + "".join(f"{title:>22}" for title, _ in columns))
    for title, cell in rows:
        print(f"{title:<38}" + "".join(f"{cell(summary):>22}" for _, summary in columns))


def share(count: int, total: int) -> str:
    return f"{count} = {100 * count / total:.1f} %" if total else "-"


def print_costs(scores: Sequence[Score]) -> None:
    for title, figures in (
        ("seconds per scan", median_and_most(scores, lambda one: one.seconds)),
        ("lists per scan", median_and_most(scores, lambda one: one.list_calls)),
        ("API calls per scan, with pages and logs", median_and_most(scores, lambda one: one.requests)),
    ):
        print(f"{title:<42} median {figures[0]:6.1f}   most {figures[1]:6.1f}")


def blind(scores: Sequence[Score]) -> tuple[Score, ...]:
    return tuple(each for each in scores if each.blind)


def ask_hard(names: Sequence[str], patience: float) -> int:
    """Ask the questions of both halves and keep the figures, unless only some scenarios are asked."""
    scores = answer_live([each for half in HALVES for each in load_hard(half, *names)], patience=patience)
    table = figures_table(scores)
    print(table)
    if not names:
        SCORES.write_text(
            "# Scores of the hard set\n\nWritten by `python benchmarks/diagnosis.py --hard`, which asks the built-in "
            "rules on a real cluster. The blind half was\nwritten before the rules. Its scenarios that blamed an "
            "innocent object were moved to\ndevelopment on 2026-11-29.\n\n"
            f"{datetime.now(UTC).date().isoformat()}:\n\n{table}\n",
            encoding="utf-8",
        )
    figures = figures_of(scores)
    innocents = figures.innocents_in_faults + figures.innocents_in_healthy
    return 0 if figures.top1 >= PROMISED_HARD_SHARE * figures.faults and not innocents else 1


def main() -> int:
    """Run, print, and say whether the promises are kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="scenarios, with wildcards; all by default")
    parser.add_argument("--user", choices=("admin", "viewer"), default="admin", help="who scans")
    parser.add_argument("--patience", type=float, default=1.0, help="multiplies every deadline, for a busy machine")
    parser.add_argument("--save", type=Path, help="write the scores into this file")
    parser.add_argument("--hard", action="store_true", help="ask the questions of the hard set")
    options = parser.parse_args()
    if options.hard:
        return ask_hard(options.names, options.patience)
    started = time.monotonic()
    with running_cluster() as cluster, Api(cluster.admin) as api:
        run = Run(cluster=cluster, api=api, user=options.user, patience=options.patience)
        known: list[Score] = []

        def keep(score: Score) -> None:
            known.append(score)
            print(describe_score(score).splitlines()[0], file=sys.stderr, flush=True)
            if options.save:
                save_scores(known, options.save)

        scores = run_scenarios(run, load_scenarios(*options.names), keep)
    summary = summarize(scores)
    columns = [("all", summary), ("blind", summarize(blind(scores)))]
    if not options.names and (first := load_scores()):
        columns.append(("blind, first run", summarize(blind(first))))
    print(f"{len(scores)} scenarios as {options.user} in {time.monotonic() - started:.0f} s\n")
    print_figures(columns)
    print()
    print_costs(scores)
    print("\n== Misses", *(describe_score(each) for each in scores if not each.right), sep="\n")
    kept = summary.right_share >= PROMISED_SHARE and not summary.blamed_share
    return 0 if kept and not summary.not_shown and not summary.failed else 1


if __name__ == "__main__":
    sys.exit(main())
