"""Quantities are parsed exactly, as Kubernetes defines them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holmes.diagnosis.facts.resources import amount, quantity, written_amount


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("100m", "0.1"),
        ("1.5Gi", "1610612736"),
        ("1e3", "1000"),
        ("1E3", "1000"),
        ("2k", "2000"),
        ("2E", "2000000000000000000"),
        ("2Ei", "2305843009213693952"),
        (".5", "0.5"),
        ("5.", "5"),
        ("+3", "3"),
        ("-1", "-1"),
        ("250n", "2.5e-7"),
        (4, "4"),
        ("0", "0"),
    ],
)
def test_every_form_of_a_quantity_is_read(written: str | int, number: str) -> None:
    assert quantity(written) == Decimal(number)


@pytest.mark.parametrize(
    "written",
    ["", "Gi", "1 Gi", "1gi", "1K", "1e", "e3", "0x10", "\u0661", "1,5", "--1", "1Gi1", None],
)
def test_what_is_no_quantity_is_none(written: str | None) -> None:
    assert quantity(written) is None
    assert amount(written) == 0


def test_a_truth_value_or_a_list_is_no_quantity() -> None:
    assert quantity(True) is None
    assert quantity(["1"]) is None


def test_the_sum_of_tenths_is_exact() -> None:
    assert sum((amount("100m") for _ in range(10)), Decimal(0)) == 1


@pytest.mark.parametrize(
    ("number", "resource", "written"),
    [
        (Decimal(1610612736), "memory", "1.5Gi"),
        (Decimal(512), "requests.memory", "512"),
        (Decimal("0.25"), "cpu", "250m"),
        (Decimal("1.5"), "limits.cpu", "1500m"),
        (Decimal(3), "cpu", "3"),
        (Decimal(0), "memory", "0"),
        (Decimal(110), "pods", "110"),
        (Decimal(10) ** 60, "cpu", "1" + "0" * 60),
    ],
)
def test_a_number_is_written_as_a_person_would(number: Decimal, resource: str, written: str) -> None:
    assert written_amount(number, resource) == written


@given(st.integers(min_value=0, max_value=10**15), st.sampled_from(["", "m", "k", "Ki", "M", "Mi", "G", "Gi"]))
def test_more_of_the_same_unit_is_more(number: int, unit: str) -> None:
    smaller, larger = quantity(f"{number}{unit}"), quantity(f"{number + 1}{unit}")
    assert smaller is not None
    assert larger is not None
    assert smaller < larger


@given(st.text(max_size=12))
def test_any_text_is_a_quantity_or_none(written: str) -> None:
    found = quantity(written)
    assert found is None or found.is_finite()
