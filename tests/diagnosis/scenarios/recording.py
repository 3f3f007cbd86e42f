"""Recordings of scenarios, to test the same expectations without a cluster.

`run` packs them, `test_scenarios_recorded.py` unpacks them. Each scenario is one JSON file with one object per line.
Cluster-wide objects that do not belong to the scenario are left out. The API discovery is stored once for all of them.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from holmes.kubernetes.fields import child, children, text
from holmes.values.json_types import JsonObject
from tests.cluster.layout import Layout
from tests.diagnosis.scenarios.model import Places, Scenario

RECORDINGS: Final = Path(__file__).parent.parent / "recordings"
DISCOVERY: Final = "discovery.json"
MANIFEST: Final = "recording.json"
PLACES: Final = "places.json"
_SUFFIX: Final = ".recorded.json"
KEPT_OUTSIDE: Final = frozenset({"node1", "system-cluster-critical", "system-node-critical"})
_MACHINE_FIELD: Final = re.compile(rb'("(?:bootID|machineID|systemUUID|kernelVersion)": *)"[^"]*"')


def record(scenario: Scenario, places: Places, folder: Path, create: Callable[..., str]) -> None:
    """Records the scanned namespaces into `folder`; `create` is `holmes snapshot create`."""
    namespaces = [word for alias in scenario.scanned for word in ("-n", places[alias])]
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        taken = Path(scratch) / "recording"
        create(str(taken), *namespaces)
        files = _relevant_files(taken, places)
    common = folder / DISCOVERY
    if not common.exists():
        common.write_bytes(files[DISCOVERY])
    # Only custom resources change it.
    if common.read_bytes() == files[DISCOVERY]:
        del files[DISCOVERY]
    (folder / f"{scenario.name}{_SUFFIX}").write_text(_packed(files), encoding="utf-8")


def unpack(name: str, target: Path, folder: Path = RECORDINGS) -> Places:
    """Unpacks the recording of a scenario into `target`; returns the names of its namespaces."""
    files = json.loads((folder / f"{name}{_SUFFIX}").read_text(encoding="utf-8"))
    for path, content in files.items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        text_of_file = content if isinstance(content, str) else json.dumps(content)
        (target / path).write_text(text_of_file, encoding="utf-8")
    if not (target / DISCOVERY).exists():
        (target / DISCOVERY).write_bytes((folder / DISCOVERY).read_bytes())
    places: Places = json.loads((target / PLACES).read_text(encoding="utf-8"))
    (target / PLACES).unlink()
    return places


def recorded_names(folder: Path = RECORDINGS) -> frozenset[str]:
    return frozenset(path.name.removesuffix(_SUFFIX) for path in folder.glob(f"*{_SUFFIX}"))


def _packed(files: Mapping[str, bytes]) -> str:
    """All files in one JSON object by path: logs as text, the rest as JSON with one object per line for diffs."""
    entries = []
    for name, content in sorted(files.items()):
        written = content.decode("utf-8")
        document = json.loads(written) if name.endswith(".json") else written
        entries.append(f"{json.dumps(name)}: {_lines(document)}")
    return "{\n" + ",\n".join(entries) + "\n}\n"


def _lines(document: JsonObject | str) -> str:
    items = children(document, "items") if not isinstance(document, str) else ()
    if not items or isinstance(document, str):
        return json.dumps(document)
    head = json.dumps({key: value for key, value in document.items() if key != "items"}).removesuffix("}")
    comma = ", " if len(document) > 1 else ""
    return f'{head}{comma}"items": [\n' + ",\n".join(json.dumps(item) for item in items) + "\n]}"


def _relevant_files(taken: Path, places: Places) -> dict[str, bytes]:
    """The recorded files by path, without objects of other users of the cluster."""
    files = {PLACES: json.dumps(dict(places)).encode()}
    for path in (each for each in taken.rglob("*") if each.is_file()):
        name, content = path.relative_to(taken).as_posix(), path.read_bytes()
        if name == DISCOVERY:
            files[name] = _own_discovery(json.loads(content), places)
        elif name == MANIFEST:
            files[name] = _own_manifest(json.loads(content), places)
        elif not name.startswith("objects/"):
            files[name] = content
        elif _is_own_group(path.name.removesuffix(".json").partition(".")[2], places):
            files[name] = _own_objects(json.loads(content), places)
    return {name: _without_machine(content) for name, content in files.items()}


def _without_machine(content: bytes) -> bytes:
    """Removes the address of the cluster and the name of the machine."""
    layout = Layout.from_environment()
    for path in (layout.run, layout.cache):
        content = content.replace(bytes(path), b"/var/lib/test-cluster")
    return _MACHINE_FIELD.sub(rb'\1"recorded"', content)


def _own_objects(listed: JsonObject, places: Places) -> bytes:
    items = [each for each in children(listed, "items") if _is_own(each, places)]
    return json.dumps({**listed, "items": items}).encode()


def _own_manifest(manifest: JsonObject, places: Places) -> bytes:
    unread = children(manifest, "unread")
    own = [each for each in unread if _is_own_group(text(each, "resource").partition(".")[2], places)]
    return json.dumps({**manifest, "unread": own}).encode()


def _is_own(item: JsonObject, places: Places) -> bool:
    name, namespace = text(item, "metadata", "name"), text(item, "metadata", "namespace")
    return namespace in places.values() or (not namespace and (name in KEPT_OUTSIDE or places["run"] in name))


def _own_discovery(discovery: JsonObject, places: Places) -> bytes:
    groups = [each for each in children(discovery, "groups", "groups") if _is_own_group(text(each, "name"), places)]
    resources = [
        each
        for each in children(discovery, "resources")
        if _is_own_group(text(each, "groupVersion").rpartition("/")[0], places)
    ]
    kept = {**discovery, "groups": {**child(discovery, "groups"), "groups": groups}, "resources": resources}
    return json.dumps(kept).encode()


def _is_own_group(group: str, places: Places) -> bool:
    """Whether Kubernetes or the scenario provides this group."""
    return "." not in group or group.endswith(".k8s.io") or places["run"] in group
