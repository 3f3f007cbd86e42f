"""The real cluster with the kinds and objects of a system, and the toolsets as `holmes` opens them there."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml

from holmes.assets import toolset_files
from holmes.redaction.redactor import Redactor
from holmes.toolsets.catalogue import CatalogueFiles, load_catalogue, read_catalogue
from holmes.toolsets.readiness import check_toolsets
from holmes.toolsets.registry import ToolsetContext
from holmes.toolsets.wrappers import Redacted
from holmes.values.environment import Environment
from holmes.values.messages import ToolCallId
from holmes.values.tools import ToolInvocation
from tests.cluster.handle import wait_until
from tests.cluster.layout import Layout, keep_cluster
from tests.services.fixtures import needed_programs
from tests.toolsets.shipped.kinds import FOLDER, definitions, systems

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from holmes.toolsets.readiness import Readiness
    from holmes.values.tools import ToolResult
    from tests.cluster.fixtures import Cluster
    from tests.toolsets.shipped.examples import Example

_APPLY: Final = ("apply", "--server-side", "--force-conflicts", "--field-manager=controller")


class ShippedToolsets:
    """The cluster. A system is installed when its first test asks, and removed after the last test of the package."""

    def __init__(self, cluster: Cluster, home: Path) -> None:
        self.cluster = cluster
        self.environment = Environment.of(
            {
                "PATH": f"{cluster.kubectl.parent}:{os.environ['PATH']}",
                "HOME": str(home),
                "KUBECONFIG": str(cluster.admin),
            }
        )
        self._home = home
        self._installed: list[Path] = []
        self._readiness: dict[str, Readiness] = {}

    async def check(self) -> Readiness:
        """Check all shipped toolsets, as `holmes` does when it starts."""
        files = CatalogueFiles(shipped=toolset_files())
        catalogue = load_catalogue(read_catalogue(files, entry_points=()), self.environment, deferred=files.shipped)
        context = ToolsetContext(environment=self.environment, redactor=Redactor(b"a key of the tests, 32 bytes long"))
        return await check_toolsets(catalogue, context)

    async def run(self, example: Example) -> ToolResult:
        """Install the example's system, and call its tool with everything that the product has around it."""
        if example.system not in self._readiness:
            self._install(example.system)
            self._readiness[example.system] = await self.check()
        for ready in self._readiness[example.system].ready:
            for tool in ready.toolset.tools:
                if tool.name == example.tool:
                    redacted = Redacted(ready.toolset, Redactor(b"a key of the tests, 32 bytes long"))
                    return await redacted.call(
                        ToolInvocation(call_id=ToolCallId("c"), tool=tool, arguments=example.arguments)
                    )
        states = [each for each in self._readiness[example.system].statuses if each.state != "enabled"]
        raise AssertionError(f"no toolset that can run has {example.tool!r}: {states}")

    def _install(self, system: str) -> None:
        custom: set[str] = set()
        if system in systems():
            with needed_programs():
                kinds = definitions(system, Layout.from_environment())
            custom = {each["spec"]["names"]["kind"] for each in json.loads(kinds.read_text())["items"]}
            self._installed.append(kinds)
            self.cluster.run(*_APPLY, f"--filename={kinds}")
            self._wait_for(kinds)
        path = FOLDER / system / "objects.yaml"
        if path.is_file():
            documents = [each for each in yaml.safe_load_all(path.read_text()) if each]
            built_in = [each for each in documents if each["kind"] not in custom]
            self._installed.append(self._written(f"{system}.json", _to_delete(built_in)))
            self._apply(system, documents)
            # Of kinds that are not custom here, the status is written with a request of its own.
            if with_status := [each for each in built_in if "status" in each]:
                statuses = self._written(f"{system}-status.json", with_status)
                self.cluster.run(*_APPLY, "--subresource=status", f"--filename={statuses}")
            # Pods whose logs are read run for real.
            if any("holmes.test/runs" in each["metadata"].get("labels", {}) for each in documents):
                ready = ("wait", "--all-namespaces", "--for=condition=Ready", "--timeout=50s")
                self.cluster.run(*ready, "--selector=holmes.test/runs", "pods")

    def _wait_for(self, kinds: Path) -> None:
        """Wait for kinds. `kubectl wait` fails for one that has no conditions yet."""
        command = ("wait", "--for=condition=Established", "--timeout=50s", f"--filename={kinds}")
        wait_until("the kinds", lambda: self.cluster.attempt(*command), lambda done: done.returncode == 0)

    def _apply(self, system: str, documents: Sequence[dict[str, Any]]) -> None:
        """Write owners before what they own, whose references get the real uid: with another one, it is deleted."""
        uids: dict[tuple[str, str, str], str] = {}
        left = list(documents)
        while left:
            ready = [each for each in left if all(owner in uids for owner in _owners(each))]
            assert ready, f"the owners of these objects are missing: {[each['metadata'] for each in left]}"
            left = [each for each in left if each not in ready]
            for each in ready:
                for reference, owner in zip(_references(each), _owners(each), strict=True):
                    reference["uid"] = uids[owner]
            path = self._written(f"{system}-round.json", ready)
            applied = json.loads(self.cluster.run(*_APPLY, f"--filename={path}", "--output=json"))
            uids |= {_identity(each): each["metadata"]["uid"] for each in applied.get("items", [applied])}

    def _written(self, name: str, documents: Sequence[dict[str, Any]]) -> Path:
        path = self._home / name
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)}))
        return path

    def remove(self) -> None:
        """Delete everything, because a kind that stays would appear in the tests of others.

        A cluster that is kept for the next session keeps its kinds: it would find them half deleted.
        """
        if self._installed and not keep_cluster():
            files = (f"--filename={path}" for path in self._installed)
            self.cluster.run("delete", "--ignore-not-found", "--wait=false", *files)


def _to_delete(built_in: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what does not disappear with its kind or its namespace."""
    namespaces = {each["metadata"]["name"] for each in built_in if each["kind"] == "Namespace"}
    return [each for each in built_in if each["metadata"].get("namespace") not in namespaces]


def _references(document: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = document["metadata"].get("ownerReferences", [])
    return found


def _owners(document: dict[str, Any]) -> list[tuple[str, str, str]]:
    namespace = document["metadata"].get("namespace", "")
    return [(each["kind"], each.get("namespace", namespace), each["name"]) for each in _references(document)]


def _identity(document: dict[str, Any]) -> tuple[str, str, str]:
    return document["kind"], document["metadata"].get("namespace", ""), document["metadata"]["name"]


@pytest.fixture(scope="package")
def shipped(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ShippedToolsets]:
    """Yield the toolsets on the real cluster."""
    toolsets = ShippedToolsets(cluster, tmp_path_factory.mktemp("shipped"))
    yield toolsets
    toolsets.remove()
