"""Every code block of docs is executed: files are written, commands run, outputs compared.

In a `console` block, lines that begin with `$ ` are commands and the lines below are what they print; a `yaml` block
begins with `# file: PATH` and becomes that file. Progress on standard error is left out; an error line is not. The only
other blocks are the diagram of the layers and the patterns of `words.md`. The README is in `test_docs_readme.py`.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.services.exchanges import served
from tests.services.fixtures import RunMonitor
from tests.support.command_line import Home
from tests.support.kubernetes_api import KubernetesApi, listing
from tests.support.token_server import SECRET, TokenServer, serving
from tests.support.two_clusters import two_clusters
from tests.toolsets.grafana.grafana_server import TOKEN, grafana
from tests.toolsets.mcp.running import PROCESS, TENANTS, running_server
from tests.toolsets.traces.jaeger_shop import JAEGER, RECORDED_FOR_DOCS, shop_in_jaeger
from tests.toolsets.traces.tempo_server import tempo

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
# deploy.md needs a shell and services: test_docs_deploy.py. alertmanager.md, clusters.md, grafana.md, logs.md,
# metrics.md, mcp.md and traces.md need servers, and have tests of their own. The others have no commands.
OTHERS = {"alertmanager", "architecture", "clusters", "deploy", "grafana", "logs", "mcp", "metrics", "traces", "words"}
DOCUMENTS = [path for path in PAGES if path.stem not in OTHERS]


@dataclass(frozen=True, slots=True)
class Block:
    language: str
    text: str


def blocks_of(path: Path) -> list[Block]:
    """The fenced code blocks of a document, in order."""
    found = re.findall(r"^```(\w+)\n(.*?)^```$", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [Block(language, text) for language, text in found]


def commands_of(block: Block) -> list[tuple[str, str]]:
    """The commands of a `console` block, each with what it prints."""
    parts = re.split(r"^\$ (.*)\n", block.text, flags=re.MULTILINE)
    assert parts[0] == ""
    return list(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
@pytest.mark.timeout(300)
def test_every_block_of_the_docs_does_what_it_says(
    document: Path, kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home.make(tmp_path / "home", KUBECONFIG=str(kubeconfig))
    monkeypatch.chdir(home.path)
    execute(document, home)


@pytest.mark.timeout(300)
def test_the_page_about_metrics_with_a_real_prometheus(
    prometheus: RunMonitor,
    quiet_cluster: KubernetesApi,
    kubeconfig: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    named = {"name": "prometheus", "namespace": "monitoring", "labels": {"app.kubernetes.io/name": "prometheus"}}
    spec = {"selector": {"app": "prometheus"}, "ports": [{"port": 9090}]}
    quiet_cluster.on("/api/v1/services", listing([{"metadata": named, "spec": spec}]))
    signer = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "example"}
    home = Home.make(tmp_path / "home", KUBECONFIG=str(kubeconfig), CLIENT_SECRET=SECRET, **signer)
    monkeypatch.chdir(home.path)
    with prometheus({}) as monitor, serving(TokenServer()) as tokens:
        urls = {"http://prometheus.monitoring:9090": monitor.url, "https://login.example.com": tokens.url}
        execute(ROOT / "docs" / "metrics.md", home, urls)
    assert tokens.issued


@pytest.mark.timeout(300)
def test_the_page_about_alertmanager_with_a_real_one(
    alertmanager: RunMonitor, kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home.make(tmp_path / "home", KUBECONFIG=str(kubeconfig))
    monkeypatch.chdir(home.path)
    with alertmanager({"route": {"receiver": "team"}, "receivers": [{"name": "team"}]}) as monitor:
        execute(ROOT / "docs" / "alertmanager.md", home, {"http://alertmanager.monitoring:9093": monitor.url})


@pytest.mark.timeout(300)
def test_the_page_about_logs_with_a_real_victoria_logs(
    victoria_logs_url: str, kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home.make(tmp_path / "home", KUBECONFIG=str(kubeconfig))
    monkeypatch.chdir(home.path)
    execute(ROOT / "docs" / "logs.md", home, {"http://victoria-logs.monitoring:9428": victoria_logs_url})


@pytest.mark.timeout(300)
def test_the_page_about_traces_with_jaeger_and_a_stand_in_for_tempo(
    kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home.make(tmp_path / "home", KUBECONFIG=str(kubeconfig))
    monkeypatch.chdir(home.path)
    with served(RECORDED_FOR_DOCS, real=shop_in_jaeger, server=JAEGER) as jaeger, tempo() as (other, _):
        urls = {"http://jaeger-query.tracing:16686": jaeger, "http://tempo.tracing:3200": other}
        execute(ROOT / "docs" / "traces.md", home, urls)


@pytest.mark.timeout(300)
def test_the_page_about_grafana_with_a_stand_in(
    kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home.make(tmp_path / "home", KUBECONFIG=str(kubeconfig), GRAFANA_TOKEN=TOKEN)
    monkeypatch.chdir(home.path)
    with grafana() as server:
        execute(ROOT / "docs" / "grafana.md", home, {"http://grafana.monitoring:3000": server.url})


@pytest.mark.timeout(300)
def test_the_page_about_several_clusters_with_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home.make(tmp_path / "home")
    monkeypatch.chdir(home.path)
    with two_clusters(home.path):
        execute(ROOT / "docs" / "clusters.md", home)


@pytest.mark.timeout(300)
def test_the_page_about_mcp_servers_with_real_servers(
    kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home.make(tmp_path / "home", KUBECONFIG=str(kubeconfig))
    monkeypatch.chdir(home.path)
    with running_server("streamable-http") as server, running_server("streamable-http", TENANTS) as tenants:
        execute(
            ROOT / "docs" / "mcp.md",
            home,
            {
                "http://tickets.support:8000/mcp": server.endpoint.url,
                "http://tenants.support:8000/mcp": tenants.endpoint.url,
                "command: tickets-archive": f"command: {PROCESS.command}",
                "args: [stdio]": f"args: {list(PROCESS.arguments)}",
            },
        )


def execute(document: Path, home: Home, replaced: Mapping[str, str] | None = None) -> None:
    """Write the files of a document and run its commands, with some texts of its files replaced."""
    blocks = blocks_of(document)
    assert blocks
    for block in blocks:
        if block.language == "yaml":
            first, _, text = block.text.partition("\n")
            for written, put in (replaced or {}).items():
                text = text.replace(written, put)
            assert first.startswith("# file: "), f"{document.name}: a yaml block must say which file it is"
            (home.path / first.removeprefix("# file: ")).write_text(f"{first}\n{text}")
            continue
        assert block.language == "console", f"{document.name}: nobody knows how to execute {block.language!r}"
        for command, expected in commands_of(block):
            program, *arguments = shlex.split(command)
            assert program == "holmes"
            done = home.run(*arguments)
            errors = "".join(line for line in done.stderr.splitlines(keepends=True) if line.startswith("holmes: "))
            assert _comparable(done.stdout + errors) == _comparable(expected)


def _comparable(printed: str) -> str:
    """Replace durations, and the versions of services, which are those of the system."""
    versions = re.sub(r"\b(Prometheus|Alertmanager) [\w.+~-]+", r"\1 2", printed)
    return re.sub(r"\b\d+ ms\b", "5 ms", versions)


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda path: path.stem)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_picture_of_the_rooms_has_the_layers_of_the_linter() -> None:
    (picture,) = blocks_of(ROOT / "docs" / "architecture.md")
    assert picture.language == "text"
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract.get("containers") == ["holmes"]]
    assert [re.split(r" {2,}", line)[0] for line in picture.text.splitlines()] == layers


def test_the_places_that_the_architecture_names_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    named = re.findall(r"`((?:docs|helm|holmes|prompts|tests|toolsets)/[\w./*]*)`", page)
    assert len(named) > 40
    assert [name for name in named if not list(ROOT.glob(name.rstrip("/")))] == []


def test_the_readme_names_every_page() -> None:
    readme = set(re.findall(r"\]\(docs/([\w-]+\.md)\)", (ROOT / "README.md").read_text()))
    assert {page.name for page in PAGES} == readme
