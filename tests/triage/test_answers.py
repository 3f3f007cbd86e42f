"""The short form of an answer has at most 20 lines, whatever the look contains."""

from __future__ import annotations

import dataclasses
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.triage.answers import answer_text
from holmes.triage.conversation import SeenLook
from holmes.triage.facts import MOST_ROWS
from holmes.values.first_look import FirstLook, Table, look_to_yaml

NAMES: Final = tuple(f"Deployment team-{number}/web" for number in range(60))
EVIDENCE: Final = tuple(f"Pod team-{number}/web-1, status.phase: Pending" for number in range(60))
NOTES: Final = tuple(f"Condition {number} could not be applied." for number in range(60))
FIX: Final = tuple(f"kubectl rollout undo deployment/web-{number}" for number in range(60))
LOOK: Final = FirstLook(
    verdict="cause_found",
    summary="Secret team-1/key does not exist.",
    culprit="Secret team-1/key",
    severity="critical",
    evidence=EVIDENCE[:3],
    chain=NAMES[:2],
    fix=FIX[:1],
    notes=NOTES[:1],
    others=("another incident",),
)


def lengths(most: int = 60) -> st.SearchStrategy[int]:
    return st.one_of(st.integers(0, 4), st.integers(0, most))


@st.composite
def looks(draw: st.DrawFn) -> FirstLook:
    rows = draw(st.one_of(st.none(), lengths()))
    return FirstLook(
        verdict=draw(st.sampled_from(("cause_found", "inconclusive", "healthy", "answered"))),
        summary=draw(st.sampled_from(("Secret team-1/key does not exist.", "a\nb\r\nc\n", "It " + "waits " * 400))),
        subject=NAMES[: draw(lengths())],
        culprit=draw(st.sampled_from(("", "Secret team-1/key"))),
        since=draw(st.sampled_from(("", "2026-11-24T10:00:00Z"))),
        evidence=EVIDENCE[: draw(lengths())],
        chain=NAMES[: draw(lengths())],
        fix=(*FIX[: draw(lengths())], *draw(st.sampled_from(((), ("kubectl apply -f - <<E\nkind: A\n" * 20,))))),
        table=None if rows is None else Table(header="pod | node", rows=("web | a",) * rows, total=rows * 2),
        lines=tuple("error\nat line" for _ in range(draw(lengths()))),
        others=NAMES[: draw(lengths())],
        not_checked=NOTES[: draw(lengths())],
        notes=(*NOTES[: draw(lengths())], *draw(st.sampled_from(((), ("one\ntwo\nthree",))))),
        against=NOTES[: draw(lengths())],
    )


def seen(look: FirstLook) -> SeenLook:
    return SeenLook(look=look, text=look_to_yaml(look), result_id="r1")


@given(looks())
@settings(max_examples=400, deadline=None)
def test_no_look_makes_an_answer_of_more_than_20_lines_or_15_rows(look: FirstLook) -> None:
    rows = min(len(look.table.rows), MOST_ROWS) if look.table else 0
    lines = answer_text(seen(look)).splitlines()
    assert len(lines) - rows <= 20
    assert sum(line == "| web | a |" for line in lines) == rows


def test_what_does_not_fit_is_counted() -> None:
    text = answer_text(seen(dataclasses.replace(LOOK, notes=NOTES, fix=FIX)))
    assert "# 56 more lines: ask `details`" in text
    assert "61 more lines: ask `details`." in text
    assert all(line in text for line in (*FIX[:4], EVIDENCE[0], "Path: `Deployment team-0/web`"))
    long = answer_text(seen(dataclasses.replace(LOOK, chain=NAMES[:12])))
    assert (
        "Path: `Deployment team-0/web` → `Deployment team-1/web` → `Deployment team-2/web` → … 7 more … → "
        "`Deployment team-10/web` → `Deployment team-11/web`" in long
    )


def test_the_details_leave_nothing_out() -> None:
    text = answer_text(seen(dataclasses.replace(LOOK, notes=NOTES, fix=FIX, evidence=EVIDENCE)), details=True)
    assert all(line in text for line in (*NOTES, *FIX, *EVIDENCE))
    assert "more lines" not in text
