"""What goes with a question, and pipes that never end."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from holmes.cli.commands.inputs import MAX_INPUT_BYTES, collect_question, read_piped_text, read_text_file
from holmes.values.errors import ConfigError
from tests.support.deadlines import ends_before

if TYPE_CHECKING:
    from pathlib import Path


def ignore(_: str) -> None:
    return


def test_piped_text_goes_along_with_the_question() -> None:
    question = collect_question("why?", None, (), "log line\n")
    assert question.text == "why?"
    assert [(item.name, item.text) for item in question.attachments] == [("standard input", "log line\n")]


def test_piped_text_is_the_question_when_there_is_no_other() -> None:
    question = collect_question(None, None, (), "why?\n")
    assert (question.text, question.attachments) == ("why?", ())


def test_files_go_along_and_bytes_that_are_not_text_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"caf\xe9\n")
    question = collect_question("why?", None, (tmp_path / "a.log",), "")
    assert question.attachments[0].text == "caf\N{REPLACEMENT CHARACTER}\n"


def test_the_question_can_be_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("why?\n", encoding="utf-8")
    assert collect_question(None, tmp_path / "q.txt", (), "").text == "why?"


def test_two_questions_are_refused(tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("why?", encoding="utf-8")
    with pytest.raises(ConfigError, match="not both"):
        collect_question("how?", tmp_path / "q.txt", (), "")


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.log.*No such file"):
        read_text_file(tmp_path / "gone.log")
    with pytest.raises(ConfigError, match="directory"):
        read_text_file(tmp_path)
    (tmp_path / "core").write_bytes(b"\x7fELF\x00")
    with pytest.raises(ConfigError, match="not text"):
        read_text_file(tmp_path / "core")
    (tmp_path / "empty").touch()
    with pytest.raises(ConfigError, match="empty"):
        collect_question(None, tmp_path / "empty", (), "")


def test_a_huge_file_is_refused_before_it_is_read_whole(tmp_path: Path) -> None:
    huge = tmp_path / "huge.log"
    with huge.open("wb") as file:
        file.truncate(50 * MAX_INPUT_BYTES)
    with pytest.raises(ConfigError, match="64 MB"):
        read_text_file(huge)


def test_a_closed_pipe_is_read_to_its_end() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"all")
    os.close(writing)
    with os.fdopen(reading) as stream:
        assert read_piped_text(stream, 5, ignore) == "all"


def test_an_open_pipe_without_data_does_not_hang_and_says_so() -> None:
    reading, writing = os.pipe()
    notices: list[str] = []
    with os.fdopen(reading) as stream, ends_before(30):
        assert read_piped_text(stream, 0.2, notices.append) == ""
    assert len(notices) == 1
    assert "sent no data for 0.2 s and is treated as empty" in notices[0]
    os.close(writing)


def test_a_pipe_that_stays_open_gives_what_came_and_says_so() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"half")
    notices: list[str] = []
    with os.fdopen(reading) as stream:
        assert read_piped_text(stream, 0.2, notices.append) == "half"
    assert "is treated as finished" in notices[0]
    os.close(writing)


def test_no_standard_input_at_all_is_nothing() -> None:
    assert read_piped_text(None, 5, ignore) == ""
    with open(os.devnull, encoding="utf-8") as stream:  # noqa: PTH123  the kind of stream a daemon has
        assert read_piped_text(stream, 5, ignore) == ""
