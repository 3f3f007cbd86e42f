"""Stages the hard set on the real cluster and asks `holmes ask`: `python -m tests.diagnosis.scenarios.hard_set`.

Each scenario has a question, which the built-in rules answer. Answers of the blind half are never printed, so that no
rule is adjusted to them; of its scenarios only the totals are known.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import yaml

from holmes.snapshot.server.serving import serve_snapshot
from holmes.toolsets.kubernetes_diagnosis.toolset import FIRST_LOOK, KubernetesDiagnosisToolset
from holmes.triage.answers import answer_text
from holmes.triage.conversation import SeenLook
from holmes.values.environment import Environment
from holmes.values.first_look import FIRST_LOOK_TOOL, FirstLook, look_from_yaml
from holmes.values.messages import ToolCallId
from holmes.values.tools import ToolInvocation
from tests.cluster.images import add_names
from tests.cluster.layout import Layout
from tests.diagnosis.scenarios import recording
from tests.diagnosis.scenarios.answers import (
    HALVES,
    AnswerScore,
    Half,
    describe_answer,
    figures_table,
    half_of,
    judge_answer,
    unanswered,
)
from tests.diagnosis.scenarios.api import Api
from tests.diagnosis.scenarios.conditions import DidNotShowError
from tests.diagnosis.scenarios.model import HARD, Places, Scenario, load_scenarios, replace_placeholders
from tests.diagnosis.scenarios.recording import record, recorded_names, unpack
from tests.diagnosis.scenarios.run import (
    AT_ONCE,
    Run,
    ScanFailedError,
    running_cluster,
    say,
)
from tests.diagnosis.scenarios.stage import make_places, staged

RECORDINGS: Final = recording.RECORDINGS / "hard"
SETTLE_SECONDS: Final = 62
"""The minimum age of a fault when the question is asked; more than the grace period of a scan."""


def load_hard(half: Half, *names: str) -> tuple[Scenario, ...]:
    """The scenarios of one half, or those with names that match a pattern."""
    return tuple(
        each
        for each in load_scenarios(folder=HARD / half)
        if not names or any(fnmatchcase(each.name, name) for name in names)
    )


def known_misses() -> Mapping[str, str]:
    """Scenarios of the development half that are not answered rightly yet, with the reason."""
    return yaml.safe_load((HARD / "known_misses.yaml").read_text(encoding="utf-8")) or {}


def question_of(scenario: Scenario, places: Places) -> tuple[str, str]:
    """Return the question, and the namespace of `--namespace` or an empty string."""
    namespace = next(iter(places.values())) if scenario.header.namespace else ""
    return replace_placeholders(scenario.header.question, places), namespace


def answer_staged(run: Run, scenario: Scenario, settle_seconds: float = SETTLE_SECONDS) -> AnswerScore:
    """Stage one scenario, ask its question and delete it."""
    places = make_places(scenario)
    with run.room.taken(scenario.header.room):
        try:
            with staged(scenario, run.api, places, patience=run.patience, settle_seconds=settle_seconds):
                if run.recordings is not None:
                    _record(run, scenario, places, run.recordings / half_of(scenario))
                return judge_answer(scenario, places, *_ask(run, *question_of(scenario, places)))
        except (DidNotShowError, ScanFailedError) as error:
            return unanswered(scenario, str(error))


def _record(run: Run, scenario: Scenario, places: Places, folder: Path) -> None:
    with run.scanning:
        record(scenario, places, folder, lambda *words: run.holmes("snapshot", "create", *words))


def _ask(run: Run, question: str, namespace: str) -> tuple[FirstLook, str]:
    with run.scanning, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "answer.json"
        options = [f"--namespace={namespace}"] if namespace else []
        run.holmes("ask", question, "-n", "--model=builtin/triage", f"--json-output-file={file}", *options)
        found = json.loads(file.read_text(encoding="utf-8"))
    looks = [each["result"] for each in found["tool_calls"] if each["tool_name"] == FIRST_LOOK_TOOL]
    return look_from_yaml(looks[-1].rpartition("\n[result ")[0] or looks[-1]), found["answer"]


def recorded(half: Half) -> tuple[Scenario, ...]:
    names = recorded_names(RECORDINGS / half)
    return tuple(each for each in load_hard(half) if each.name in names)


async def answer_recorded(scenario: Scenario, folder: Path) -> AnswerScore:
    """Ask the question of a scenario about its recording, which is unpacked into `folder`."""
    places = unpack(scenario.name, folder, RECORDINGS / half_of(scenario))
    question, namespace = question_of(scenario, places)
    async with serve_snapshot(folder) as server:
        toolset = KubernetesDiagnosisToolset(Environment.of({"KUBECONFIG": str(server.kubeconfig)}))
        arguments = {"question": question, **({"namespace": namespace} if namespace else {})}
        result = await toolset.call(ToolInvocation(call_id=ToolCallId("look"), tool=FIRST_LOOK, arguments=arguments))
    assert isinstance(result.data, str), result.error
    look = look_from_yaml(result.data)
    return judge_answer(scenario, places, look, answer_text(SeenLook(look=look, text=result.data)))


def answer_all(
    run: Run, scenarios: Sequence[Scenario], report: Callable[[AnswerScore], None] = lambda _: None
) -> list[AnswerScore]:
    """Return the scores; `report` receives each as soon as it is known."""
    add_names(Layout.from_environment(), frozenset(image for each in scenarios for image in each.images))
    slowest_first = sorted(scenarios, key=lambda each: -each.header.deadline_seconds)
    found: list[AnswerScore] = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in as_completed([pool.submit(answer_staged, run, each) for each in slowest_first]):
            found.append(done.result())
            report(found[-1])
    return found


def main() -> int:
    """Ask about the named scenarios, or all, and print the figures and the misses of the development half."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="scenarios, with wildcards; all by default")
    parser.add_argument("--half", choices=HALVES, help="only this half")
    parser.add_argument("--patience", type=float, default=1.0, help="multiply every deadline, for a busy machine")
    parser.add_argument("--record", type=Path, metavar="DIR", help="record each scenario below this folder")
    parser.add_argument("--recorded", action="store_true", help="ask about the recordings, without a cluster")
    options = parser.parse_args()
    started = time.monotonic()
    halves: tuple[Half, ...] = (options.half,) if options.half else HALVES
    scenarios = [each for half in halves for each in load_hard(half, *options.names)]
    if options.recorded:
        scores = asyncio.run(_answer_recordings([each for each in scenarios if each in recorded(half_of(each))]))
    else:
        scores = answer_live(scenarios, patience=options.patience, recordings=options.record)
    say(f"{figures_table(scores)}\n{len(scores)} scenarios in {time.monotonic() - started:.0f} s")
    return 0


async def _answer_recordings(scenarios: Sequence[Scenario]) -> list[AnswerScore]:
    scores: list[AnswerScore] = []
    for each in scenarios:
        with tempfile.TemporaryDirectory() as folder:
            scores.append(await answer_recorded(each, Path(folder)))
        say_answer(scores[-1])
    return scores


def answer_live(
    scenarios: Sequence[Scenario], *, patience: float = 1, recordings: Path | None = None
) -> list[AnswerScore]:
    """Stage the scenarios on the running cluster and ask their questions."""
    with running_cluster() as cluster, Api(cluster.admin) as api:
        run = Run(cluster=cluster, api=api, patience=patience, recordings=recordings)
        return answer_all(run, scenarios, say_answer)


def say_answer(score: AnswerScore) -> None:
    """Print the result. Of the blind half, only whether there is one."""
    hidden = f"{score.half} scenario {'not ' if score.error else ''}answered"
    say(describe_answer(score) if score.half == "development" else hidden)


if __name__ == "__main__":
    sys.exit(main())
