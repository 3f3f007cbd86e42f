"""Finds the cluster configuration: merged kubeconfig files, or the service account of a pod.

Reads only the files that the `Environment` specifies. The kubernetes package is not used, because its merge gives
priority to the last file, but kubectl gives priority to the first file. Importing it also takes 0.4 s of CPU time, four
times as long as importing this package. The kubernetes package cannot limit the environment or the duration of exec
plugins.
"""

from __future__ import annotations

import base64
import binascii
import difflib
import os
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from holmes.kubernetes.credential_files import Pem, read_credential_file
from holmes.kubernetes.fields import boolean, child, children, text, texts
from holmes.kubernetes.scope import scope_of
from holmes.values.errors import ClusterUnreachable, ConfigError
from holmes.values.expressions import expression
from holmes.values.texts import fault_of_address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.values.environment import Environment
    from holmes.values.json_types import JsonObject, JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A server and its TLS settings."""

    server: str
    authority: Pem = field(default=Pem(what="certificate-authority"))
    skip_tls_verify: bool = False
    tls_server_name: str | None = None
    proxy_url: str | None = None

    @property
    def encrypted(self) -> bool:
        """Whether the server uses TLS. Like kubectl, Holmes sends no credentials without TLS."""
        return self.server.lower().startswith("https://")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecPlugin:
    """A program that prints credentials. A relative path in `command` is relative to `directory`."""

    command: str
    arguments: tuple[str, ...]
    variables: tuple[tuple[str, str], ...]
    api_version: str
    install_hint: str
    needs_terminal: bool
    cluster_info: JsonObject | None
    directory: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A kubeconfig user with all its credentials."""

    name: str = ""
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    certificate: Pem = field(default=Pem(what="client-certificate"))
    key: Pem = field(default=Pem(what="client-key"))
    exec_plugin: ExecPlugin | None = None
    auth_provider: JsonObject | None = field(default=None, repr=False)
    impersonation: tuple[tuple[str, str], ...] = ()
    """The `Impersonate-*` headers of every request. A name can occur several times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAccess:
    """One context, with its cluster, user and default namespace."""

    context: str
    namespace: str
    cluster: Cluster
    user: User
    is_service_account: bool = False
    """Whether the cluster is that of this pod. A kubeconfig can give any cluster the name of this context."""

    def unreachable(self, why: str, advice: str) -> ClusterUnreachable:
        """Create a one-line error with the context, the server, the cause and the next step."""
        return ClusterUnreachable(
            f"Cannot reach the cluster of context {self.context!r} at {self.cluster.server}: {why}; {advice}"
        )


SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A named cluster, context or user, and the file that defines it."""

    name: str
    body: JsonObject
    file: Path

    def path_of(self, key: str) -> Path | None:
        """Resolve the path at `key` relative to the kubeconfig file. Returns None if the key is not set."""
        value = text(self.body, key)
        return self.file.parent / value if value else None

    def pem(self, key: str) -> Pem:
        """Return the certificate or key at `key` or `key-data`."""
        encoded = text(self.body, f"{key}-data")
        if not encoded:
            return Pem(what=key, path=self.path_of(key))
        try:
            return Pem(what=key, data=base64.b64decode(encoded, validate=False))
        except binascii.Error as error:
            raise ConfigError(f"kubeconfig {str(self.file)!r}: {key}-data of {self.name!r} is not base64") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kubeconfig:
    """All kubeconfig files, merged. If a name occurs in several files, the first file has priority."""

    files: tuple[Path, ...]
    current_context: str
    clusters: dict[str, _Entry]
    contexts: dict[str, _Entry]
    users: dict[str, _Entry]


def load_access(environment: Environment, *, service_account: Path = SERVICE_ACCOUNT) -> ClusterAccess:
    """Read the selected context.

    It is defined by KUBECONFIG, `~/.kube/config` or the service account of the pod, in this order of priority.
    HOLMES_KUBE_CONTEXT and HOLMES_KUBE_NAMESPACE override the context and the namespace. Reads files, so call it in a
    thread. Raises `ClusterUnreachable` if the configuration is missing, and `ConfigError` if it is not valid.
    """
    files = _existing_files(environment)
    if files:
        access = _of_kubeconfig(_merged(files), environment.get("HOLMES_KUBE_CONTEXT") or "")
    elif environment.get("KUBERNETES_SERVICE_HOST") and (service_account / "token").is_file():
        access = _of_service_account(environment, service_account)
    else:
        raise ClusterUnreachable(_nothing_found(environment))
    scope = scope_of(environment)
    inside = scope[0] if scope and access.namespace not in scope else None
    namespace = environment.get("HOLMES_KUBE_NAMESPACE") or inside
    return replace(access, namespace=namespace) if namespace else access


def _candidate_files(environment: Environment) -> tuple[Path, ...]:
    home = Path(environment.get("HOME") or "/")
    listed = [part for part in (environment.get("KUBECONFIG") or "").split(os.pathsep) if part]
    if not listed:
        return (home / ".kube" / "config",)
    return tuple(home / part[2:] if part.startswith("~/") else Path(part) for part in listed)


