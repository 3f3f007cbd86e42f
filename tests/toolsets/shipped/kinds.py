"""Fetches the definitions of custom kinds from the Go modules of their projects, at pinned versions.

`python -m tests.services build` fetches what the cache lacks; everything else only looks. Kept is what the API server
needs to store and validate objects: without texts for people and other versions. The status is an ordinary field, so
that a test writes an object with its status in one request.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import shutil
import subprocess
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import yaml

from tests.cluster.errors import CannotRunHereError, ClusterError
from tests.cluster.programs import building

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.layout import Layout

Json: TypeAlias = Any
JsonObject: TypeAlias = dict[str, Any]
FOLDER: Final = Path(__file__).parent
_FORMAT: Final = "1"
_DEFINITION: Final = "CustomResourceDefinition"
_SECONDS: Final = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One Go module of `kinds.yaml`: `path@version`, its hash as in go.sum, and patterns of files in it.

    `names` are the definitions to keep; without them all are kept.
    """

    module: str
    sum: str
    files: tuple[str, ...]
    names: tuple[str, ...] = ()


def systems() -> tuple[str, ...]:
    """Return the folders of toolsets that have kinds of their own."""
    return tuple(sorted(path.parent.name for path in FOLDER.glob("*/kinds.yaml")))


def definitions(system: str, layout: Layout) -> Path:
    """Return the file with the definitions of one system; raise CannotRunHereError where it was not fetched."""
    path = _target(system, layout)
    if not path.is_file():
        raise CannotRunHereError(f"the kinds of {system!r} are not fetched: run `python -m tests.services build` once")
    return path


def build(layout: Layout) -> None:
    """Fetch what the cache lacks (seconds for each module, nothing when all is there)."""
    missing = [system for system in systems() if not _target(system, layout).is_file()]
    if not missing:
        return
    if shutil.which("go") is None:
        raise CannotRunHereError("the kinds of the toolsets are not fetched yet, and there is no Go to fetch them with")
    with building(layout):
        for system in missing:
            _fetch(system, layout)


def _pinned(system: str) -> tuple[tuple[Module, ...], tuple[JsonObject, ...]]:
    """Return the modules of a system, and definitions that a test had to write itself."""
    pins = yaml.safe_load((FOLDER / system / "kinds.yaml").read_text())
    modules = tuple(
        Module(module=each["module"], sum=each["sum"], files=tuple(each["files"]), names=tuple(each.get("names", ())))
        for each in pins.get("modules", ())
    )
    return modules, tuple(_written(each) for each in pins.get("written", ()))


def _target(system: str, layout: Layout) -> Path:
    pins = (FOLDER / system / "kinds.yaml").read_bytes()
    return layout.cache / "kinds" / f"{system}-{hashlib.sha256(_FORMAT.encode() + pins).hexdigest()[:12]}.json"


def _fetch(system: str, layout: Layout) -> None:
    target = _target(system, layout)
    target.parent.mkdir(parents=True, exist_ok=True)
    modules, written = _pinned(system)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        found = [each for module in modules for each in _of_module(module, Path(folder))]
        document = {"apiVersion": "v1", "kind": "List", "items": [*map(_trimmed, found), *written]}
        unfinished = Path(folder) / target.name
        unfinished.write_text(json.dumps(document))
        unfinished.rename(target)


def _of_module(module: Module, folder: Path) -> Iterator[JsonObject]:
    """Yield the definitions of a module. The archive is read as it is, because its Go may be newer than this one."""
    environment = {"GOMODCACHE": str(folder / "modules"), "GOFLAGS": "-modcacherw", "GOWORK": "off"}
    command = ["env", *(f"{name}={value}" for name, value in environment.items())]
    done = subprocess.run(
        [*command, "go", "mod", "download", "-json", module.module],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    try:
        told = json.loads(done.stdout)
        archive, total = Path(told["Zip"]), told["Sum"]
    except (ValueError, KeyError) as error:
        raise ClusterError(f"go cannot fetch {module.module!r}: {(done.stderr or done.stdout).strip()}") from error
    if total != module.sum:
        raise ClusterError(f"{module.module!r} has the hash {total}, but {module.sum} is pinned")
    with zipfile.ZipFile(archive) as content:
        for name in sorted(content.namelist()):
            inner = name.removeprefix(f"{module.module}/")
            if any(fnmatch.fnmatch(inner, pattern) for pattern in module.files):
                for each in yaml.load_all(content.read(name), Loader=yaml.CSafeLoader):
                    if each and each.get("kind") == _DEFINITION and _is_wanted(each, module):
                        yield each


def _is_wanted(definition: JsonObject, module: Module) -> bool:
    return not module.names or definition["metadata"]["name"] in module.names


def _trimmed(definition: JsonObject) -> JsonObject:
    spec = definition["spec"]
    (stored,) = (each for each in spec["versions"] if each["storage"])
    stored.get("subresources", {}).pop("status", None)
    kept = {key: value for key, value in stored.items() if key not in {"deprecated", "deprecationWarning"}}
    name = definition["metadata"]["name"]
    annotations = {
        key: value
        for key, value in definition["metadata"].get("annotations", {}).items()
        if key == "api-approved.kubernetes.io"
    }
    return {
        "apiVersion": definition["apiVersion"],
        "kind": _DEFINITION,
        "metadata": {"name": name, "annotations": annotations},
        "spec": {
            "group": spec["group"],
            "names": spec["names"],
            "scope": spec["scope"],
            "versions": [{**_without_texts(kept), "served": True}],
        },
    }


def _without_texts(schema: Json) -> Json:
    """Leave out descriptions. A property that is called `description` is a mapping, and stays."""
    if isinstance(schema, dict):
        return {
            key: _without_texts(value)
            for key, value in schema.items()
            if not (key == "description" and isinstance(value, str))
        }
    return [_without_texts(each) for each in schema] if isinstance(schema, list) else schema


def _written(kind: JsonObject) -> JsonObject:
    """Return a definition without a schema, for a kind whose definition cannot be fetched here."""
    plural = kind["plural"]
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": kind["version"], "served": True, "storage": True, "schema": schema}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": _DEFINITION,
        "metadata": {"name": f"{plural}.{kind['group']}"},
        "spec": {
            "group": kind["group"],
            "names": {
                "kind": kind["kind"],
                "plural": plural,
                "singular": kind["kind"].lower(),
                "categories": kind.get("categories", []),
            },
            "scope": kind.get("scope", "Namespaced"),
            "versions": [version],
        },
    }
