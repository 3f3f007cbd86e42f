"""Reads Kubernetes quantities (`100m`, `1.5Gi`, `1e3`, `2k`) exactly, and writes numbers as quantities.

Called by rules that compare requests, limits, capacities and quotas.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from holmes.values.json_types import JsonValue

_FORM: Final = re.compile(
    r"(?P<number>[+-]?(?:\d{1,40}\.?\d{0,40}|\.\d{1,40}))"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?\d{1,3}))?",
    re.ASCII,
)
_BINARY: Final = {f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", 1)}
_DECIMAL: Final = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "k": Decimal(10) ** 3, "M": Decimal(10) ** 6,
    "G": Decimal(10) ** 9, "T": Decimal(10) ** 12, "P": Decimal(10) ** 15, "E": Decimal(10) ** 18,
}  # fmt: skip
_FACTORS: Final = {**_BINARY, **_DECIMAL}
_BYTES: Final = ("memory", "storage", "hugepages-")


def quantity(written: JsonValue) -> Decimal | None:
    """The number behind a quantity, in cores, bytes or pieces; None for what is none."""
    if isinstance(written, bool) or not isinstance(written, str | int):
        return None
    return _parsed(str(written).strip())


@lru_cache(maxsize=4096)
def _parsed(written: str) -> Decimal | None:
    found = _FORM.fullmatch(written)
    if found is None:
        return None
    number = Decimal(found["number"])
    if found["exponent"]:
        return number.scaleb(int(found["exponent"]))
    return number * _FACTORS.get(found["suffix"] or "", Decimal(1))


def amount(written: JsonValue) -> Decimal:
    """The number behind a quantity, 0 for what is none."""
    return quantity(written) or Decimal(0)


def written_amount(number: Decimal, resource: str) -> str:
    """A number as a person would write it: memory and storage with `Mi` or `Gi`, cores below one in `m`."""
    if is_bytes(resource):
        for suffix in ("Ti", "Gi", "Mi", "Ki"):
            if abs(number) >= _BINARY[suffix]:
                return f"{_plain(number / _BINARY[suffix])}{suffix}"
        return _plain(number)
    if resource.rpartition(".")[2] == "cpu" and number != number.to_integral_value():
        return f"{_plain(number * 1000)}m"
    return _plain(number)


def is_bytes(resource: str) -> bool:
    """Whether the resource is counted in bytes: `memory`, `requests.storage`, `ephemeral-storage`."""
    return any(part in resource for part in _BYTES)


def _plain(number: Decimal) -> str:
    """With at most two places, without zeros at the end."""
    rounded = f"{number:.2f}".rstrip("0").rstrip(".")
    return rounded if rounded not in {"", "-0"} else "0"
