"""The fingerprint of labels as Alertmanager computes it. Called for alerts that were sent without one.

The same labels must get the same identity as in a payload that has it: FNV-1a, 64 bits, over names and values in the
order of the names, a byte 0xff behind each. Labels without a value do not exist for Alertmanager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_OFFSET: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3
_MASK: Final = (1 << 64) - 1
_SEPARATOR: Final = b"\xff"


def fingerprint_of(labels: Mapping[str, str]) -> str:
    """16 hexadecimal digits."""
    named = sorted((name.encode(), value.encode()) for name, value in labels.items() if value)
    state = _OFFSET
    for name, value in named:
        for byte in b"".join((name, _SEPARATOR, value, _SEPARATOR)):
            state = ((state ^ byte) * _PRIME) & _MASK
    return f"{state:016x}"
