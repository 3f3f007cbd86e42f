"""Holds every text that a person or a model may read against the patterns of `docs/words.md`."""

from __future__ import annotations

from typing import Final

import click
import pytest

from holmes.cli.main import cli
from tests.support.shown_texts import ROOT, patterns, refused, texts_below

PLACES: Final = tuple(
    str(path.relative_to(ROOT))
    for path in (
        *(each for each in sorted((ROOT / "holmes").iterdir()) if each.is_dir() or each.suffix == ".py"),
        *sorted((ROOT / "toolsets").glob("*.yaml")),
        *sorted((ROOT / "prompts").glob("*.jinja2")),
        *sorted((ROOT / "docs").glob("*.md")),
        *(ROOT / name for name in ("README.md", "CHANGELOG.md", "helm/holmes", "tests/context_rows/catalogue.py")),
    )
    if path.name != "__pycache__"
)


@pytest.mark.parametrize("place", PLACES)
def test_texts_follow_the_words(place: str) -> None:
    found = [f"{text} [{why}]" for text in texts_below(ROOT / place) if (why := refused(text.text)) is not None]
    assert found == []


def test_the_help_follows_the_words() -> None:
    helps = help_pages(cli, click.Context(cli, info_name="holmes"))
    assert len(helps) > 10
    assert [f"{page}: {why}" for page, text in helps.items() if (why := refused(text)) is not None] == []


def help_pages(command: click.Command, context: click.Context) -> dict[str, str]:
    """The help of a command and of those below it, each on one line."""
    pages = {context.command_path: " ".join(command.get_help(context).split())}
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                pages |= help_pages(below, click.Context(below, parent=context, info_name=name))
    return pages


@pytest.mark.parametrize(
    "text",
    [
        "there is no model 'x'",
        "'x' is no valid address",
        "The most that it may take",
        "What is removed is stored.",
        "Nobody is told.",
        "It goes on with the next one.",
        "The cap (T2)",
        "The file lies in a folder",
    ],
)
def test_the_patterns_refuse_the_texts_of_before(text: str) -> None:
    assert refused(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "model 'x' is no longer offered",
        "What is broken in this cluster, and why?",
        "What to do when a replica fails.",
        "the most specific rule",
        "`E` stands for an expression; it relies in part on others",
        "P05 restarts (see P10) in N-S01",
    ],
)
def test_the_patterns_accept_plain_english(text: str) -> None:
    assert refused(text) is None


def test_the_texts_of_a_file_are_found() -> None:
    found = {text.text for text in texts_below(ROOT / "tests" / "support" / "shown_texts.py")}
    assert "Print the texts of the paths." in found
    assert "The English of the demo's applications and of what linters and tests read is data." in found
    assert len(patterns()) > 20
