"""YAML files of users: bounded, and every mistake is one line with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from holmes.yaml_documents import YamlError, parse_document, read_document

LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 9)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &a [*a]\n", "too many values"),
        ("a: &a {b: *a}\n", "too many values"),
        (LAUGHS, "too many values"),
        ("[" * 200_000, "test.yaml: the file has more than 100 nested levels"),
        ("[" * 200_000 + "]" * 200_000, "more than 100 nested levels"),
        ("{a: " * 200_000 + "}" * 200_000, "more than 100 nested levels"),
        ("- " * 100_000 + "x", "more than 100 nested levels"),
        ("".join(f"{' ' * level}a:\n" for level in range(3_000)), "more than 100 nested levels"),
        ("".join(f"{' ' * level}a:\n{' ' * level}-\n" for level in range(80)), "more than 100 nested levels"),
        ("a: 1\nb: 2\na: 3\n", "test.yaml:3: duplicate key 'a'; first defined in line 1"),
        ("a: [1\n", "test.yaml:2: the file is not valid YAML"),
    ],
    ids=[
        "circle in a list",
        "circle in a mapping",
        "aliases that explode",
        "open lists",
        "lists",
        "mappings",
        "dashes",
        "lines",
        "two levels in a column",
        "twice",
        "broken",
    ],
)
def test_a_file_that_cannot_be_used_is_one_line(text: str, message: str) -> None:
    with pytest.raises(YamlError) as caught:
        parse_document(text, source="test.yaml")
    assert message in str(caught.value)


def test_a_hundred_levels_are_read() -> None:
    document = parse_document("[" * 100 + "]" * 100, source="test.yaml")
    assert document.place((0,) * 99) == "test.yaml:1"


def test_aliases_and_merge_keys_work() -> None:
    document = parse_document("base: &base {x: 1}\nmore:\n  <<: *base\n  y: [2]\n", source="test.yaml")
    assert document.content == {"base": {"x": 1}, "more": {"x": 1, "y": [2]}}
    assert document.place(("more", "y", 0)) == "test.yaml:4"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/dev/zero", "larger than 10 MB"),
        ("no/such", "file not found"),
        ("a\0b", "cannot be read"),
        ("/", "cannot"),
    ],
)
def test_what_is_no_file_is_one_line_and_never_read_without_end(path: str, message: str) -> None:
    with pytest.raises(YamlError, match=message):
        read_document(Path(path))
