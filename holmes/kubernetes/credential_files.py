"""Reads the certificates, keys and tokens that a kubeconfig refers to.

Only regular files of at most 1 MB are read, because a pipe or a device can block or never end.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from holmes.values.errors import ClusterUnreachable

if TYPE_CHECKING:
    from pathlib import Path

_LIMIT_BYTES: Final = 1_000_000


def read_credential_file(path: Path) -> bytes:
    """Return the content of a file. Raises `OSError` with a `strerror` for the user. Never waits for data."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except ValueError as error:
        raise OSError(errno.EINVAL, "the path contains a NUL character") from error
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        content = bytearray()
        while piece := os.read(file, 65_536):
            content += piece
            if len(content) > _LIMIT_BYTES:
                raise OSError(errno.EFBIG, f"it is larger than {_LIMIT_BYTES // 1_000_000} MB")
        return bytes(content)
    finally:
        os.close(file)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pem:
    """A certificate or key, given as its content or as the file that contains it. `data` has priority."""

    what: str
    data: bytes | None = field(default=None, repr=False)
    path: Path | None = None

    def read(self) -> bytes | None:
        """Return the content, or None if neither `data` nor `path` is set.

        Raises `ClusterUnreachable` if the file cannot be read.
        """
        if self.data is not None or self.path is None:
            return self.data
        try:
            return read_credential_file(self.path)
        except OSError as error:
            raise ClusterUnreachable(
                f"Cannot read the {self.what} {str(self.path)!r} that the kubeconfig specifies: {error.strerror}; "
                "correct the kubeconfig or log in to the cluster again"
            ) from error
