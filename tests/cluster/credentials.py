"""Makes the cluster's keys, certificates, tokens and kubeconfigs: called by `lifecycle` before the start.

Everything is made anew for every start and is worthless afterwards. Users log in with tokens, because a token
is one line where a client certificate is three openssl calls.
"""

from __future__ import annotations

import base64
import secrets
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.cluster.errors import ClusterError
from tests.cluster.layout import API_SERVICE_IP, INNER_SERVER, NODE_IP, NODE_NAME

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.layout import Layout

NEW_CERTIFICATE: Final = (
    *("req", "-x509", "-days", "365"),
    *("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc"),
)
SERVER_NAMES: Final = (
    f"subjectAltName=IP:127.0.0.1,IP:{API_SERVICE_IP},IP:{NODE_IP},DNS:localhost,DNS:kubernetes,"
    "DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local"
)


@dataclass(frozen=True)
class User:
    """Somebody the API server knows; `outside` users come from the host, the others are the cluster's own parts."""

    name: str
    identity: str
    group: str = ""
    outside: bool = False


USERS: Final = (
    User("admin", "admin", "system:masters", outside=True),
    User("viewer", "viewer", outside=True),
    User("nobody", "nobody", outside=True),
    User("controller-manager", "system:kube-controller-manager"),
    User("scheduler", "system:kube-scheduler"),
    User("proxy", "system:kube-proxy"),
    User("kubelet", f"system:node:{NODE_NAME}", "system:nodes"),
)


def write_credentials(layout: Layout, server: str) -> None:
    """Fill `pki/` and write one kubeconfig per user; `server` is the address that outside users see."""
    pki = layout.run / "pki"
    pki.mkdir(mode=0o700)
    _openssl(pki, *NEW_CERTIFICATE, "-subj", "/CN=test-ca", "-keyout", "ca.key", "-out", "ca.crt")
    _certificate(pki, "apiserver", "/CN=kube-apiserver")
    # The API server's own account at the kubelet, for logs and exec.
    _certificate(pki, "kubelet-client", "/O=system:masters/CN=kube-apiserver-kubelet-client")
    # `genpkey` writes PKCS #8, which the API server cannot take a public key from.
    _openssl(pki, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "service-accounts.key")
    authority = base64.b64encode((pki / "ca.crt").read_bytes()).decode()
    tokens = {user: secrets.token_hex(16) for user in USERS}
    (pki / "tokens.csv").write_text("".join(f'{t},{u.identity},{u.name},"{u.group}"\n' for u, t in tokens.items()))
    for user, token in tokens.items():
        address = server if user.outside else INNER_SERVER
        kubeconfig = layout.kubeconfig(user.name)
        layout.fill("kubeconfig.yaml", kubeconfig, user=user.name, token=token, ca=authority, server=address)
        kubeconfig.chmod(0o600)  # kubectl and helm warn about readable ones


def admin_token(layout: Layout) -> str:
    """Return the token of the user `admin`."""
    return (layout.run / "pki" / "tokens.csv").read_text().split(",", 1)[0]


def _certificate(pki: Path, name: str, subject: str) -> None:
    extensions = ("-addext", SERVER_NAMES, "-addext", "extendedKeyUsage=serverAuth,clientAuth")
    authority = ("-CA", "ca.crt", "-CAkey", "ca.key", "-addext", "basicConstraints=critical,CA:FALSE")
    files = ("-keyout", f"{name}.key", "-out", f"{name}.crt")
    _openssl(pki, *NEW_CERTIFICATE, "-subj", subject, *authority, *extensions, *files)


def _openssl(pki: Path, *arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], cwd=pki, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ClusterError(f"`openssl {arguments[0]}` failed: {done.stderr.strip()}")
