"""The only place that reads the variables of this process, and the file that a user adds to them."""

from __future__ import annotations

import os
import re
from io import StringIO
from typing import TYPE_CHECKING

from holmes.settings.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LARGEST_BYTES = 1_000_000


def process_environment() -> Mapping[str, str]:
    """A copy of the variables of this process."""
    return dict(os.environ)


def add_env_file(path: Path) -> None:
    """Set the variables of a file of `NAME=value` lines that this process does not have yet.

    Quotes, `export` and comments are as in a shell; nothing is expanded. Raises `SettingsError` that names file and
    line but never a value, which may be a secret; then nothing is set.
    """
    for name, value in _read_env_file(path).items():
        os.environ.setdefault(name, value)


def _read_env_file(path: Path) -> dict[str, str]:
    from dotenv.parser import parse_stream  # heavy for a command that has no such file

    variables: dict[str, str] = {}
    with _text_of(path) as stream:
        for binding in parse_stream(stream):
            if not binding.error and binding.key is None:  # a comment, or empty lines
                continue
            leading = len(binding.original.string) - len(binding.original.string.lstrip())
            line = binding.original.line + binding.original.string[:leading].count("\n")
            name, value = binding.key or "", binding.value
            if binding.error or value is None or not _NAME.fullmatch(name) or "\0" in value:
                message = f"{path}:{line}: not a NAME=value line; write one variable in each line, comments after '#'"
                raise SettingsError(message)
            variables[name] = value
    return variables


def _text_of(path: Path) -> StringIO:
    """The content of the file. Raises `SettingsError`."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_BYTES + 1)
        text = content.decode("utf-8-sig")
    except OSError as error:
        message = f"the env file '{path}' cannot be read: {error.strerror}; check the path after --env-file"
        raise SettingsError(message) from None
    except UnicodeDecodeError:
        message = f"the env file '{path}' is not UTF-8 text; save it as UTF-8"
        raise SettingsError(message) from None
    if len(content) > _LARGEST_BYTES:
        message = f"the env file '{path}' is larger than {_LARGEST_BYTES:,} bytes; is it the right file?"
        raise SettingsError(message)
    return StringIO(text)


def trust_own_authorities() -> None:
    """Make this process, and all that it starts, trust CERTIFICATE. Raises `SettingsError` when that is not valid."""
    if os.environ.get("CERTIFICATE"):
        # Imported here: nearly nobody needs it.
        from holmes.settings.certificate import certificate_variables

        os.environ.update(certificate_variables(os.environ))
