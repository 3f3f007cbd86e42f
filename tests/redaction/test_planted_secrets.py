"""No planted secret survives, and the text around it is unchanged."""

from __future__ import annotations

import random
import re

import pytest

from holmes.redaction.redactor import Redactor
from tests.redaction.look_alikes import LOOK_ALIKES
from tests.support.planted_secrets import BASE64_MARK, SECRET_MARK, PlantedSecret, planted_secrets

KEY = b"a key of the tests, 32 bytes long"
REDACTOR = Redactor(KEY)
PLACEHOLDER = r"\(REDACTED:[a-z0-9-]+:[0-9a-f]{8}\)"
PLANTED = planted_secrets()
BY_KIND = [pytest.param(secret, id=secret.kind) for secret in PLANTED]


@pytest.mark.row("N13")
def test_the_table_has_more_than_45_kinds_with_at_least_two_carriers_each() -> None:
    assert len({secret.kind for secret in PLANTED}) == len(PLANTED) > 45
    assert all(len(secret.templates) >= 2 for secret in PLANTED)
    assert all(
        secret.secret in carrier or secret.base64 in carrier or "\n" in secret.secret
        for secret in PLANTED
        for carrier in secret.carriers
    )


@pytest.mark.row("N13")
@pytest.mark.parametrize("planted", BY_KIND)
def test_a_planted_secret_is_nowhere_in_the_output_and_the_surroundings_are_intact(planted: PlantedSecret) -> None:
    for template, carrier in zip(planted.templates, planted.carriers, strict=True):
        redacted = REDACTOR.redact(carrier)
        for trace in planted.traces:
            assert trace not in redacted, carrier
        assert REDACTOR.redact(redacted) == redacted
        assert redacted.count("\n") == carrier.count("\n")
        if "\n" not in planted.secret:
            expected = re.escape(template)
            for mark in (SECRET_MARK, BASE64_MARK):
                expected = expected.replace(re.escape(mark), PLACEHOLDER)
            assert re.fullmatch(expected, redacted), redacted


@pytest.mark.row("N13")
@pytest.mark.parametrize("planted", BY_KIND)
def test_one_secret_has_one_number_in_all_its_carriers(planted: PlantedSecret) -> None:
    if "\n" in planted.secret:
        pytest.skip("a key over several lines has the number of its body, or of all of it where it is base64")
    numbers = {
        number
        for carrier in planted.carriers
        for number in re.findall(r"\(REDACTED:[^)]*:(\w{8})\)", REDACTOR.redact(carrier))
    }
    # In some carriers, base64 is the secret itself, because no context requires decoding.
    assert len(numbers) <= 2
    assert Redactor(b"another key of the tests").redact(planted.carriers[0]) != REDACTOR.redact(planted.carriers[0])


@pytest.mark.row("N13")
@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_a_look_alike_comes_back_as_the_same_object(text: str) -> None:
    assert REDACTOR.redact(text) is text
    document = f"before\n{text}\nafter\n"
    assert REDACTOR.redact(document) is document


@pytest.mark.row("N13")
def test_there_are_more_than_60_look_alikes() -> None:
    assert len(set(LOOK_ALIKES)) == len(LOOK_ALIKES) > 60


@pytest.mark.row("N13")
def test_secrets_and_look_alikes_in_one_long_text_do_not_disturb_each_other() -> None:
    source = random.Random(13)  # noqa: S311
    lines = [*(carrier for secret in PLANTED for carrier in secret.carriers), *(f"{text}\n" for text in LOOK_ALIKES)]
    source.shuffle(lines)
    redacted = REDACTOR.redact("---\n".join(lines))
    assert not [secret.kind for secret in PLANTED for trace in secret.traces if trace in redacted]
    # Look-alikes may follow a name of their neighbour, so only look-alikes of one line are compared.
    assert all(text in redacted for text in LOOK_ALIKES if "\n" not in text)