def _existing_files(environment: Environment) -> tuple[Path, ...]:
    """Return the files that are not missing or empty. `/dev/null` counts as empty, as in kubectl."""
    return tuple(path for path in _candidate_files(environment) if _has_content(path))


def _has_content(path: Path) -> bool:
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: the path contains NUL
        return False
    except OSError as error:
        raise ClusterUnreachable(
            f"kubeconfig {str(path)!r}: the file cannot be read: {error.strerror}; make it readable or set KUBECONFIG"
        ) from error
    if not stat.S_ISREG(found.st_mode) and str(path) != os.devnull:
        raise ConfigError(f"kubeconfig {str(path)!r} is not a regular file; set KUBECONFIG to a file")
    return found.st_size > 0


def _nothing_found(environment: Environment) -> str:
    if environment.get("KUBECONFIG") == os.devnull:
        return (
            "No cluster is configured: without a kubeconfig, Holmes must run in a pod with a service account; use a "
            "kubeconfig, or run Holmes in a pod of the cluster"
        )
    candidates = ", ".join(repr(str(path)) for path in _candidate_files(environment))
    named = "KUBECONFIG specifies" if environment.get("KUBECONFIG") else "tried"
    return (
        f"No cluster is configured: {named} {candidates}, which is missing or empty, and this is not a pod with a "
        "service account; set KUBECONFIG or log in to the cluster so that `kubectl get pods` works"
    )


def _merged(files: tuple[Path, ...]) -> _Kubeconfig:
    documents = [(path, _document(path)) for path in files]
    current = (text(document, "current-context") for _, document in documents)
    return _Kubeconfig(
        files=files,
        current_context=next((name for name in current if name), ""),
        clusters=_entries(documents, "clusters", "cluster"),
        contexts=_entries(documents, "contexts", "context"),
        users=_entries(documents, "users", "user"),
    )


def _document(path: Path) -> JsonObject:
    from holmes.yaml_documents import UnreadableFile, YamlError, read_document

    try:
        document = read_document(path, unique_keys=False).content  # as in kubectl, the last duplicate key wins
    except UnreadableFile as error:
        raise ClusterUnreachable(f"{_named(path, error)}; make it readable or set KUBECONFIG") from error
    except YamlError as error:
        raise ConfigError(f"{_named(path, error)}; correct or remove the file") from error
    if not isinstance(document, dict):
        raise ConfigError(f"kubeconfig {str(path)!r}: expected a mapping, found {type(document).__name__}")
    return document


def _named(path: Path, error: Exception) -> str:
    line, _, problem = str(error).removeprefix(f"{path}:").partition(": ")
    where = f", line {line}: {problem}" if line.isdigit() else str(error).removeprefix(str(path))
    return f"kubeconfig {str(path)!r}{where}"


def _entries(documents: list[tuple[Path, JsonObject]], plural: str, singular: str) -> dict[str, _Entry]:
    entries: dict[str, _Entry] = {}
    for path, document in documents:
        for item in children(document, plural):
            name = text(item, "name")
            entries.setdefault(name, _Entry(name=name, body=child(item, singular), file=path))
    return entries


