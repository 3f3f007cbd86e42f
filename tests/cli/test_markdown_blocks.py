"""Streamed Markdown is cut only where nothing can change any more."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from holmes.cli.render.markdown import MarkdownBlocks

TEXT = """\
# Title

First paragraph
goes on.

- item

  continued
- next

1. one

2. two

```yaml
a: 1

b: 2
```

~~~~
```

~~~
~~~~
After the fence.

| a | b |
|---|---|
| 1 | 2 |

end
"""


def blocks_of(pieces: list[str]) -> list[str]:
    blocks = MarkdownBlocks()
    finished = [block for piece in pieces for block in blocks.feed(piece)]
    return [*finished, blocks.finish()]


def test_lists_and_fences_stay_whole() -> None:
    assert [block.strip() for block in blocks_of([TEXT])] == [
        "# Title",
        "First paragraph\ngoes on.",
        "- item\n\n  continued\n- next\n\n1. one\n\n2. two",
        "```yaml\na: 1\n\nb: 2\n```",
        "~~~~\n```\n\n~~~\n~~~~\nAfter the fence.",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "end",
    ]


@given(st.lists(st.integers(min_value=0, max_value=len(TEXT)), max_size=20))
def test_where_the_stream_is_cut_does_not_matter(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(TEXT)]
    pieces = [TEXT[start:end] for start, end in pairwise(edges)]
    assert blocks_of(pieces) == blocks_of([TEXT])


@given(st.lists(st.text(st.sampled_from("a-1.`~# \n"))))
def test_no_text_is_lost(pieces: list[str]) -> None:
    def without_blank_lines(text: str) -> list[str]:
        return [line for line in text.split("\n") if line.strip()]

    joined = "\n".join(blocks_of(pieces))
    assert without_blank_lines(joined) == without_blank_lines("".join(pieces))


def test_what_is_not_finished_can_be_seen() -> None:
    blocks = MarkdownBlocks()
    assert blocks.feed("one\n\ntwo") == []
    assert blocks.feed(" words\nth") == ["one\n"]
    assert blocks.rest == "two words\nth"
