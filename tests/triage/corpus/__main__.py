"""Command line of the corpora: `python -m tests.triage.corpus [--half development] [--corpus questions] [--failed]`.

Prints the scores of all cases. `--failed` also prints the failed cases of the development half. It never prints cases
of the other halves, so that the code is not adjusted to them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from tests.triage.corpus.asking import answers_to
from tests.triage.corpus.loading import CORPORA, HALVES, Corpus, Half, read_corpus
from tests.triage.corpus.scoring import Judgement, judge, score_table


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.triage.corpus", description="Scores of the corpora.")
    parser.add_argument("--half", choices=HALVES, help="Only this half")
    parser.add_argument("--corpus", choices=CORPORA, help="Only this corpus")
    parser.add_argument("--class", dest="group", default="", help="Only this class")
    parser.add_argument("--failed", action="store_true", help="Also print the failed cases of the development half")
    parser.add_argument("--all", action="store_true", help="Also print the right cases of the development half")
    given = parser.parse_args(arguments)
    for half in HALVES if given.half is None else (given.half,):
        for corpus in CORPORA if given.corpus is None else (given.corpus,):
            judgements = _judged(half, corpus, given.group)
            shown = judgements if half == "development" and (given.failed or given.all) else ()
            print(*(_described(each) for each in shown if given.all or not each.wholly_right), sep="", end="")  # noqa: T201
            print("\n".join(_report(half, corpus, judgements)))  # noqa: T201


def _judged(half: Half, corpus: Corpus, group: str) -> tuple[Judgement, ...]:
    cases = tuple(each for each in read_corpus(half, corpus) if group in {"", each.group})
    return tuple(map(judge, answers_to(cases)))


def _report(half: Half, corpus: Corpus, judgements: Sequence[Judgement]) -> Iterator[str]:
    if judgements:
        yield f"{half} {corpus}"
        yield f"{score_table(judgements)}\n"


def _described(judgement: Judgement) -> str:
    case, look = judgement.case, judgement.answer.look
    mark = "FALSE" if judgement.false else "right" if judgement.wholly_right else "wrong"
    lines = [
        f"{mark} {case.id} [{case.group}, {case.language}] {case.asked}",
        f"  answer: {look.verdict}: {look.summary}" if look else "  answer: none",
        *(f"  {fault}" for fault in judgement.faults),
    ]
    return "\n".join(lines) + "\n\n"


if __name__ == "__main__":
    main()
