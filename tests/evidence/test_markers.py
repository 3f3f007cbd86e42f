"""Recognition of markers. Streaming in any chunks gives the same result as the whole text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.evidence import MarkerGroup, MarkerScanner, markers_in, scan_markers
from holmes.evidence.markers import CONTEXT_CHARACTERS, MAX_MARKER_CHARACTERS, TextOrMarkers

pytestmark = pytest.mark.row("N6")

ID = "0123456789ab"
OTHER = "fedcba9876543210"


@pytest.mark.parametrize(
    ("text", "markers"),
    [
        (f"[[{ID}:12]]", [f"[[{ID}:12]]"]),
        (f"[[{ID}:12-18]]", [f"[[{ID}:12-18]]"]),
        (f"[[{ID.upper()}:12–18]]", [f"[[{ID}:12-18]]"]),  # noqa: RUF001
        (f"[[{ID}:12-18, 25; {OTHER}:3]]", [f"[[{ID}:12-18]]", f"[[{ID}:25]]", f"[[{OTHER}:3]]"]),
        ("[[123456789012:5, 7]]", ["[[123456789012:5]]", "[[123456789012:7]]"]),
        (f"[[{ID}:1]][[{OTHER}:2]]", [f"[[{ID}:1]]", f"[[{OTHER}:2]]"]),
        (f"[[{ID}:1]], [[{OTHER}:2]]", [f"[[{ID}:1]]", f"[[{OTHER}:2]]"]),
        (f"[[[{ID}:1]]]", [f"[[{ID}:1]]"]),
        (f"[ [{ID}:1]]", []),
        (f"[[{ID}]]", []),
        (f"[[{ID}:]]", []),
        (f"[[{ID}:a]]", []),
        (f"[[{ID[:-1]}:1]]", []),
        ("[[ -f x ]]", []),
        ("[[1,2]]", []),
        ("[[1, 2], [3, 4]]", []),
        ("[[Some page]]", []),
        (f"[[{ID}:" + ",".join(["12345678"] * 30) + "]]", []),
    ],
)
def test_only_ids_with_lines_are_markers(text: str, markers: list[str]) -> None:
    assert [str(marker) for marker in markers_in(text)] == markers
    assert "".join(piece.text if isinstance(piece, MarkerGroup) else piece for piece in scan_markers(text)) == text


def joined(pieces: list[TextOrMarkers]) -> list[TextOrMarkers]:
    """`pieces` with adjacent plain texts joined."""
    found: list[TextOrMarkers] = []
    for piece in pieces:
        last = found[-1] if found else None
        if isinstance(piece, str) and isinstance(last, str):
            found[-1] = last + piece
        else:
            found.append(piece)
    return found


BRACKETS = ("[", "[[", "]", "]]", ID, f"[[{ID}:1]]", f"[[{ID}:2-3, 4]]", f"[[{OTHER}:1", "[[ -f x ]]")
SIGNS = (":", "1", "-", " ", ",", "; ", "text ", "\n", "`", "9" * 60, "中")
FRAGMENTS = st.sampled_from((*BRACKETS, *SIGNS))


@settings(max_examples=250)
@given(st.lists(FRAGMENTS, max_size=60).map("".join), st.lists(st.integers(1, 40), max_size=80))
def test_how_a_text_is_cut_into_deltas_changes_nothing(text: str, sizes: list[int]) -> None:
    scanner, pieces, position = MarkerScanner(), [], 0
    for size in [*sizes, len(text)]:
        pieces += scanner.feed(text[position : position + size])
        position += size
    pieces += scanner.finish()
    assert joined(pieces) == joined(scan_markers(text))
    assert "".join(piece.text if isinstance(piece, MarkerGroup) else piece for piece in pieces) == text


def test_text_passes_at_once_and_little_is_ever_held_back() -> None:
    scanner = MarkerScanner()
    assert scanner.feed("The pod was killed ") == ["The pod was killed "]
    assert scanner.feed("[") == []
    assert scanner.feed("1] and ") == ["[1] and "]
    assert scanner.feed("[[" + "a" * (MAX_MARKER_CHARACTERS - 3)) == []
    (passed,) = scanner.feed("bc")
    assert isinstance(passed, str)
    assert scanner.finish() == []


def test_what_stands_before_a_marker_comes_with_it() -> None:
    first, group = scan_markers("x" * 5_000 + f" so [[{ID}:1]]")
    assert isinstance(group, MarkerGroup)
    assert isinstance(first, str)
    assert group.before == first[-CONTEXT_CHARACTERS:]


def test_a_text_of_nothing_but_brackets_is_scanned_in_linear_time() -> None:
    assert joined(scan_markers("[" * 200_000)) == ["[" * 200_000]
