"""Locates the bundled folders `toolsets/` and `prompts/`.

A wheel contains both folders in `holmes/_data/`. An editable install does not contain this folder, so the checkout next
to the package is searched second. Other locations are not searched.
"""

from __future__ import annotations

from pathlib import Path

from holmes import __file__ as package_file

_PACKAGE = Path(package_file).parent


class AssetsMissing(RuntimeError):
    """A bundled folder is in neither the package nor the checkout, so the installation is broken."""


def toolset_files() -> tuple[Path, ...]:
    """Return the bundled YAML toolsets, sorted by file name. Raises `AssetsMissing`."""
    return tuple(sorted(_folder("toolsets").glob("*.yaml")))


def prompt_directory() -> Path:
    """Return the folder with the Jinja2 prompt templates. Raises `AssetsMissing`."""
    return _folder("prompts")


def demo_recording() -> Path:
    """Return the folder with the recording of the demo cluster, which is part of the package."""
    return _PACKAGE / "snapshot" / "demo"


def _folder(name: str) -> Path:
    candidates = (_PACKAGE / "_data" / name, _PACKAGE.parent / name)
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    looked_in = " and ".join(str(candidate) for candidate in candidates)
    raise AssetsMissing(f"the folder {name!r} is missing (searched in {looked_in}): reinstall Holmes")
