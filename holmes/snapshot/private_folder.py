"""Creates private temporary folders, and removes the folders of processes that were killed."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

_FOLDERS = "holmes-snapshot-"


def private_folder() -> Path:
    """Create a folder with the id of this process in its name. The caller removes it.

    Removes the folders of killed processes.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{_FOLDERS}*-*"):
        owner = left.name.removeprefix(_FOLDERS).partition("-")[0]
        with suppress(OSError, OverflowError):
            if owner.isdecimal() and left.lstat().st_uid == os.getuid() and not left.is_symlink() and _is_over(owner):
                shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{_FOLDERS}{os.getpid()}-"))


def _is_over(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False
