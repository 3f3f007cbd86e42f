"""Claims with their lines and expected outcomes, and the actual outcomes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter

from holmes.evidence import CitationVerifier, verify_citations
from holmes.stores.result_store import FileResultStore
from holmes.values.messages import AssistantMessage, Text, ToolCall, ToolCallId, ToolMessage
from holmes.values.tools import result_label

CLAIMS = Path(__file__).parent / "claims"


class ClaimRow(BaseModel):
    """One answer. `R` in `[[R:3]]` is the id of the result."""

    model_config = ConfigDict(extra="forbid")

    answer: str
    truth: Literal["true", "near", "false"]
    expect: Literal["checked", "cited", "not_found"]
    about: str
    language: str = "en"


class ResultRow(BaseModel):
    """The output of a command and the claims about it."""

    model_config = ConfigDict(extra="forbid")

    id: str
    command: str
    text: str
    claims: list[ClaimRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A claim and its outcome."""

    file: str
    result: ResultRow
    claim: ClaimRow
    outcome: str
    shown: str


def results_below(folder: Path) -> Iterator[tuple[str, ResultRow]]:
    """Every result in the YAML files of `folder`."""
    for path in sorted(folder.glob("*.yaml")):
        for row in TypeAdapter(list[ResultRow]).validate_python(yaml.safe_load(path.read_text())):
            yield path.name, row


async def score(rows: Iterable[tuple[str, ResultRow]], folder: Path) -> list[Scored]:
    """Judge every claim as the loop does."""
    found: list[Scored] = []
    for file, row in rows:
        for claim in row.claims:
            outcome, shown = await outcome_of(row.command, row.text, claim.answer, folder)
            found.append(Scored(file=file, result=row, claim=claim, outcome=outcome, shown=shown))
    return found


async def outcome_of(command: str, text: str, answer: str, folder: Path) -> tuple[str, str]:
    """The worst outcome of an answer's citations, and the answer as shown to people."""
    store = FileResultStore(folder)
    call = ToolCall(id=ToolCallId("call-1"), name="bash", arguments=json.dumps({"command": command}))
    stored = await store.put(text.encode(), tool_name="bash", call_id=call.id, media_type="text/plain")
    message = ToolMessage(
        call_id=call.id,
        tool_name="bash",
        status="success",
        parts=(Text(text=text), Text(text=result_label((stored,)))),
        stored=(stored,),
    )
    verifier = CitationVerifier(store)
    verifier.note((AssistantMessage(text="", tool_calls=(call,)), message))
    verified = await verify_citations(answer.replace("[[R:", f"[[{stored.id}:"), verifier)
    outcomes = {citation.outcome for citation in verified.citations}
    worst = next((each for each in ("not_found", "cited", "checked") if each in outcomes), "none")
    return worst, verified.text


def table(half: str, scored: Sequence[Scored]) -> str:
    """Counts of outcomes, recognised claims, and false claims that were checked."""
    lines = [f"{half}: {len(scored)} claims", "truth  expected   checked  cited  not_found"]
    counts = Counter((each.claim.truth, each.claim.expect, each.outcome) for each in scored)
    for truth in ("true", "near", "false"):
        for expect in ("checked", "cited", "not_found"):
            row = [counts[truth, expect, outcome] for outcome in ("checked", "cited", "not_found")]
            if any(row):
                lines.append(f"{truth:6} {expect:10} {row[0]:7} {row[1]:6} {row[2]:10}")
    lines.append(f"false checked: {len(false_checked(scored))}; true recognised: {recognised(scored):.1%}")
    return "\n".join(lines)


def false_checked(scored: Sequence[Scored]) -> list[Scored]:
    """False claims with the outcome *checked*."""
    return [each for each in scored if each.claim.truth != "true" and each.outcome == "checked"]


def recognised(scored: Sequence[Scored]) -> float:
    """The share of true claims with the expected outcome."""
    true = [each for each in scored if each.claim.truth == "true"]
    return sum(each.outcome == each.claim.expect for each in true) / max(1, len(true))
