"""Whether a model is good enough: `python benchmarks/models.py --model X [--cases N] [--no-first-look] [CASE ...]`.

Plays recorded incidents through the whole loop, with the real prompts and tools, and needs no cluster. Prints how many
answers are right, how many are wrong with confidence (they state a cause or a healthy state that is not true), and how
many are honest (they say that the cause was not found, or the run has no answer), with turns, tokens, cost and time.

`--model` is a model as for `holmes ask`, with its key in the usual variable. `weak` plays the scripted models of
`tests/support/weak_models.py`, and `false` those of `tests/support/false_models.py`, each with every case. `--save`
writes one JSON line for each answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from holmes.settings.model import BUILTIN_MODEL
from holmes.values.errors import HolmesError
from holmes.values.model import ChatModel
from tests.support.false_models import FALSE_BEHAVIOURS, false_model
from tests.support.plays import Play, PlaySettings, opened, play
from tests.support.recorded_incidents import RecordedIncident, recorded_incidents
from tests.support.weak_models import BEHAVIOURS, weak_model

SCRIPTED = {
    "weak": tuple(partial(weak_model, name) for name in BEHAVIOURS),
    "false": tuple(partial(false_model, name) for name in FALSE_BEHAVIOURS),
}
DEFAULT_CASES = 60
DEFAULT_MAX_STEPS = 12


def chosen(patterns: Sequence[str], count: int) -> tuple[RecordedIncident, ...]:
    """The incidents with matching ids, or `count` incidents that are spread evenly over all. 0 selects all."""
    found = tuple(each for each in recorded_incidents() if any(fnmatchcase(each.id, one) for one in patterns or ("*",)))
    if patterns or not 0 < count < len(found):
        return found
    return tuple(found[index * len(found) // count] for index in range(count))


def play_settings(options: argparse.Namespace, *, first_look: bool) -> PlaySettings:
    """The settings of the shell, except for the cluster and the home folder, which are those of the recording."""
    variables = {name: value for name, value in os.environ.items() if name not in {"HOME", "KUBECONFIG"}}
    overrides: dict[str, object] = {"max_steps": options.max_steps, "first_look": first_look}
    if options.model in SCRIPTED:
        return PlaySettings(variables=variables, overrides={**overrides, "prompt": "short"}, scripted=True)
    overrides["model"] = options.model
    if options.model_list:
        overrides["model_list_file"] = str(options.model_list.resolve())
    return PlaySettings(variables=variables, overrides=overrides)


async def play_all(
    incidents: Sequence[RecordedIncident], settings: PlaySettings, models: Sequence[Callable[[], ChatModel] | None]
) -> list[Play]:
    """Play every incident with every model, one after the other. Prints one character for each answer."""
    plays = list[Play]()
    for incident in incidents:
        async with opened(incident, settings) as investigator:
            for model in models:
                plays.append(await play(investigator, incident, model))
                print(
                    {"right": ".", "honest": "-", "wrong": "x"}[plays[-1].outcome], end="", flush=True, file=sys.stderr
                )
    print(file=sys.stderr)
    return plays


def row(title: str, plays: Sequence[Play]) -> str:
    """One row of the table in docs/models.md. Turns, tokens, cost and seconds are per case."""
    count = len(plays)
    share = [sum(each.outcome == outcome for each in plays) for outcome in ("right", "wrong", "honest")]
    cells = [f"{number} ({number / count:.0%})" for number in share]
    tokens = statistics.mean(each.stats.total_tokens for each in plays)
    cost = statistics.mean(each.stats.cost for each in plays)
    unpriced = any(each.stats.unpriced_calls for each in plays)
    seconds = statistics.mean(each.seconds for each in plays)
    turns = statistics.mean(each.turns for each in plays)
    price = "unknown" if unpriced else f"${cost:.4f}"
    return f"| {title} | {count} | {' | '.join(cells)} | {turns:.1f} | {tokens:,.0f} | {price} | {seconds:.1f} |"


HEADER = (
    "| model | cases | right | wrong with confidence | honest | turns | tokens | cost | seconds |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


def save(path: Path, plays: Sequence[Play], title: str) -> None:
    """Append one JSON line for each play."""
    with path.open("a", encoding="utf-8") as file:
        for each in plays:
            verdict = each.verdict.kind if each.verdict else None
            line = {"run": title, "case": each.incident.id, "outcome": each.outcome, "verdict": verdict}
            figures = {"turns": each.turns, "tokens": each.stats.total_tokens, "seconds": round(each.seconds, 1)}
            file.write(json.dumps({**line, **figures, "text": each.text}) + "\n")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="CASE", help="ids of cases, with wildcards")
    parser.add_argument("--model", required=True, help="model name, or `weak` or `false` for scripted models")
    parser.add_argument("--model-list", type=Path, help="file that defines named models")
    parser.add_argument("--cases", type=int, default=DEFAULT_CASES, help="number of cases, 0 for all (default 60)")
    parser.add_argument("--max-steps", type=int, default=DEFAULT_MAX_STEPS, help="maximum number of turns (default 12)")
    parser.add_argument("--no-first-look", action="store_true", help="play only without the first look")
    parser.add_argument("--save", type=Path, help="append each answer to this file, as JSON lines")
    return parser.parse_args()


def first_looks(options: argparse.Namespace) -> tuple[bool, ...]:
    """Whether to play with the first look, and without it. The built-in rules are a first look."""
    if options.model == BUILTIN_MODEL:
        return (True,)
    return (False,) if options.no_first_look else (True, False)


async def run(options: argparse.Namespace) -> int:
    incidents = chosen(options.names, options.cases)
    models = SCRIPTED.get(options.model, (None,))
    print(HEADER)
    for first_look in first_looks(options):
        title = f"`{options.model}`{'' if first_look else ' without the first look'}"
        plays = await play_all(incidents, play_settings(options, first_look=first_look), models)
        print(row(title, plays), flush=True)
        if options.save:
            save(options.save, plays, title)
    return 0


def main() -> int:
    """Print the table."""
    options = parsed()
    try:
        return asyncio.run(run(options))
    except HolmesError as error:
        print(f"models: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
