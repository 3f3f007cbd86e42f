"""Finds the setting that a failing container reports as wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.changes import ABSENT, last_rollout
from holmes.diagnosis.facts.evidence import edited_at, has_secret_name, is_optional, value
from holmes.diagnosis.facts.fixes import corrected, instruction
from holmes.diagnosis.facts.host_mentions import mentions
from holmes.diagnosis.facts.pods import container_field
from holmes.diagnosis.facts.references import DATA_KEYS
from holmes.diagnosis.facts.typos import hint, nearest
from holmes.kubernetes.fields import child, children, text, text_map, texts
from holmes.values.expressions import expression
from holmes.values.findings import ObjectRef
from holmes.values.texts import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.logs import LogSignature
    from holmes.diagnosis.facts.pods import Container
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, FixStep
    from holmes.values.json_types import JsonObject


_WORD: Final = expression(r"[A-Za-z0-9_.:/@%+-]{3,200}")
_ABSENT: Final = expression(
    r"KeyError: '([A-Z][A-Z0-9_]{1,100})'|\b([A-Z][A-Z0-9_]{1,100}): (?:parameter not set|unbound variable)"
    r"|variable:? \W?([A-Z][A-Z0-9_]{2,100})|\b([A-Z][A-Z0-9]{1,60}(?:_[A-Z0-9]{1,60}){1,8})\b"
)
_QUOTED: Final = expression(r"'([^']{1,500})'|\"([^\"]{1,500})\"|`([^`]{1,500})`|=([^\s='\"`]{1,500})")
_AT_THE_END: Final = expression(r"[:\s]([^\s'\"`:]{1,500})$")
_DONE_WITHOUT: Final = expression(
    r"(?i)\b(?:using|(?:so|will) use|default(?:s|ing|ed)? to|f[ae]ll(?:s|ing)? ?back (?:to|on)|assuming)"
    r" (?P<substitute>\S[^;\n]{0,80})|\b(?:is|are|stays?|remains?|will be) (?:disabled|off|skipped|ignored|optional)\b"
    r"|\b(?:disabling|skipping|ignoring)\b"
)
"""The words of a program that works without a setting."""
_PLACE: Final = expression(r"/[\w./-]{2,200}|\blocalhost\b|:\d{2,5}\b|\b[\w-]{1,63}(?:[.:][\w-]{1,63}){1,8}")
"""A path, a host, a port or a version among these words."""
_SHORTEST_VALUE: Final = 4
_NOT_SHOWN: Final = "(not shown)"
_MOST_KEYS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Blamed:
    """A setting that a log line reports as wrong.

    `evidence` contains the field and value of the setting, and `words` describes the setting. `culprit` is the
    ConfigMap that contains the setting, or None. `fix` corrects the setting if the right value is known.
    """

    evidence: Evidence
    words: str
    culprit: ObjectRef | None = None
    fix: FixStep | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Variable:
    name: str
    content: str | None
    evidence: Evidence
    words: str
    config_map: ObjectRef | None = None


def blamed_setting(signature: LogSignature, container: Container, state: ClusterState) -> Blamed | None:
    """Return the setting to which the log line of a signature refers, or None.

    A ConfigMap is the culprit only if the line reports a configuration error or quotes the exact value.
    """
    line = signature.line
    complains = signature.kind in {"missing configuration", "bad argument"} and _DONE_WITHOUT.search(line) is None
    words = frozenset(_WORD.findall(line)) | frozenset(re.findall(r"\w{3,200}", line))
    variables = tuple(_variables(container, state))
    if signature.kind == "unknown host":
        return _only_host(line, variables)
    return (
        _named_variable(line, words, variables, complains=complains)
        or _quoted_value(line, variables, complains=complains)
        or _named_argument(words, container, state)
        or _named_file(words, container, state)
        or (_absent_variable(line, variables, container, state) if complains else None)
    )


def unset_variable(line: str, container: Container, state: ClusterState) -> Blamed | None:
    """Return why the variable is not set that a line reports as missing, or None if it is set."""
    words = frozenset(re.findall(r"\w{3,200}", line))
    variables = tuple(_variables(container, state))
    known = next((each for each in variables if each.name in words), None)
    if known is None:
        return _absent_variable(line, variables, container, state)
    return Blamed(evidence=known.evidence, words=known.words, culprit=known.config_map) if not known.content else None


def does_without(line: str, trouble: str) -> bool:
    """Return whether a line says what a program does without a setting, and the trouble is not about the substitute."""
    found = _DONE_WITHOUT.search(line)
    words = _PLACE.findall(found["substitute"] or "") if found is not None else []
    return found is not None and not any(word in trouble for word in words)


def _named_variable(
    line: str, words: frozenset[str], variables: tuple[_Variable, ...], *, complains: bool
) -> Blamed | None:
    for variable in sorted(variables, key=lambda each: -len(each.name)):
        if variable.name in words:
            certain = complains or bool(variable.content and variable.content.strip() in _quotations(line))
            culprit = variable.config_map if certain else None
            return Blamed(evidence=variable.evidence, words=variable.words, culprit=culprit)
    return None


def _only_host(line: str, variables: tuple[_Variable, ...]) -> Blamed | None:
    """Return the variable with the only host of the settings, for a line that names no host, or None."""
    if any(not each.doubtful for each in mentions(line)):
        return None
    named = {
        mention.host: variable
        for variable in variables
        for mention in mentions(f"{variable.name}={variable.content or ''}")
        if not mention.doubtful and mention.form != "ip"
    }
    if len(named) != 1:
        return None
    host, variable = next(iter(named.items()))
    words = f"the only host in its settings is {host} (variable {variable.name})"
    return Blamed(evidence=variable.evidence, words=words)


def _quoted_value(line: str, variables: tuple[_Variable, ...], *, complains: bool) -> Blamed | None:
    quoted = _quotations(line) | frozenset(_AT_THE_END.findall(line.rstrip()) if complains else ())
    for variable in sorted(variables, key=lambda each: -len(each.content or "")):
        content = (variable.content or "").strip()
        if len(content) >= _SHORTEST_VALUE and content in quoted:
            return Blamed(evidence=variable.evidence, words=variable.words, culprit=variable.config_map)
    return None


def _quotations(line: str) -> frozenset[str]:
    """Return the parts of a log line that are in quotation marks or follow `=`."""
    return frozenset(next(filter(None, found), "").strip() for found in _QUOTED.findall(line))


def _named_argument(words: frozenset[str], container: Container, state: ClusterState) -> Blamed | None:
    bare = {word.lstrip("-") for word in words}
    for field in ("args", "command"):
        for argument in texts(container.spec, field):
            flag, _, content = argument.partition("=")
            flag_named = flag.startswith("-") and len(flag) > 2 and flag.lstrip("-") in bare
            if flag_named or (len(content) >= _SHORTEST_VALUE and content in words):
                verb = "contains" if field == "command" else "contain"
                said = f"its {field} {verb} {argument!r}"
                return Blamed(evidence=container_field(container, state, field), words=said)
    return None


def _named_file(words: frozenset[str], container: Container, state: ClusterState) -> Blamed | None:
    """Return the key of a mounted ConfigMap whose file path appears in the line, or None. The key might not exist."""
    volumes = {text(volume, "name"): volume for volume in container.pod.children("spec", "volumes")}
    for mount in children(container.spec, "volumeMounts"):
        folder = text(mount, "mountPath").rstrip("/")
        volume = volumes.get(text(mount, "name"), {})
        found = state.get("ConfigMap", container.pod.namespace, text(volume, "configMap", "name"))
        files = [word.rstrip(":.,") for word in words if folder and word.startswith(f"{folder}/")]
        if found is None or not files or text(mount, "subPath") or children(volume, "configMap", "items"):
            continue
        keys = sorted({**child(found.body, "data"), **child(found.body, "binaryData")})
        missing = files[0].removeprefix(f"{folder}/")
        if missing in keys:
            content = text(found.body, "data", missing)
            said = f"{files[0]} is the key {missing} of {found.ref}"
            return Blamed(evidence=value(found, f"data.{missing}", content), words=said, culprit=found.ref)
        said = f"{found.ref} is mounted at {folder} and has no key {missing}{hint(missing, keys)}"
        near = nearest(missing, keys)
        step = f"Rename the key {near} of {found.ref} to {missing}, or map it to this path with items of the volume."
        return Blamed(
            evidence=value(found, DATA_KEYS, keys[:_MOST_KEYS]),
            words=said,
            culprit=found.ref,
            fix=instruction(found.ref, step) if near else None,
        )
    return None


def _absent_variable(
    line: str, variables: tuple[_Variable, ...], container: Container, state: ClusterState
) -> Blamed | None:
    """Return the uppercase variable that the line reports as missing, or None."""
    match = _ABSENT.search(line)
    wanted = next((name for name in match.groups() if name), "") if match else ""
    if not wanted or wanted.startswith(("ERR_", "SIG")):
        return None
    names = [variable.name for variable in variables]
    removed = _removed(wanted, container, state)
    if removed is not None:
        return removed
    source = _source_of_all(wanted, container, state) or _prefixed_secret(wanted, container, state)
    if source is not None:
        return source
    evidence = container_field(container, state, "env")
    unknown = _has_unknown_variables(container, state)
    lacks = (
        f"{wanted} is not among the variables that could be read"
        if unknown
        else f"the container has no variable {wanted}"
    )
    said = f"{lacks}{hint(wanted, names)}"
    return Blamed(evidence=_only_names(evidence, names) if names else evidence, words=said)


def _has_unknown_variables(container: Container, state: ClusterState) -> bool:
    """Return whether the container has variables with unknown names, from a Secret or an unreadable ConfigMap."""
    readable = state.covers("ConfigMap", container.pod.namespace)
    return any(child(each, "secretRef") or not readable for each in children(container.spec, "envFrom"))


def _removed(wanted: str, container: Container, state: ClusterState) -> Blamed | None:
    """Return the variable `wanted` if the last rollout of the Deployment removed it, otherwise None."""
    workload = state.workload_of(container.pod)
    rollout = last_rollout(state, workload) if workload.kind == "Deployment" else None
    for difference in rollout[2] if rollout else ():
        if wanted in difference.name.split() and difference.new == ABSENT:
            said = f"the last rollout removed the variable {wanted}"
            return Blamed(evidence=value(workload, difference.path, f"{wanted}: {difference}"), words=said)
    return None


def _source_of_all(wanted: str, container: Container, state: ClusterState) -> Blamed | None:
    """Return the first ConfigMap in `envFrom` that should probably define the variable `wanted`, or None.

    The ConfigMap must contain a similar key or must have been changed after the pod was created.
    """
    for index, source in enumerate(children(container.spec, "envFrom")):
        found = state.get("ConfigMap", container.pod.namespace, text(source, "configMapRef", "name"))
        if found is None:
            continue
        keys, prefix = sorted(text_map(found.body, "data")), text(source, "prefix")
        near = nearest(wanted.removeprefix(prefix), keys)
        if prefix and wanted in keys:
            said = f"{found.ref} has the key {wanted}, but envFrom adds the prefix {prefix}, so the variable is "
            said += f"{prefix}{wanted}"
            proof = container_field(container, state, f"envFrom[{index}].prefix")
            return Blamed(evidence=proof, words=said, fix=corrected(proof, ""))
        if near is not None or edited_at(found) > container.pod.created:
            shown = ", ".join(keys[:_MOST_KEYS])
            said = f"the container reads its variables from {found.ref}, which has no key {wanted}"
            said += f"; the closest existing key is {near}" if near else ""
            return Blamed(evidence=value(found, DATA_KEYS, shown), words=said, culprit=found.ref)
    return None


def _prefixed_secret(wanted: str, container: Container, state: ClusterState) -> Blamed | None:
    """Return the prefix that `envFrom` puts before each key of a Secret if it is the beginning of `wanted`, or None.

    The keys of Secrets are not read, but the variable would be set if the Secret had its name without the prefix.
    """
    for index, source in enumerate(children(container.spec, "envFrom")):
        prefix, name = text(source, "prefix"), text(source, "secretRef", "name")
        if prefix and name and wanted.startswith(prefix) and wanted != prefix:
            ref = ObjectRef(kind="Secret", namespace=container.pod.namespace, name=name)
            said = f"envFrom puts the prefix {prefix} before each key of {ref}, so only its key "
            said += f"{wanted.removeprefix(prefix)} would become {wanted}, and a key {wanted} becomes {prefix}{wanted}"
            proof = container_field(container, state, f"envFrom[{index}].prefix")
            step = f"Remove {proof.path} if {ref} has the key {wanted}, or rename the key in the Secret."
            return Blamed(evidence=proof, words=said, fix=instruction(proof.object, step))
    return None


def _only_names(evidence: Evidence, names: list[str]) -> Evidence:
    shown = ", ".join(names[:_MOST_KEYS]) + (", …" if len(names) > _MOST_KEYS else "")
    return replace(evidence, value=f"only {shown}")


def _variables(container: Container, state: ClusterState) -> Iterator[_Variable]:
    namespace = container.pod.namespace
    for source in children(container.spec, "envFrom"):
        found = state.get("ConfigMap", namespace, text(source, "configMapRef", "name"))
        for key, content in text_map(found.body, "data").items() if found is not None else ():
            if found is not None:
                yield _from_config_map(text(source, "prefix") + key, key, content, found)
    for index, variable in enumerate(children(container.spec, "env")):
        yield _variable(variable, index, container, state)


def _variable(variable: JsonObject, index: int, container: Container, state: ClusterState) -> _Variable:
    name, source = text(variable, "name"), child(variable, "valueFrom", "configMapKeyRef")
    namespace = container.pod.namespace
    found = state.get("ConfigMap", namespace, text(source, "name"))
    key = text(source, "key")
    if found is not None and key in child(found.body, "data"):
        return _from_config_map(name, key, text(found.body, "data", key), found)
    if source and is_optional(source) and state.covers("ConfigMap", namespace):
        evidence = container_field(container, state, f"env[{index}].valueFrom.configMapKeyRef")
        ref = ObjectRef(kind="ConfigMap", namespace=namespace, name=text(source, "name"))
        said = f"{name} is not set, because {ref} has no key {key} and the reference is optional"
        return _Variable(name=name, content=None, evidence=evidence, words=said, config_map=ref)
    if child(variable, "valueFrom"):
        evidence = container_field(container, state, f"env[{index}].valueFrom")
        return _Variable(name=name, content=None, evidence=evidence, words=f"{name} {_origin(variable, namespace)}")
    content = text(variable, "value")
    evidence = container_field(container, state, f"env[{index}].value")
    if has_secret_name(name):
        said = f"the variable {name} is set, but its value is not shown"
        return _Variable(name=name, content=None, evidence=replace(evidence, value=_NOT_SHOWN), words=said)
    said = f"the variable {name} is {content!r}"
    return _Variable(name=name, content=content, evidence=evidence, words=said)


def _origin(variable: JsonObject, namespace: str) -> str:
    """Describe the source of a variable whose value is not known."""
    for field, kind in (("secretKeyRef", "Secret"), ("configMapKeyRef", "ConfigMap")):
        name = text(variable, "valueFrom", field, "name")
        if name:
            return f"comes from {kind} {namespace}/{name}"
    return "takes its value from a field of the pod"


def _from_config_map(name: str, key: str, content: str, found: ClusterObject) -> _Variable:
    secret = has_secret_name(name) or has_secret_name(key)
    shown = _NOT_SHOWN if secret else excerpt(content, 80)
    return _Variable(
        name=name,
        content=None if secret else content,
        evidence=value(found, f"data.{key}", _NOT_SHOWN if secret else content),
        words=f"{name} is {shown!r}, the key {key} of {found.ref}",
        config_map=found.ref,
    )
