"""The catalogue of the shipped toolsets, compiled once for each environment."""

from __future__ import annotations

from functools import cache

from holmes.assets import toolset_files
from holmes.toolsets.catalogue import Catalogue, CatalogueFiles, load_catalogue, read_catalogue
from holmes.values.environment import Environment


@cache
def shipped_catalogue(environment: Environment | None = None) -> Catalogue:
    """All toolsets in `toolsets/`, without those of installed packages."""
    written = read_catalogue(CatalogueFiles(shipped=toolset_files()), entry_points=())
    return load_catalogue(written, environment or Environment())
