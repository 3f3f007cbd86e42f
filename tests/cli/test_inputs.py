"""What goes with a question, and pipes that never end."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from holmes.cli.commands.inputs import MAX_INPUT_BYTES, collect_question, read_piped_text, read_text_file
from holmes.settings.load import load_settings
from holmes.values.errors import ConfigError
from tests.support.deadlines import ends_before


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


def test_a_fifo_without_a_writer_and_a_device_without_an_end_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with ends_before(30):
        with pytest.raises(ConfigError, match=r"fifo.*no data arrived within 0\.2 s"):
            read_text_file(tmp_path / "fifo", wait_seconds=0.2)
        with pytest.raises(ConfigError, match="larger than 64 MB"):
            read_text_file(Path("/dev/zero"))


def test_a_pipe_that_stays_silent_is_refused() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"half")
    with ends_before(30), pytest.raises(ConfigError, match=r"no data arrived within 0\.2 s"):
        read_text_file(Path(f"/dev/fd/{reading}"), wait_seconds=0.2)
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize("content", [b"", b"what it printed\n"])
def test_the_output_of_another_command_is_a_file(content: bytes) -> None:
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    with ends_before(10):
        assert read_text_file(Path(f"/dev/fd/{reading}")) == content.decode()
    os.close(reading)


def test_a_fifo_with_a_late_writer_is_read(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Timer(0.3, fifo.write_text, ("late",))
    writer.start()
    with ends_before(30):
        assert read_text_file(fifo) == "late"
    writer.join()


def test_a_config_file_that_never_ends_is_refused() -> None:
    with ends_before(30), pytest.raises(ConfigError, match="larger than 10 MB"):
        load_settings({}, Path("/dev/zero"))


def test_a_pipe_that_never_ends_is_cut_and_says_so() -> None:
    reading, writing = os.pipe()
    stop = threading.Event()

    def drip() -> None:
        while not stop.wait(0.02):
            os.write(writing, b"tick\n")

    writer = threading.Thread(target=drip)
    writer.start()
    notices: list[str] = []
    with os.fdopen(reading) as stream, ends_before(30):
        text = read_piped_text(stream, 5, notices.append, total_seconds=0.3)
        stop.set()
        writer.join()
    os.close(writing)
    assert text.startswith("tick\n")
    assert notices == ["standard input did not end within 0.3 s; only the data until then is used"]


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
