"""Renders and installs the chart with the real helm: what the tests of this folder share."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from holmes.values.json_types import JsonObject, JsonValue

ROOT: Final = Path(__file__).parents[2]
CHART: Final = ROOT / "helm" / "holmes"
DATABASE: Final[Mapping[str, JsonValue]] = {"database": {"existingSecret": "holmes-database"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifests:
    """What a rendering made."""

    text: str
    documents: tuple[JsonObject, ...]

    def kinds(self) -> set[str]:
        """The kinds that are there."""
        return {str(document["kind"]) for document in self.documents}

    def one(self, kind: str, *, component: str = "") -> JsonObject:
        """The only object of a kind, or of a component's."""
        found = self.all(kind)
        if component:
            found = [
                each for each in found if at(each, "metadata", "labels")["app.kubernetes.io/component"] == component
            ]
        (only,) = found
        return only

    def all(self, kind: str) -> list[JsonObject]:
        """All objects of a kind."""
        return [document for document in self.documents if document["kind"] == kind]

    def pod(self) -> JsonObject:
        """The specification of the server's pod."""
        return at(self.one("Deployment"), "spec", "template", "spec")

    def container(self) -> JsonObject:
        """The server's container."""
        return at(self.pod(), "containers", 0)

    def variables(self) -> dict[str, JsonObject]:
        """The container's environment by name."""
        return {str(variable["name"]): variable for variable in items(self.container(), "env")}

    def file(self, name: str) -> JsonObject:
        """A file below /etc/holmes."""
        document = yaml.safe_load(str(at(self.one("ConfigMap"), "data")[name]))
        assert isinstance(document, dict)
        return document


@dataclass(frozen=True, slots=True, kw_only=True)
class Helm:
    """The real helm, with its own home; `kubeconfig` only where it talks to a cluster."""

    program: Path
    home: Path
    kubeconfig: Path | None = None

    def attempt(
        self, *arguments: str, values: Mapping[str, JsonValue] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run helm; `values` go in as a file."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        if self.kubeconfig:
            environment["KUBECONFIG"] = str(self.kubeconfig)
        command = [str(self.program), *arguments, *(["--values=-"] if values is not None else [])]
        return subprocess.run(
            command,
            env=environment,
            input=yaml.safe_dump(dict(values)) if values is not None else "",
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def run(self, *arguments: str, values: Mapping[str, JsonValue] | None = None) -> str:
        """The output of a run that must end well."""
        done = self.attempt(*arguments, values=values)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout

    def template(
        self, values: Mapping[str, JsonValue], *, release: str = "holmes", namespace: str = "ops"
    ) -> Manifests:
        """What the chart makes of `values`."""
        text = self.run("template", release, str(CHART), f"--namespace={namespace}", values=values)
        documents = tuple(document for document in yaml.safe_load_all(text) if document)
        return Manifests(text=text, documents=documents)


def at(value: JsonValue, *path: str | int) -> JsonObject:
    """The mapping below `value`."""
    for key in path:
        if isinstance(key, int):
            assert isinstance(value, list), (path, value)
            value = value[key]
        else:
            assert isinstance(value, dict), (path, value)
            value = value[key]
    assert isinstance(value, dict), (path, value)
    return value


def items(value: JsonObject, key: str) -> Iterator[JsonObject]:
    """The mappings of a list; a list that is missing is empty."""
    found = value.get(key) or []
    assert isinstance(found, list)
    for item in found:
        assert isinstance(item, dict)
        yield item
