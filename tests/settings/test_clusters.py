"""Several clusters, as the config file names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from holmes.settings.load import load_settings
from holmes.settings.settings import Settings
from holmes.values.errors import ConfigError


def load(folder: Path, text: str, **variables: str) -> Settings:
    file = folder / "config.yaml"
    file.write_text(text)
    return load_settings({"HOME": str(folder), **variables}, file)


def test_clusters_have_a_kubeconfig_a_context_or_the_pod(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        "clusters:\n  eu: {kubeconfig: ~/eu.yaml}\n  us: {context: admin@us}\n  here: {in_cluster: true}\n"
        "default_cluster: eu\nalerts: {cluster_label: site}\n",
    )
    eu, us, here = (settings.clusters.clusters[name] for name in ("eu", "us", "here"))
    assert (eu.kubeconfig, eu.context) == (tmp_path / "eu.yaml", None)
    assert (us.kubeconfig, us.context) == (None, "admin@us")
    assert str(here.kubeconfig_or(tmp_path / "other")) == "/dev/null"
    assert (settings.clusters.default_cluster, settings.alerts.cluster_label) == ("eu", "site")
    assert settings.serves_several


def test_the_variable_overrides_the_default_cluster(tmp_path: Path) -> None:
    settings = load(tmp_path, "clusters: {eu: {context: a}}\ndefault_cluster: us\n", HOLMES_CLUSTER="eu")
    assert settings.clusters.default_cluster == "eu"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("clusters:\n  eu: {}\n", 2, "expected 'kubeconfig' and/or 'context', or 'in_cluster: true'"),
        ("clusters:\n  eu: {in_cluster: true, context: a}\n", 2, "expected 'kubeconfig' and/or 'context'"),
        ("clusters:\n  eu: {contxt: a}\n", 2, "unknown key"),
        ("clusters:\n  ../eu: {context: a}\n", 2, "must match the pattern"),
        ("clusters:\n  eu: {context: ''}\n", 2, "must not be empty"),
        ("clusters: [eu]\n", 1, "must be an object"),
    ],
)
def test_a_cluster_that_cannot_be_reached_in_one_way_is_one_line(
    text: str, line: int, said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as raised:
        load(tmp_path, text)
    assert str(raised.value).startswith(f"{tmp_path}/config.yaml:{line}: ")
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
