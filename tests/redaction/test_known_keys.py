"""A configured key is masked everywhere, and ordinary words are not."""

from __future__ import annotations

import pytest

from holmes.redaction.redactor import without_known_keys
from tests.support.planted_forms import random_text

MESSAGE = "the server rejected the key test: no such model, none is key-less (anything else is an error)"


@pytest.mark.parametrize("key", ["", "e", "a", "key", "test", "none", "no", "anything", "error", "the "])
def test_a_key_of_a_few_common_letters_masks_no_words(key: str) -> None:
    assert without_known_keys(MESSAGE, [key]) is MESSAGE


@pytest.mark.parametrize("length", [8, 24, 60])
def test_a_key_is_masked_wherever_it_stands_as_a_word(length: int) -> None:
    key = "k" + random_text("known key", length - 1)
    for template in ("invalid key {}", "key={}, refused", '{{"key":"{}"}}', "Bearer {}\n{}"):
        assert without_known_keys(template.format(key, key), [key]) == template.format("***", "***")
    assert without_known_keys(f"x{key}y", [key]) == f"x{key}y"
