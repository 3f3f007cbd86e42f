"""A share of the development corpora gets no false answer, under coverage. `test_corpus.py` answers all cases."""

from __future__ import annotations

from typing import Final

import pytest

from tests.triage.corpus.asking import answers_to
from tests.triage.corpus.loading import CORPORA, Corpus, read_corpus
from tests.triage.corpus.scoring import judge

EVERY: Final = 96
FEWEST: Final = 2


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("corpus", CORPORA)
def test_a_share_of_a_corpus_has_no_false_answer(corpus: Corpus) -> None:
    judgements = [judge(each) for each in answers_to(read_corpus("development", corpus)[::EVERY])]
    assert len(judgements) >= FEWEST
    assert [each.case.id for each in judgements if each.false or each.answer.look is None] == []