def _of_kubeconfig(config: _Kubeconfig, chosen: str) -> ClusterAccess:
    name = chosen or config.current_context
    files = ", ".join(repr(str(path)) for path in config.files)
    if not name:
        raise ConfigError(f"kubeconfig {files} has no current-context; choose one with --context: {_names(config)}")
    context = config.contexts.get(name)
    if context is None:
        near = difflib.get_close_matches(name, config.contexts, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ConfigError(f"context {name!r} is not in kubeconfig {files}; {hint}available contexts: {_names(config)}")
    cluster = config.clusters.get(text(context.body, "cluster"))
    if cluster is None or not text(cluster.body, "server"):
        raise ConfigError(
            f"kubeconfig {str(context.file)!r}: context {name!r} uses cluster {text(context.body, 'cluster')!r}, "
            "which does not define a server; add the server or choose another context"
        )
    user_name = text(context.body, "user")
    user = config.users.get(user_name)
    if user is None and user_name:
        raise ConfigError(
            f"kubeconfig {str(context.file)!r}: context {name!r} uses user {user_name!r}, "
            "which is not defined; add the user or choose another context"
        )
    return ClusterAccess(
        context=name,
        namespace=text(context.body, "namespace") or "default",
        cluster=_cluster(cluster),
        user=_user(user, cluster) if user is not None else User(),
    )


def _names(config: _Kubeconfig) -> str:
    names = sorted(config.contexts)
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return (", ".join(repr(name) for name in names[:20]) or "none") + more


def _cluster(entry: _Entry) -> Cluster:
    server, authority = text(entry.body, "server"), entry.pem("certificate-authority")
    if "://" not in server:
        trusted = authority != Pem(what=authority.what) or boolean(entry.body, "insecure-skip-tls-verify")
        server = f"https://{server}" if trusted else f"http://{server}"
    fault = fault_of_address(server)
    if fault is not None:
        raise ConfigError(
            f"kubeconfig {str(entry.file)!r}: server {server!r} of cluster {entry.name!r} {fault}; correct the address"
        )
    return Cluster(
        server=server.rstrip("/"),
        authority=authority,
        skip_tls_verify=boolean(entry.body, "insecure-skip-tls-verify"),
        tls_server_name=text(entry.body, "tls-server-name") or None,
        proxy_url=text(entry.body, "proxy-url") or None,
    )


_HEADER = "!#$&'*+^`|"
"""The characters that a header name can contain, in addition to those that `quote` keeps."""

_UNSENDABLE = expression(r"^\s|\s$|[\x00-\x1f\x7f]")


def _user(entry: _Entry, cluster: _Entry) -> User:
    body = entry.body
    return User(
        name=entry.name,
        token=text(body, "token") or None,
        token_file=entry.path_of("tokenFile"),
        username=text(body, "username") or None,
        password=text(body, "password") or None,
        certificate=entry.pem("client-certificate"),
        key=entry.pem("client-key"),
        exec_plugin=_exec_plugin(entry, cluster) if "exec" in body else None,
        auth_provider=child(body, "auth-provider") or None,
        impersonation=_impersonation(entry),
    )


def _impersonation(entry: _Entry) -> tuple[tuple[str, str], ...]:
    """Return the headers with which kubectl acts as another user. Raises `ConfigError` if they cannot be sent."""
    body, extra = entry.body, entry.body.get("as-user-extra")
    given: list[tuple[str, JsonValue]] = [("Impersonate-User", body.get("as")), ("Impersonate-Uid", body.get("as-uid"))]
    given += [("Impersonate-Group", group) for group in _listed(body.get("as-groups"))]
    given += [] if isinstance(extra, dict) else [("Impersonate-Extra", extra)]
    for key, values in child(body, "as-user-extra").items():
        name = f"Impersonate-Extra-{quote(key, safe=_HEADER)}"
        given += [(name, value) for value in _listed(values)]
    headers = tuple((name, value) for name, value in given if value not in (None, ""))
    place = f"kubeconfig {str(entry.file)!r}: user {entry.name!r}"
    if (headers or extra) and not body.get("as"):
        raise ConfigError(f"{place} has as-uid, as-groups or as-user-extra, but not `as`; add `as` or remove them")
    for name, value in headers:
        if not isinstance(value, str):
            raise ConfigError(f"{place}: a value of {name} is not text; put it in quotation marks")
        if _UNSENDABLE.search(value):
            why = f"a value of {name} contains a line break or another character that HTTP does not allow"
            raise ConfigError(f"{place}: {why}; correct it")
    return tuple((name, str(value)) for name, value in headers)


def _listed(value: JsonValue) -> Sequence[JsonValue]:
    return value if isinstance(value, list) else (value,)


def _exec_plugin(entry: _Entry, cluster: _Entry) -> ExecPlugin:
    body = child(entry.body, "exec")
    command, api_version = text(body, "command"), text(body, "apiVersion")
    if not command or not api_version:
        raise ConfigError(
            f"kubeconfig {str(entry.file)!r}: exec of user {entry.name!r} requires `command` and `apiVersion`; add them"
        )
    variables = tuple((text(item, "name"), text(item, "value")) for item in children(body, "env"))
    return ExecPlugin(
        command=command,
        arguments=texts(body, "args"),
        variables=variables,
        api_version=api_version,
        install_hint=" ".join(text(body, "installHint").split()),
        needs_terminal=text(body, "interactiveMode") == "Always",
        cluster_info=_cluster_info(cluster) if boolean(body, "provideClusterInfo") else None,
        directory=entry.file.parent,
    )


def _cluster_info(entry: _Entry) -> JsonObject:
    """Return the cluster in the form that exec plugins receive (ExecCredential, `spec.cluster`)."""
    authority = entry.pem("certificate-authority").read()
    extensions = {text(item, "name"): child(item, "extension") for item in children(entry.body, "extensions")}
    config = extensions.get("client.authentication.k8s.io/exec")
    info: dict[str, str | bool | JsonObject] = {"server": text(entry.body, "server")}
    if boolean(entry.body, "insecure-skip-tls-verify"):
        info["insecure-skip-tls-verify"] = True
    for key in ("tls-server-name", "proxy-url"):
        if text(entry.body, key):
            info[key] = text(entry.body, key)
    if authority is not None:
        info["certificate-authority-data"] = base64.b64encode(authority).decode()
    return {**info, "config": config} if config else info


def _of_service_account(environment: Environment, folder: Path) -> ClusterAccess:
    host = environment.get("KUBERNETES_SERVICE_HOST") or ""
    port = environment.get("KUBERNETES_SERVICE_PORT") or "443"
    namespace_file = folder / "namespace"
    try:
        namespace = read_credential_file(namespace_file).decode("utf-8", "replace").strip()
    except OSError:
        namespace = ""
    return ClusterAccess(
        context="in-cluster",
        namespace=namespace or "default",
        cluster=Cluster(
            server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
            authority=Pem(what="certificate-authority", path=folder / "ca.crt"),
        ),
        user=User(name="service account", token_file=folder / "token"),
        is_service_account=True,
    )
