"""Citations as people see them: numbers in the answer, and where they lead below it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from holmes.cli.render.citations import CitedSource, CitedSources, render_citations
from holmes.cli.render.event_lines import Detail
from holmes.cli.render.live_renderer import LiveRenderer
from holmes.cli.render.rendering import PlainRenderer
from holmes.values.events import AgentEvent, AnswerFinished, AssistantReplied, AttemptDiscarded, Citation, TextDelta
from holmes.values.messages import AssistantMessage, Message, ResultId, StoredResult, Text, ToolMessage, user_text
from tests.cli.events import PODS, STATS, finished

pytestmark = pytest.mark.row("N6")

FIRST, SECOND = ResultId("0123456789ab"), ResultId("fedcba987654")
ANSWER = f"The pod is `OOMKilled` [[{FIRST}:4]][[{FIRST}:12-18]].\n\nAgain [[{FIRST}:4]] and [[{SECOND}:1]].\n"
SHORT = "The pod is `OOMKilled` [1][2].\n\nAgain [1] and [3].\n"


def result(result_id: ResultId, path: str | None) -> ToolMessage:
    stored = StoredResult(id=result_id, path=path, size_bytes=9, media_type="text/plain")
    return ToolMessage(
        call_id=PODS.id, tool_name="kubectl_get", status="success", parts=(Text(text="x"),), stored=(stored,)
    )


def cited(result_id: ResultId, first_line: int, last_line: int) -> Citation:
    return Citation(result_id=result_id, first_line=first_line, last_line=last_line, claim="It is so.")


CITATIONS = (cited(FIRST, 4, 4), cited(FIRST, 12, 18), cited(FIRST, 4, 4), cited(SECOND, 1, 1))


def answered(text: str, *messages: Message, citations: tuple[Citation, ...] = CITATIONS) -> AnswerFinished:
    return AnswerFinished(text=text, messages=messages, stats=STATS, steps=1, model="m", citations=citations)


def investigation(answer: str, *, checked: bool) -> tuple[AgentEvent, ...]:
    """A thought that cites, a call, a reply that is cut off, and the answer as it streams."""
    thought = f"I look [[{SECOND}:7]]."
    return (
        TextDelta(text=thought, checked=checked),
        AssistantReplied(
            message=AssistantMessage(text=thought, tool_calls=(PODS,)), stats=STATS, model="m", checked=checked
        ),
        finished(PODS, result(FIRST, "/results/kubectl_get_1.txt")),
        TextDelta(text=f"Void [[{SECOND}:9]].\n\nVoid ", checked=checked),
        AttemptDiscarded(model="m", reason="cut", retry_in_seconds=0),
        *(TextDelta(text=f"{line}\n", checked=checked) for line in answer.split("\n")[:-1]),
        AssistantReplied(message=AssistantMessage(text=answer), stats=STATS, model="m", checked=checked),
        answered(answer, citations=CITATIONS if checked else ()),
    )


EVENTS = investigation(ANSWER, checked=True)
UNCHECKED = investigation(ANSWER, checked=False)
LINES = ("[1][2] kubectl_get call-1 · lines 4, 12-18", f"[3] result {SECOND} · line 1")
PATHS = (
    "[1] kubectl_get call-1 · line 4 · /results/kubectl_get_1.txt · checked",
    "[2] kubectl_get call-1 · lines 12-18 · /results/kubectl_get_1.txt · checked",
    f"[3] result {SECOND} · line 1 · checked",
)


def test_each_marker_has_one_number_and_each_source_one_line() -> None:
    sources = CitedSources()
    for event in EVENTS:
        sources.note(event)
    assert render_citations(ANSWER, sources.by_id, CITATIONS) == (SHORT, LINES)
    assert render_citations(ANSWER, sources.by_id, CITATIONS, paths=True) == (SHORT, PATHS)
    assert render_citations("if [[ -f x ]]; then [[1,2]]", {}, CITATIONS) == ("if [[ -f x ]]; then [[1,2]]", ())


def test_what_was_not_checked_says_so_beside_its_number_and_below() -> None:
    text = f"It is so [[{FIRST}:4]]. It is slow [[{FIRST}:5 cited]]. It ran [[{FIRST}:6-7 not found there: Ran, 3]]."
    judged = (
        cited(FIRST, 4, 4),
        replace(cited(FIRST, 5, 5), outcome="cited"),
        replace(cited(FIRST, 6, 7), outcome="not_found", missing=("Ran", "3")),
    )
    short, lines = render_citations(text, {}, judged, paths=True)
    assert short == "It is so [1]. It is slow [2 cited]. It ran [3 not found there: Ran, 3]."
    assert lines == (
        f"[1] result {FIRST} · line 4 · checked",
        f"[2] result {FIRST} · line 5 · cited, not checked",
        f"[3] result {FIRST} · lines 6-7 · not found there",
    )


def test_a_marker_that_nobody_checked_stays_as_the_model_wrote_it() -> None:
    text = f"It is so [[{FIRST}:4; {SECOND}:9]] and so [[{SECOND}:9, 12]]."
    short, lines = render_citations(text, {}, CITATIONS)
    assert short == f"It is so [1][[{SECOND}:9]] and so [[{SECOND}:9, 12]]."
    assert lines == (f"[1] result {FIRST} · line 4",)
    assert render_citations(text, {}, ()) == (text, ())


def test_results_of_an_earlier_session_and_attachments_are_known_from_the_conversation() -> None:
    sources = CitedSources()
    attachment = user_text("a log", kind="attachment")
    sources.note(answered("x", result(FIRST, None), attachment))
    assert sources.by_id == {FIRST: CitedSource(description="kubectl_get", path=None)}
    assert render_citations(f"[[{FIRST}:2]]", sources.by_id, (cited(FIRST, 2, 2),), paths=True)[1] == (
        f"[1] kubectl_get · line 2 · result {FIRST} · checked",
    )


def test_paths_below_the_home_directory_are_short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    sources = {FIRST: CitedSource(description="a\x1b[2Jb", path=str(tmp_path / "results/a.txt"))}
    assert render_citations(f"[[{FIRST}:2]]", sources, (cited(FIRST, 2, 2),), paths=True)[1] == (
        "[1] ab · line 2 · ~/results/a.txt · checked",
    )


def play(renderer: LiveRenderer | PlainRenderer, events: tuple[AgentEvent, ...]) -> None:
    renderer.start()
    for event in events:
        renderer.show(event)
    renderer.stop()


def live(*, answer_is_live: bool) -> LiveRenderer:
    return LiveRenderer(Detail(), answer_is_live=answer_is_live, clock=lambda: 0.0)


def test_a_pipe_gets_numbers_and_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    play(PlainRenderer(Detail(), clock=lambda: 0.0), EVENTS)
    shown = capsys.readouterr()
    assert shown.out == "\n".join((SHORT, *LINES, ""))
    assert f"I look [1].\n  [1] result {SECOND} · line 7\n" in shown.err


def test_the_terminal_shows_numbers_while_it_streams_and_the_list_below_each_reply(
    capsys: pytest.CaptureFixture[str],
) -> None:
    play(live(answer_is_live=True), EVENTS)
    shown = capsys.readouterr().out
    assert "[[" not in shown
    assert "The pod is OOMKilled [1][2]." in shown
    assert "Again [1] and [3]." in shown
    lists = [line.strip() for line in shown.splitlines() if line.startswith("[")]
    assert lists == [f"[1] result {SECOND} · line 7", *LINES]


def test_a_terminal_whose_answer_goes_to_a_file_writes_the_list_there(capsys: pytest.CaptureFixture[str]) -> None:
    play(live(answer_is_live=False), EVENTS)
    assert capsys.readouterr().out.startswith("\n".join((SHORT, *LINES, "")))


def test_where_citations_are_switched_off_nothing_becomes_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    for renderer in (PlainRenderer(Detail(), clock=lambda: 0.0), live(answer_is_live=True), live(answer_is_live=False)):
        play(renderer, UNCHECKED)
        shown = capsys.readouterr()
        assert f"[[{FIRST}:12-18]]" in shown.out
        assert f"I look [[{SECOND}:7]]." in shown.out + shown.err
        assert "[1]" not in shown.out + shown.err
