"""Stages scenarios on the real cluster, scans and scores them: `python -m tests.diagnosis.scenarios.run`.

Many scenarios are on the cluster at once, each in namespaces of its own. A scenario that did not show its fault is
reported separately and not judged. The cluster must be running.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from holmes.values.findings import DiagnosisReport
from holmes.values.findings_json import report_from_json
from tests.cluster.errors import ClusterError
from tests.cluster.handle import Cluster, User
from tests.cluster.layout import Layout
from tests.cluster.lifecycle import describe, is_up
from tests.cluster.locks import share
from tests.diagnosis.fix_commands import refused_steps
from tests.diagnosis.scenarios.api import Api
from tests.diagnosis.scenarios.conditions import DidNotShowError
from tests.diagnosis.scenarios.model import Places, Scenario, load_scenarios
from tests.diagnosis.scenarios.recording import record
from tests.diagnosis.scenarios.scoring import Score, judge, unjudged
from tests.diagnosis.scenarios.stage import LABEL, make_places, staged

HOLMES: Final = Path(sys.executable).with_name("holmes")
AT_ONCE: Final = 26
PODS_AT_ONCE: Final = 75
SCANS_AT_ONCE: Final = 2
LEFT_OUTSIDE: Final = (
    "CustomResourceDefinition",
    "IngressClass",
    "PersistentVolume",
    "StorageClass",
    "ValidatingWebhookConfiguration",
    "Namespace",
)
GRACE_SECONDS: Final = 20
"""Time runs about three times faster than usual: faults are scanned when they are 21 s old, not a minute."""
SCAN_TIMEOUT_SECONDS: Final = 120


class Room:
    """The number of pods that still fit on the node; waits until enough pods are gone."""

    def __init__(self, pods: int) -> None:
        self._free, self._changed = pods, threading.Condition()

    @contextmanager
    def taken(self, pods: int) -> Iterator[None]:
        """Reserves room for this number of pods."""
        with self._changed:
            self._changed.wait_for(lambda: self._free >= pods)
            self._free -= pods
        try:
            yield
        finally:
            with self._changed:
                self._free += pods
                self._changed.notify_all()


@dataclass(frozen=True, kw_only=True)
class Run:
    """The state that the scenarios of one run share. Without `scans`, they are only staged, as a check."""

    cluster: Cluster
    api: Api
    user: User = "admin"
    patience: float = 1
    scans: bool = True
    recordings: Path | None = None
    room: Room = field(default_factory=lambda: Room(PODS_AT_ONCE))
    scanning: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(SCANS_AT_ONCE))

    def score(self, scenario: Scenario) -> Score:
        """Stages one scenario, scans it and deletes it."""
        places = make_places(scenario)
        with self.room.taken(scenario.header.room):
            try:
                with staged(scenario, self.api, places, patience=self.patience):
                    return self._judge(scenario, places) if self.scans else unjudged(scenario, "", shown=True)
            except DidNotShowError as error:
                return unjudged(scenario, str(error), shown=False)

    def _judge(self, scenario: Scenario, places: Places) -> Score:
        try:
            if self.recordings is not None:
                self._record(scenario, places, self.recordings)
            asked = tuple(places[alias] for alias in scenario.scanned)
            report = self._scan(asked)
            refused = tuple(refused_steps(report, self.cluster.attempt, "server"))
            score = replace(judge(scenario, report, places), refused=refused)
            if scenario.header.narrow or scenario.scanned == scenario.header.namespaces:
                return score
            # The noisy neighbour may be listed here, but must not hide the scanned objects.
            everywhere = tuple(places[alias] for alias in scenario.header.namespaces)
            wide = judge(scenario, self._scan(everywhere), places, top_only=False)
        except ScanFailedError as error:
            return unjudged(scenario, str(error), shown=True)
        return replace(
            score,
            culprit=score.culprit and wide.culprit,
            value=score.value and wide.value,
            blamed=score.blamed + tuple(each for each in wide.blamed if each not in score.blamed),
        )

    def _record(self, scenario: Scenario, places: Places, folder: Path) -> None:
        with self.scanning:
            record(scenario, places, folder, lambda *arguments: self.holmes("snapshot", "create", *arguments))

    def _scan(self, namespaces: Sequence[str]) -> DiagnosisReport:
        options = [word for namespace in namespaces for word in ("-n", namespace)]
        with self.scanning:
            text = self.holmes("scan", *options, "-o", "json", f"--grace={GRACE_SECONDS}")
        try:
            return report_from_json(text)
        except ValueError as error:
            raise ScanFailedError(str(error)) from error

    def holmes(self, *arguments: str) -> str:
        """Run the command as the user of the run and return its output; raises ScanFailedError."""
        environment = {**os.environ, "KUBECONFIG": str(self.cluster.kubeconfig(self.user))}
        done = subprocess.run(
            [HOLMES, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SCAN_TIMEOUT_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise ScanFailedError(f"holmes {arguments[0]} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
        return done.stdout


class ScanFailedError(Exception):
    """The command returned no result; the text has its output."""


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """The running cluster, which no ending test session may stop meanwhile. Raises ClusterError without one."""
    layout = Layout.from_environment()
    with share(layout.users_lock):
        if not is_up(layout):
            raise ClusterError("no test cluster is up: start one with `python -m tests.cluster up`")
        yield describe(layout)


def run_scenarios(
    run: Run, scenarios: Sequence[Scenario], report: Callable[[Score], None] = lambda _: None
) -> tuple[Score, ...]:
    """The scores in the order of the scenarios; `report` receives each as soon as it is known."""
    slowest_first = sorted(scenarios, key=lambda each: -each.header.deadline_seconds)
    scores: dict[str, Score] = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in as_completed([pool.submit(run.score, each) for each in slowest_first]):
            score = done.result()
            scores[score.scenario] = score
            report(score)
    return tuple(scores[each.name] for each in scenarios)


def remove_leftovers(api: Api) -> None:
    """Deletes namespaces and cluster-wide objects that killed runs left behind."""
    for kind in LEFT_OUTSIDE:
        for name in api.labelled(kind, LABEL):
            api.delete(api.resource(kind).path("", name))


def describe_score(score: Score) -> str:
    """One line for the result, followed by the errors."""
    if not score.shown:
        return f"{'NOT SHOWN':<10}{score.scenario}: {score.error}"
    if score.error:
        return f"{'ERROR':<10}{score.scenario}: {score.error}"
    head = f"{'ok' if score.right else 'MISS':<10}{score.scenario} ({score.seconds:.1f} s, {score.requests} requests)"
    lines = [head]
    if not score.right:
        lines += [f"    expected: {score.expected}", f"    got:      {score.got}"]
        lines += [f"    blamed:   {each}" for each in score.blamed]
        lines += [f"    refused:  {each}" for each in score.refused]
    return "\n".join(lines + [f"    extra:    {each}" for each in score.extra])


def describe_stage(score: Score) -> str:
    """One line: whether the scenario showed its fault."""
    return f"shown     {score.scenario}" if score.shown else f"NOT SHOWN {score.scenario}: {score.error}"


def say(line: str) -> None:
    """Prints at once, optionally also into a file."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    """Runs the named scenarios, or all, and prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="file names without .yaml, may have wildcards (default: all)")
    parser.add_argument("--check", action="store_true", help="only check that each scenario shows its fault")
    parser.add_argument("--user", choices=("admin", "viewer"), default="admin", help="user of the scan")
    parser.add_argument("--patience", type=float, default=1.0, help="multiply every deadline, for a busy machine")
    parser.add_argument("--record", type=Path, metavar="DIR", help="record each scenario in a folder of its own")
    parser.add_argument("--clean", action="store_true", help="delete objects of killed runs, and exit")
    options = parser.parse_args()
    started = time.monotonic()
    with running_cluster() as cluster, Api(cluster.admin) as api:
        if options.clean:
            remove_leftovers(api)
            return 0
        run = Run(
            cluster=cluster,
            api=api,
            user=options.user,
            patience=options.patience,
            scans=not options.check,
            recordings=options.record,
        )
        scores = run_scenarios(
            run,
            load_scenarios(*options.names),
            lambda score: say(describe_stage(score) if options.check else describe_score(score)),
        )
    say(f"{len(scores)} scenarios in {time.monotonic() - started:.0f} s")
    return 0 if all(score.shown if options.check else score.right for score in scores) else 1


if __name__ == "__main__":
    sys.exit(main())
