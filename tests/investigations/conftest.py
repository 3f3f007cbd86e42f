"""Databases of both kinds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holmes.investigations.records.database import Database


@pytest.fixture(params=["sqlite", "postgresql"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    """An empty database."""
    if request.param == "sqlite":
        address = f"sqlite:///{tmp_path / 'investigations.db'}"
    else:
        address = request.getfixturevalue("postgresql_url")
    database = await Database.open(address)
    yield database
    await database.close()
