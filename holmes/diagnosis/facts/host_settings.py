"""The texts of a workload's template in which hosts may stand, each with its place. Called by `hosts`.

Environment variables, also those that come from existing ConfigMaps, commands, arguments and mounted ConfigMaps.
Secrets are never read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.evidence import value
from holmes.diagnosis.facts.templates import template_of
from holmes.kubernetes.fields import children, text, text_map, texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.templates import PodTemplate
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence
    from holmes.values.json_types import JsonObject

_LONGEST_CHARACTERS = 65_536
_COMMENT: Final = re.compile(r"(?m)^[ \t]*(?:#|//|;).*$")
_REFERENCE: Final = re.compile(r"\$\((?P<plain>\w+)\)|\$\{(?P<braces>\w+)\}|\$(?P<bare>[A-Za-z_]\w*)")
_HOST_NAMES: Final = re.compile(r"(?i)^(?P<prefix>.*?)(?:HOST|HOSTNAME|ADDR|ADDRESS|SERVER|SERVICE|ENDPOINT)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A text as hosts are looked for in it (`CART_HOST=cart:8080`), and the value as it stands in the cluster.

    `whole` is a command line of which the single words came before. `sources` are the variables that were put in.
    """

    text: str
    evidence: Evidence
    whole: bool = False
    sources: tuple[Evidence, ...] = ()

    def place_of(self, host: str, port: int | None) -> Evidence:
        """Where the host stands: in the text itself, which may have only its port, or in a variable that was put in."""
        written = host if port is None else f"{host}:{port}"
        for place in (self.evidence, *self.sources):
            if written in place.value:
                return place
        if host in self.evidence.value or (port is not None and str(port) in self.evidence.value):
            return self.evidence
        return next((source for source in self.sources if host in source.value), self.evidence)


def settings_of(state: ClusterState, workload: ClusterObject) -> Iterator[Setting]:
    """The settings of all containers of the workload's template."""
    template = template_of(workload)
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(children(template.spec, kind)):
            path = f"{template.path}.{kind}[{index}]"
            variables = dict(_variables(state, template, container, path))
            yield from _from_variables(variables)
            yield from _from_commands(template, container, path, variables)
    yield from _from_volumes(state, template)


def _variables(
    state: ClusterState, template: PodTemplate, container: JsonObject, path: str
) -> Iterator[tuple[str, tuple[str, Evidence]]]:
    """Name, value and place of every variable with a known value, those that win last."""
    namespace = template.workload.namespace
    for source in children(container, "envFrom"):
        found = state.get("ConfigMap", namespace, text(source, "configMapRef", "name"))
        if found is not None:
            prefix = text(source, "prefix")
            for key, content in text_map(found.body, "data").items():
                yield prefix + key, (content, value(found, f"data.{key}", content))
    for index, variable in enumerate(children(container, "env")):
        name, content = text(variable, "name"), text(variable, "value")
        if content:
            yield name, (content, value(template.workload, f"{path}.env[{index}].value", content))
            continue
        key = text(variable, "valueFrom", "configMapKeyRef", "key")
        found = state.get("ConfigMap", namespace, text(variable, "valueFrom", "configMapKeyRef", "name"))
        content = text(found.body, "data", key) if found is not None else ""
        if found is not None and content:
            yield name, (content, value(found, f"data.{key}", content))


def _from_variables(variables: dict[str, tuple[str, Evidence]]) -> Iterator[Setting]:
    for name, (content, evidence) in variables.items():
        expanded, sources = _expanded(content, variables, only_plain=True)
        match = _HOST_NAMES.match(name)
        port = variables.get(f"{match['prefix']}PORT") if match else None
        if port is not None and port[0].strip().isdigit() and not re.search(r"[:/,]", expanded):
            expanded = f"{expanded.strip()}:{port[0].strip()}"
        written = f"{name}={expanded}" if "\n" not in expanded else expanded
        yield Setting(text=written, evidence=evidence, sources=sources)


def _from_commands(
    template: PodTemplate, container: JsonObject, path: str, variables: dict[str, tuple[str, Evidence]]
) -> Iterator[Setting]:
    for field in ("command", "args"):
        words = texts(container, field)
        for index, word in enumerate(words):
            written, sources = _expanded(word, variables, only_plain=False)
            before = words[index - 1] if index else ""
            if before.startswith("--") and "=" not in before and " " not in word:
                written = f"{before}={written}"
            place = value(template.workload, f"{path}.{field}[{index}]", word)
            yield Setting(text=written, evidence=place, sources=sources)
        if any(" " not in word for word in words) and len(words) > 1 and not any("\n" in word for word in words):
            whole, sources = _expanded(" ".join(words), variables, only_plain=False)
            evidence = value(template.workload, f"{path}.{field}", " ".join(words))
            yield Setting(text=whole, evidence=evidence, whole=True, sources=sources)


def _from_volumes(state: ClusterState, template: PodTemplate) -> Iterator[Setting]:
    mounted = {
        text(mount, "name")
        for kind in ("initContainers", "containers")
        for container in children(template.spec, kind)
        for mount in children(container, "volumeMounts")
    }
    for volume in children(template.spec, "volumes"):
        if text(volume, "name") not in mounted:
            continue
        projected = (text(each, "configMap", "name") for each in children(volume, "projected", "sources"))
        for name in (text(volume, "configMap", "name"), *projected):
            found = state.get("ConfigMap", template.workload.namespace, name) if name else None
            if found is None or name == "kube-root-ca.crt":
                continue
            for key, content in text_map(found.body, "data").items():
                written = _COMMENT.sub("", content[:_LONGEST_CHARACTERS]).strip()
                lines = written if "\n" in written else f"{key}={written}"
                yield Setting(text=lines, evidence=value(found, f"data.{key}", content))


def _expanded(
    content: str, variables: dict[str, tuple[str, Evidence]], *, only_plain: bool
) -> tuple[str, tuple[Evidence, ...]]:
    """The content with the values of variables in the place of `$(NAME)`, in commands also of `$NAME` and `${NAME}`."""
    sources: list[Evidence] = []

    def replaced(match: re.Match[str]) -> str:
        name = match["plain"] or (not only_plain and (match["braces"] or match["bare"])) or ""
        known = variables.get(name)
        if known is None or "$" in known[0]:
            return match[0]
        sources.append(known[1])
        return known[0]

    return (_REFERENCE.sub(replaced, content) if "$" in content else content), tuple(sources)
