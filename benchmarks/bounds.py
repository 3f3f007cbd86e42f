"""What large and hostile inputs cost: `python benchmarks/bounds.py [PART OF A NAME]`.

Measures functions that read what clusters, models and callers send, and prints each figure with its bound. A figure is
the worst of all inputs of a bound, and for each input the best of some runs. Exits with 1 when a bound is not met:

- seconds of CPU for one input;
- growth: CPU for four times the text, in units of the CPU for the text;
- lag: seconds in which the event loop could not run.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import httpx

from holmes.core.tools_utils.output_changes import output_change
from holmes.diagnosis.facts.access_review import denials_in
from holmes.diagnosis.facts.log_groups import story_of
from holmes.diagnosis.facts.log_numbers import risen_numbers
from holmes.diagnosis.facts.logs import signatures_of
from holmes.evidence.passages import CitedText, NumberedText
from holmes.evidence.sources import source_of_command
from holmes.evidence.verification import verify_citations
from holmes.investigations.records.database import Database
from holmes.llm.overflow import overflow_window
from holmes.observability.metrics.prometheus import result_of_answer
from holmes.redaction.redactor import redact_off_loop
from holmes.redaction.views import strip_escape_sequences
from holmes.server.bodies import json_depth
from holmes.tokens import TokenCounter
from holmes.tokens.history import History
from holmes.toolsets.kubernetes_view.helm import masked_values
from holmes.toolsets.metrics.ranges import TimeRange
from holmes.toolsets.metrics.texts import range_rows, range_text
from holmes.toolsets.patterns import bounded_pattern
from holmes.triage.question import parse_question
from holmes.values.errors import ToolError
from holmes.values.events import AgentEvent, TextDelta, TurnStarted
from holmes.values.messages import user_text
from tests.core.truncation.test_entities import HOSTILE as HOSTILE_ENTITIES
from tests.core.truncation.test_entities import found as entities_found
from tests.diagnosis.facts.test_hosts import services
from tests.evidence.stores import Conversation
from tests.evidence.test_hostile_claims import outcome
from tests.investigations.alerts import Desk, alert
from tests.investigations.test_many_alerts import CHECKOUT, fill
from tests.redaction.test_redactor import (
    HOSTILE,
    REDACTOR,
    nested_maps,
    nested_secrets,
    ordinary_logs,
    packed,
    packed_zeros,
)
from tests.server.page.sample import fill_many
from tests.server.page.serving import running_server
from tests.telemetry.test_metrics import fresh

SIZE = 8_000
MAX_QUESTION_SECONDS = 1.5
REPEATED = {
    "masked_values": [
        "A",
        "a=b ",
        "a://",
        "password=x ",
        "<a",
        "-----BEGIN PRIVATE KEY",
        "{",
        "- ",
        "a: ",
        "http://a:",
    ],
    "escapes": ["\x1b", "\x1b[", "\x1b]", "\x9d", "\x1bP", "^[", "^[[", "\\e]8;", "\\", "\\e[", "[m\\e", "^[]8;;a"],
    "logs": ["a", " ", "Error", "panic ", "0", "\t", "at ", "=", "invalid "],
    "hosts": ["a-", "a.", "a=", "http://", "1."],
    "tokens": ["a", " ", "{", "中", "A" * 9 + "\n"],
    "questions": ["why ", "a-", "shop/", "'", '"x', "`", "deployment ", "-n ", "in the ", "…", "last last ", "1.", "/"],
    "claims": ["a-", "1.", "a.b:", "- ", "[", "'a' ", "x's ", "`", "1 of ", "no ", "2h ", "(", "{"],
    "overflow": ["image ", "limit 1 ", "(", "too many tokens: "],
}
DENIALS = ("a" * 5_000 + ' "' + "b" * 5_000 + '" is forbidden: User ') * 200
PATTERNS = (
    "(((((a{1000}){1000}){1000}){1000}){1000})", "a{100000}", "(" * 20 + "a" + "){1,2}" * 20,
    "(?:[[:alpha:](]{1000}){1000}", "(?x) # [ \n (a{1000}){1000} # ]", "(" * 800 + "a" + ")*" * 800,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bound:
    """`measure` gives a figure in `unit` that is at most `limit`."""

    name: str
    limit: float
    unit: str
    measure: Callable[[], float]


def cpu(run: Callable[[], object], runs: int = 3) -> float:
    """CPU seconds of the quickest run."""
    best = float("inf")
    for _ in range(runs):
        started = time.process_time()
        run()
        best = min(best, time.process_time() - started)
    return best


def worst(run: Callable[[str], object], name: str, size: int) -> float:
    """CPU seconds of the text of `size` characters of one piece that costs most."""
    return max(cpu(partial(run, piece * (size // len(piece))), 1) for piece in REPEATED[name])


def growth(run: Callable[[str], object], text_of: Callable[[int], str], size: int) -> float:
    """How many times the CPU four times the size takes; times below 2 ms are not told apart."""
    short, long = text_of(size), text_of(4 * size)
    return cpu(lambda: run(long)) / max(cpu(lambda: run(short)), 0.002)


def most_growth(run: Callable[[str], object], pieces: Iterable[str], size: int) -> float:
    """The growth of the piece for which it is highest."""

    def of(piece: str) -> float:
        return growth(run, lambda characters: piece * (characters // len(piece)), size)

    return max(of(piece) for piece in pieces)


async def lag(work: Callable[[], Awaitable[object]]) -> float:
    """The longest time that the event loop could not run while `work` did."""
    done = asyncio.ensure_future(work())
    longest = 0.0
    while not done.done():
        started = time.perf_counter()
        await asyncio.sleep(0.001)
        longest = max(longest, time.perf_counter() - started - 0.001)
    await done
    return longest


async def lag_of_citations() -> float:
    """Verifies one quotation in a log of 20 MB."""
    with tempfile.TemporaryDirectory() as folder:
        conversation = Conversation.below(Path(folder))
        lines = b"2026-11-22T01:00:00Z info request handled in 12ms by checkout-7f9c\n" * 300_000
        log = await conversation.bytes_result(lines + b"panic: no space left on device\n")
        text = f"It says `panic: no space left` [[{log}:7]]."
        return await lag(lambda: verify_citations(text, conversation.verifier()))


def judge_piece(piece: str) -> None:
    """A claim of this piece about a result of it."""
    lines = (piece * 60_000 + "\n" + (piece * 20 + "\n") * 2_000).encode()
    outcome(piece * 2_000, CitedText(NumberedText(lines), source_of_command("")), 1, 2_000)


def ask_often(messages: int) -> Callable[[], None]:
    """Appends 200 messages to a history of so many and asks for its tokens each time."""
    history = History([user_text(f"message {index} " * 20) for index in range(messages)], TokenCounter())
    history.tokens()

    def ask() -> None:
        for index in range(200):
            history.append(user_text(f"new {index}"))
            history.exceeds(10**9)
            history.tokens()

    return ask


def count_events() -> float:
    """Microseconds to count one event of a run."""
    reader = fresh().run(source=None)
    events: list[AgentEvent] = [TurnStarted(step=1, max_steps=5), *(TextDelta(text="word ") for _ in range(20))]

    def count() -> None:
        for _ in range(200):
            for event in events:
                reader.note(event)

    with reader:
        return cpu(count, 5) / (200 * len(events)) * 1e6


def refuse(pattern: str) -> None:
    """Compile a pattern that would fill the memory."""
    try:
        bounded_pattern(pattern, name="pattern", ignore_case=True)
    except ToolError:
        return
    sys.exit(f"compiled: {pattern[:80]}")


async def seconds_to_take_alerts() -> tuple[float, float]:
    """Wall seconds to take one more alert of an incident of 10,000, and one whose question still waits."""
    with tempfile.TemporaryDirectory() as folder:
        database = await Database.open(f"sqlite:///{folder}/holmes.db")
        try:
            desk, best = Desk(database), float("inf")
            await fill(desk)
            for number in range(3):
                started = time.perf_counter()
                await desk.take(alert(deployment=f"new-{number}-app", severity="critical"))
                best = min(best, time.perf_counter() - started)
                await desk.set_state("answered")
            await desk.set_state("queued")
            started = time.perf_counter()
            await desk.take(CHECKOUT)
            return best, time.perf_counter() - started
        finally:
            await database.close()


def seconds_of_a_page() -> float:
    """Wall seconds of the start page with 500 incidents."""
    with tempfile.TemporaryDirectory() as folder, running_server(Path(folder)) as server:
        server.run(lambda service: fill_many(service, 500))
        with httpx.Client(base_url=server.url) as client:
            best = float("inf")
            for _ in range(9):
                started = time.perf_counter()
                client.get("/").raise_for_status()
                best = min(best, time.perf_counter() - started)
            return best


@contextmanager
def demo_cluster() -> Iterator[dict[str, str]]:
    """Serve the demo recording in a process of its own, as a cluster does. Yields the variable that points to it."""
    command = [sys.executable, "-m", "holmes", "snapshot", "serve", "holmes/snapshot/demo"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            name, _, path = server.stdout.readline().removeprefix("export ").strip().partition("=")
            yield {name: path}
        finally:
            server.send_signal(signal.SIGINT)


def seconds_of_a_question() -> float:
    """CPU seconds of a whole `holmes ask` without a model about the demo cluster, with the programs that it runs.

    The modules are compiled in advance, as pip does when it installs a package.
    """
    command = [sys.executable, "-m", "holmes", "ask", "-n", "--model", "builtin/triage", "why is checkout broken?"]
    with tempfile.TemporaryDirectory() as folder, demo_cluster() as cluster:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment |= {"HOME": folder, "PYTHONPYCACHEPREFIX": f"{folder}/compiled", **cluster}
        best = float("inf")
        for _ in range(4):
            before = os.times()
            subprocess.run(command, check=True, cwd=ROOT, env=environment, capture_output=True)
            after = os.times()
            spent = after.children_user + after.children_system - before.children_user - before.children_system
            best = min(best, spent)
        return best


def plain_searches() -> float:
    """The cost of redacting ordinary logs, in plain searches of the same text."""
    text = ordinary_logs(1_000_000)
    search = cpu(lambda: [text.find("xoxb-") for _ in range(20)]) / 20
    return cpu(lambda: REDACTOR.redact(text)) / search


def redaction_bounds() -> Iterable[Bound]:
    """Bounds of what masks secrets."""
    redact = REDACTOR.redact
    flat, bomb = "stringData:\n  blob: x\n" * 240, packed_zeros()
    line = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo"
    big = ordinary_logs(6_000_000) + "DB_PASSWORD=hunter2\n"

    def of_nested_maps() -> float:
        return cpu(lambda: redact(nested_maps(240))) / max(cpu(lambda: redact(flat)), 0.002)

    def of_packed_texts() -> float:
        return cpu(lambda: redact(f"{bomb} " * 40)) / max(cpu(lambda: redact("0" * 1_000_000)), 0.01)

    for name, measure in (
        ("hostile pieces", lambda: most_growth(redact, HOSTILE.values(), SIZE)),
        ("secrets inside of secrets", lambda: growth(redact, nested_secrets, 500)),
        ("base64 inside of base64", lambda: growth(redact, packed, 1_000)),
        ("a megabyte in one line", lambda: growth(redact, lambda size: line * size, 30_000)),
        ("escape sequences", lambda: most_growth(strip_escape_sequences, REPEATED["escapes"], 20_000)),
    ):
        yield Bound(f"redaction: growth, {name}", 10, "times", measure)
    yield Bound("redaction: maps inside of each other against flat ones", 5, "times", of_nested_maps)
    yield Bound("redaction: 40 packed texts of 8 MB against a text of 1 MB", 40, "times", of_packed_texts)
    yield Bound("redaction: ordinary logs", 150, "plain searches", plain_searches)
    yield Bound("redaction: lag, 6 MB", 0.05, "s", lambda: asyncio.run(lag(lambda: redact_off_loop(REDACTOR, big))))


def reading_bounds() -> Iterable[Bound]:
    """Bounds of what reads results, questions, claims and bodies."""
    hostile_body = b"[" * 100 + b'"' + b'\\"' * 500_000
    rows = [f"row {number % 50}" for number in range(20_000)]
    changed = [*rows[:200], "odd one out", *rows[300:]]
    entities = [(first * 40 + "name: a-" * 40) * (40_000 // (40 * len(first) + 320)) for first in HOSTILE_ENTITIES]
    large = b"2026-11-22T01:00:00Z info request handled in 12ms\n" * 400_000 + b"panic: out of memory\n"
    count = TokenCounter()
    count.count_text("warm up")
    for limit, name, measure in (
        (1, "the depth of a body", lambda: cpu(lambda: json_depth(hostile_body))),
        (2, "values of a view", lambda: worst(masked_values, "masked_values", 100_000)),
        (0.5, "an error of a provider", lambda: worst(lambda text: overflow_window(text, 400), "overflow", 4_000)),
        (2, "signatures of a log", lambda: worst(lambda text: signatures_of("\n".join([text] * 500)), "logs", 1_000)),
        (2, "the analysis of a log of 20 MB", lambda: max(cpu(partial(analyse, text), 1) for text in large_logs())),
        (2, "denials in a log", lambda: cpu(lambda: list(denials_in(DENIALS)))),
        (1, "hosts of a text", lambda: worst(services, "hosts", 100_000)),
        (5, "tokens of repetitive text", lambda: worst(count.count_text, "tokens", 500_000)),
        (0.2, "a question", lambda: worst(parse_question, "questions", 30_000)),
        (10, "a claim of one piece", lambda: max(cpu(partial(judge_piece, each), 1) for each in REPEATED["claims"])),
        (2, "entities of a text", lambda: max(cpu(partial(entities_found, text), 1) for text in entities)),
        (1, "a search in 20 MB", lambda: cpu(lambda: search_lines_of(large))),
        (3, "the change of a large output", lambda: cpu(lambda: output_change("\n".join(rows), "\n".join(changed)))),
        (1, "a pattern that is refused", lambda: max(cpu(partial(refuse, pattern), 1) for pattern in PATTERNS)),
    ):
        yield Bound(f"reading: {name}", limit, "s", measure)
    yield Bound("reading: lag, a citation in 20 MB", 0.05, "s", lambda: asyncio.run(lag_of_citations()))


def large_logs() -> tuple[str, ...]:
    return (
        "".join(
            f"2026-11-22T01:{i % 3600 // 60:02}:{i % 60:02}Z INFO GET /item/{i} 200 {i % 90}ms\n"
            for i in range(400_000)
        ),
        "".join(f'{{"level":"error","msg":"order failed","order":{i},"took_ms":{i % 90}}}\n' for i in range(310_000)),
        "ERROR order failed\n" + "\tat shop.Order.place(Order.java:81)\n" * 550_000,
        "ERROR " + "took 1 ms " * 2_000_000,
    )


def analyse(log: str) -> None:
    story = story_of(log)
    list(risen_numbers(story))
    for group in story.groups:
        story.line_before(group)


def search_lines_of(content: bytes) -> None:
    """Number the lines of a result and search it."""
    text = NumberedText(content)
    list(text.find(re.compile("panic"), (0, len(text.text)), contains="panic"))


def answer_of_a_week() -> bytes:
    """Return what Prometheus answers for 200 series with a sample every ten minutes."""
    samples = [[60_000 + 600 * place, str(place % 97 / 7)] for place in range(1_000)]
    result = [{"metric": {"pod": f"shop-{number}"}, "values": samples} for number in range(200)]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()


def describe_week(answer: bytes) -> None:
    asked = TimeRange(start=60_000, end=60_000 + 600 * 1_000, step_seconds=600)
    result = result_of_answer(json.loads(answer))
    range_text("rate(x[5m])", result, asked, range_rows(result, asked))


def working_bounds() -> Iterable[Bound]:
    """Bounds of the loop, the metrics, the intake and the page."""

    def of_history() -> float:
        return cpu(ask_often(8_000), 5) / max(cpu(ask_often(100), 5), 0.002)

    yield Bound("metrics: 200 series of a week", 1, "s", lambda: cpu(partial(describe_week, answer_of_a_week())))
    yield Bound("history: 8,000 messages against 100", 4, "times", of_history)
    yield Bound("metrics: one event", 100, "µs", count_events)
    yield Bound("intake: one alert more than 10,000", 0.1, "s", lambda: asyncio.run(seconds_to_take_alerts())[0])
    yield Bound("intake: a question that still waits", 1, "s", lambda: asyncio.run(seconds_to_take_alerts())[1])
    yield Bound("page: 500 incidents", 0.1, "s", seconds_of_a_page)
    yield Bound("question: without a model, small cluster", MAX_QUESTION_SECONDS, "s", seconds_of_a_question)


def main() -> int:
    """Print one line for each bound; 1 when one is not met."""
    wanted, broken = " ".join(sys.argv[1:]), 0
    for bound in (*redaction_bounds(), *reading_bounds(), *working_bounds()):
        if wanted in bound.name:
            figure = bound.measure()
            met = figure <= bound.limit
            broken += not met
            print(f"{'met' if met else 'NOT MET':>7}: {bound.name}: {figure:.3g} {bound.unit}, at most {bound.limit:g}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
