"""Where `toolsets/` and `prompts/` live; the only place that knows.

A wheel carries them as `holmes/_data/`; an editable install has no such copy, so the checkout beside the package is
looked at second. Called by the composition root and by whoever renders a prompt; refuses to guess any further.
"""

from __future__ import annotations

from pathlib import Path

from holmes import __file__ as package_file

_PACKAGE = Path(package_file).parent


class AssetsMissing(RuntimeError):
    """Neither the package nor the checkout has the folder: the installation is broken."""


def toolset_files() -> tuple[Path, ...]:
    """The YAML toolsets that are shipped, sorted by file name. Raises `AssetsMissing`."""
    return tuple(sorted(_folder("toolsets").glob("*.yaml")))


def prompt_directory() -> Path:
    """The folder of the Jinja2 prompt templates. Raises `AssetsMissing`."""
    return _folder("prompts")


def demo_recording() -> Path:
    """The recorded cluster of `--demo`, part of the package."""
    return _PACKAGE / "snapshot" / "demo"


def _folder(name: str) -> Path:
    candidates = (_PACKAGE / "_data" / name, _PACKAGE.parent / name)
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    looked_in = " and ".join(str(candidate) for candidate in candidates)
    raise AssetsMissing(f"the folder {name!r} is missing (looked in {looked_in}): install Holmes again")
