"""The key of the placeholders: made once, private, the same for every process."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from holmes.stores.secret_key import KEY_BYTES, load_or_create_key

if TYPE_CHECKING:
    from pathlib import Path


def test_the_key_is_made_once_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "results" / "redaction.key"
    key = load_or_create_key(path)
    assert len(key) == KEY_BYTES
    assert load_or_create_key(path) == key
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [each.name for each in path.parent.iterdir()] == ["redaction.key"]


def test_all_who_make_it_at_once_get_the_same(tmp_path: Path) -> None:
    path = tmp_path / "redaction.key"
    program = (
        "import sys; from pathlib import Path; from holmes.stores.secret_key import load_or_create_key; "
        "print(load_or_create_key(Path(sys.argv[1])).hex())"
    )

    def run(_: int) -> str:
        return subprocess.run(
            [sys.executable, "-c", program, str(path)], check=True, capture_output=True, text=True, timeout=60
        ).stdout

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(run, range(8)))) == 1


def test_where_no_file_can_be_kept_there_is_a_key_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert len(load_or_create_key(tmp_path / "file" / "redaction.key")) == KEY_BYTES
    (tmp_path / "short").write_bytes(b"short")
    assert len(load_or_create_key(tmp_path / "short")) == KEY_BYTES
