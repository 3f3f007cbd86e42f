"""How a cluster is reached and as whom: values that a kubeconfig or the service account of a pod gives.

Made by `holmes.kubernetes.kubeconfig`, read by the credential sources and the transport. No I/O except reading a
certificate when it is needed, because certificates and tokens are replaced while Holmes runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holmes.values.errors import ClusterUnreachable

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.values.json_types import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Pem:
    """A certificate or key: the bytes themselves, or the file that holds them. `data` wins."""

    what: str
    data: bytes | None = field(default=None, repr=False)
    path: Path | None = None

    def read(self) -> bytes | None:
        """The bytes, or None when neither is given. Raises `ClusterUnreachable` for a file that cannot be read."""
        if self.data is not None or self.path is None:
            return self.data
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise ClusterUnreachable(
                f"Cannot read the {self.what} {str(self.path)!r} that the kubeconfig names: {error.strerror}; "
                "correct the kubeconfig or log in to the cluster again"
            ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A server and how to trust it."""

    server: str
    authority: Pem = Pem(what="certificate-authority")
    skip_tls_verify: bool = False
    tls_server_name: str | None = None
    proxy_url: str | None = None

    @property
    def encrypted(self) -> bool:
        """Whether the server speaks TLS; without it no credentials are sent, as in kubectl."""
        return self.server.lower().startswith("https://")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecPlugin:
    """A program that prints credentials. `directory` is what a relative command is relative to."""

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
    """Who asks, with everything that may prove it."""

    name: str = ""
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    certificate: Pem = Pem(what="client-certificate")
    key: Pem = Pem(what="client-key")
    exec_plugin: ExecPlugin | None = None
    auth_provider: JsonObject | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAccess:
    """One context: where, as whom, and in which namespace when none is given."""

    context: str
    namespace: str
    cluster: Cluster
    user: User

    def unreachable(self, why: str, advice: str) -> ClusterUnreachable:
        """The one line that names context, server, reason and next step."""
        return ClusterUnreachable(
            f"Cannot reach the cluster of context {self.context!r} at {self.cluster.server}: {why}; {advice}"
        )
