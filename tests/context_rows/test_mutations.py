"""Each row is really tested: a copy of the sources without it makes the test that proves it fail.

Every mutation of `later_mutations` and `border_mutations` (in the short form of the tests a fixed share of them) is
applied to a copy of the checkout. Its test runs there in a process of its own and must fail by what it asserts. The
same tests pass in an unchanged copy.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

import pytest

from tests.context_rows.border_mutations import BORDER_MUTATIONS
from tests.context_rows.catalogue import ROWS
from tests.context_rows.later_mutations import MUTATIONS
from tests.context_rows.mutations import Mutation
from tests.context_rows.table import ROOT, row_tests
from tests.support.long_form import cases

ALL_MUTATIONS = (*MUTATIONS, *BORDER_MUTATIONS)
TRIED = cases(ALL_MUTATIONS, every=6)
COPIED = ("holmes", "prompts", "toolsets", "tests", "benchmarks", "pyproject.toml")
PROCESSES = 2
TIMEOUT_SECONDS = 120
# Imported by pytest before any test: whatever else is installed, the copy is what is tested.
PLUGIN = """
from pathlib import Path
import holmes
assert Path(holmes.__file__).parent == Path.cwd() / "holmes", f"tested {holmes.__file__}"
"""
# A change that only breaks the program proves nothing about the behaviour.
BROKEN = re.compile(r"\b(Syntax|Indentation|Import|ModuleNotFound|Name|Attribute|Type)Error\b")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What pytest said: its exit code, and all that it wrote."""

    exit_code: int
    output: str


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """As many copies of the checkout as there are processes."""
    made = []
    for number in range(PROCESSES):
        copy = tmp_path_factory.mktemp(f"copy-{number}")
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(ROOT / name, copy / name)
        (copy / "tested_is_the_copy.py").write_text(PLUGIN, encoding="utf-8")
        made.append(copy)
    return made


@pytest.fixture(scope="module")
def unchanged(copies: list[Path]) -> list[Outcome]:
    """The tests of all mutations in the copies as they are; this also leaves the bytecode that later runs load."""
    tests = sorted({mutation.test for mutation in TRIED})
    with ThreadPoolExecutor(PROCESSES) as pool:
        halves = (tests[number::PROCESSES] for number in range(PROCESSES))
        return list(pool.map(lambda job: run_tests(*job, keep_bytecode=True), zip(copies, halves, strict=True)))


@pytest.fixture(scope="module")
def outcomes(
    request: pytest.FixtureRequest,
    copies: list[Path],
    unchanged: list[Outcome],  # noqa: ARG001  runs before
) -> Iterator[dict[Mutation, Future[Outcome]]]:
    """The runs of the mutations that this session selected."""
    names = {item.name for item in request.session.items}
    test = test_without_the_row_its_test_fails.__name__
    chosen = [each for each in TRIED if f"{test}[{name_of(each)}]" in names]
    free: SimpleQueue[Path] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def run(mutation: Mutation) -> Outcome:
        copy = free.get()
        try:
            with mutated(copy, mutation):
                return run_tests(copy, [mutation.test])
        finally:
            free.put(copy)

    with ThreadPoolExecutor(PROCESSES) as pool:
        yield {mutation: pool.submit(run, mutation) for mutation in chosen}
        pool.shutdown(cancel_futures=True)


def name_of(mutation: Mutation) -> str:
    """What pytest calls it: the row, and for another mutation of the same row what it switches off."""
    return mutation.row if mutation in MUTATIONS else f"{mutation.row}: {mutation.what}"


def run_tests(copy: Path, tests: list[str], *, keep_bytecode: bool = False) -> Outcome:
    """Run `tests` of `copy` and nothing else."""
    command = [sys.executable, "-m", "pytest", *tests, "-q", "-rfE", "--no-header", "--tb=short"]
    command += ["-p", "no:cacheprovider", f"--rootdir={copy}"]
    for plugin in (
        "tested_is_the_copy",
        "pytest_asyncio.plugin",
        "pytest_timeout",
    ):  # each of the others takes time to load
        command += ["-p", plugin]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV_"))}
    environment |= {"COLUMNS": "1000", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment |= {"PYTHONDONTWRITEBYTECODE": "" if keep_bytecode else "1"}
    done = subprocess.run(
        [*command, *(() if keep_bytecode else ("-x",))],
        cwd=copy,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    return Outcome(exit_code=done.returncode, output=done.stdout)


@contextmanager
def mutated(copy: Path, mutation: Mutation) -> Iterator[None]:
    """`copy` with the mutation. Its file gets another time, or the bytecode of before would be taken for its own."""
    path = copy / mutation.file
    before, status = path.read_bytes(), path.stat()
    path.write_text(applied(mutation, before.decode("utf-8")), encoding="utf-8")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 10_000_000_000))
    try:
        yield
    finally:
        path.write_bytes(before)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def applied(mutation: Mutation, source: str) -> str:
    """`source` without the row. Fails when that cannot be said of this source any more."""
    found = source.count(mutation.snippet)
    if found != 1:
        pytest.fail(
            f"the mutation of row {mutation.row} no longer applies: {mutation.file} has its snippet {found} times. "
            f"Find what makes the row work now ({mutation.what}) and change the mutation:\n{mutation.snippet}",
            pytrace=False,
        )
    return source.replace(mutation.snippet, mutation.replacement)


def failed(outcome: Outcome, test: str) -> bool:
    """Whether `test` ran and failed by itself."""
    line = rf"^FAILED {re.escape(test)}(\[| |$)"
    return outcome.exit_code == 1 and re.search(line, outcome.output, re.MULTILINE) is not None


@pytest.mark.parametrize("mutation", ALL_MUTATIONS, ids=name_of)
def test_the_mutation_applies_to_the_source_of_today(mutation: Mutation) -> None:
    source = (ROOT / mutation.file).read_text(encoding="utf-8")
    assert applied(mutation, source) != source


def test_there_is_one_mutation_for_each_row_but_the_invariants() -> None:
    assert [mutation.row for mutation in MUTATIONS] == [row.id for row in ROWS if not row.id.startswith("I")]


def test_the_test_of_a_mutation_is_marked_with_its_row() -> None:
    marked = row_tests()
    assert [name_of(each) for each in ALL_MUTATIONS if each.test.partition("[")[0] not in marked[each.row]] == []


def test_nothing_changed_and_every_proving_test_passes(unchanged: list[Outcome]) -> None:
    for outcome in unchanged:
        assert outcome.exit_code == 0, outcome.output


@pytest.mark.parametrize("mutation", TRIED, ids=name_of)
def test_without_the_row_its_test_fails(mutation: Mutation, outcomes: dict[Mutation, Future[Outcome]]) -> None:
    outcome = outcomes[mutation].result()
    assert outcome.exit_code != 0, f"{mutation.test} does not see that {mutation.what}"
    assert failed(outcome, mutation.test), outcome.output
    reasons = [line for line in outcome.output.splitlines() if line.startswith("FAILED ")]
    assert not BROKEN.search("\n".join(reasons)), f"the mutation only breaks the program:\n{outcome.output}"
