"""A recording has a database of its own: what waits for the real cluster is never answered from a recording."""

from __future__ import annotations

from pathlib import Path

from holmes.app.cluster import ClusterChoice, chosen_cluster
from holmes.app.service_parts import database_address
from holmes.settings.load import load_settings


async def test_a_recording_does_not_share_the_database_of_the_real_cluster(tmp_path: Path) -> None:
    settings = load_settings({"HOME": str(tmp_path)}, None, {})
    async with chosen_cluster(settings, ClusterChoice(demo=True)) as demo:
        assert database_address(demo) != database_address(settings)
    async with chosen_cluster(settings, ClusterChoice()) as live:
        assert database_address(live) == database_address(settings)


async def test_a_database_that_was_chosen_stays(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/mine.db"
    settings = load_settings({"HOME": str(tmp_path), "HOLMES_DATABASE_URL": address}, None, {})
    async with chosen_cluster(settings, ClusterChoice(demo=True)) as demo:
        assert database_address(demo) == address
