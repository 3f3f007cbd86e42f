"""Without an extra every command works except `holmes serve`: its packages are imported only where they are used."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.command_line import Home, provider_config
from tests.support.openai_server import OpenAIServer, Reply

ROOT = Path(__file__).parent.parent.parent
ALERT = {"status": "firing", "labels": {"alertname": "KubePodCrashLooping", "namespace": "shop", "pod": "cart-0"}}


def needed(requirements: Iterable[str]) -> set[str]:
    """The installed packages that these requirements name, and all that those need themselves."""
    found: set[str] = set()
    waiting = [(Requirement(each), "") for each in requirements]
    seen: set[tuple[str, str]] = set()
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        package = canonicalize_name(requirement.name)
        for wanted in {"", *requirement.extras}:
            if (package, wanted) in seen:
                continue
            seen.add((package, wanted))
            with suppress(PackageNotFoundError):  # for another platform
                waiting += [(Requirement(each), wanted) for each in distribution(package).requires or ()]
                found.add(package)
    return found


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """The environment in which no module of an extra can be imported."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = chain.from_iterable(project["optional-dependencies"].values())
    optional = needed(extras) - needed(project["dependencies"])
    assert {"sqlalchemy", "dbos", "fastapi", "slack-sdk"} <= optional
    folder = tmp_path / "missing"
    folder.mkdir()
    for module, packages in packages_distributions().items():
        if {canonicalize_name(package) for package in packages} <= optional:
            (folder / f"{module}.py").write_text(f"raise ModuleNotFoundError('No module named {module}')\n")
    return {"PYTHONPATH": str(folder)}


def test_questions_scans_and_alerts_need_no_extra(bare: dict[str, str], tmp_path: Path) -> None:
    home = Home.make(tmp_path / "home", **bare)
    alerts = tmp_path / "alerts.json"
    alerts.write_text(json.dumps({"alerts": [ALERT]}))
    commands = (
        ("ask", "-n", "--demo", "why is search failing in namespace shop?"),
        ("investigate", "alertmanager", "--demo", "--alertmanager-file", str(alerts)),
        ("scan", "--demo"),
        ("toolset", "list"),
        ("rules", "list"),
    )
    for command in commands:
        done = home.run(*command)
        assert (done.exit_code, "Traceback" in done.stderr) == (0, False), done.stderr


def test_a_model_needs_no_extra(bare: dict[str, str], tmp_path: Path) -> None:
    with OpenAIServer(lambda _: Reply(text="It is the network.")) as server:
        home = Home.make(tmp_path / "home", config=provider_config(server.base_url), **bare)
        done = home.run("ask", "-n", "--demo", "why?")
    assert "It is the network." in done.stdout, done.stderr
