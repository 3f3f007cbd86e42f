"""Which cluster a command reads. What waits for the real cluster is never answered from a recording."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holmes.app.cluster import ClusterChoice, chosen_cluster, with_choices
from holmes.app.service_parts import database_address
from holmes.settings.load import load_settings
from holmes.settings.settings import Settings
from holmes.values.errors import ConfigError


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


CLUSTERS = "clusters:\n  eu: {context: a, kubeconfig: /eu.yaml}\n  us: {context: b}\nkubeconfig: /general.yaml\n"


def settings_of(folder: Path, text: str = CLUSTERS) -> Settings:
    file = folder / "config.yaml"
    file.write_text(text)
    return load_settings({"HOME": str(folder)}, file)


async def test_a_cluster_of_the_configuration_is_opened_by_its_name(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    for name, kubeconfig, context in (("eu", "/eu.yaml", "a"), ("us", "/general.yaml", "b")):
        async with chosen_cluster(settings, ClusterChoice(name=name)) as chosen:
            variables = with_choices(chosen, {"KUBECONFIG": "/of/the/environment"}).as_dict()
            assert (chosen.cluster, chosen.investigation.cluster_name) == (name, name)
            assert (variables["KUBECONFIG"], variables["HOLMES_KUBE_CONTEXT"]) == (kubeconfig, context)


async def test_the_service_account_is_used_without_any_kubeconfig(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "clusters: {here: {in_cluster: true}}\nkubeconfig: /x\nkube_context: y\n")
    async with chosen_cluster(settings, ClusterChoice()) as chosen:
        variables = with_choices(chosen, {}).as_dict()
        assert chosen.cluster == "here", "the only cluster needs no choice"
        assert variables["KUBECONFIG"] == "/dev/null"
        assert "HOLMES_KUBE_CONTEXT" not in variables


@pytest.mark.parametrize(
    ("text", "choice", "said"),
    [
        (CLUSTERS, ClusterChoice(), "several clusters are configured: eu, us; choose one with --cluster"),
        (CLUSTERS, ClusterChoice(name="mars"), "unknown cluster 'mars'; configured clusters: eu, us"),
        ("", ClusterChoice(name="mars"), "unknown cluster 'mars'; add it below `clusters`"),
        (f"{CLUSTERS}default_cluster: mars\n", ClusterChoice(), "default_cluster: unknown cluster 'mars'"),
    ],
)
async def test_a_cluster_is_never_guessed(text: str, choice: ClusterChoice, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        async with chosen_cluster(settings_of(tmp_path, text), choice):
            pass


async def test_a_default_and_options_of_kubectl_choose_as_well(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, f"{CLUSTERS}default_cluster: us\n")
    async with chosen_cluster(settings, ClusterChoice()) as chosen:
        assert chosen.cluster == "us"
    async with chosen_cluster(settings, ClusterChoice(by_kubeconfig=True)) as chosen:
        assert (chosen.cluster, chosen.investigation.kube_context) == ("", None)
    async with chosen_cluster(settings, ClusterChoice(), needs_one=False) as chosen:
        assert chosen.serves_several


def test_two_clusters_cannot_be_chosen_at_once() -> None:
    clash = "--demo, --snapshot, --cluster and --kubeconfig/--context are mutually exclusive"
    assert ClusterChoice(name="eu", demo=True).clash == clash
    assert ClusterChoice(name="eu", by_kubeconfig=True).clash == clash
    assert ClusterChoice(name="eu", snapshot=Path("x")).clash == clash
    assert ClusterChoice(name="eu").clash == ""
