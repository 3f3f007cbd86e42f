"""Opens connections to the API server, with the TLS settings of the kubeconfig.

The proxy comes from the kubeconfig or from the proxy variables. Other environment variables are ignored.

OpenSSL reads a client certificate only from a file. The file exists only while OpenSSL reads it, in a folder that only
this user can read.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import httpx

    from holmes.kubernetes.credentials import Credentials
    from holmes.kubernetes.kubeconfig import ClusterAccess
    from holmes.values.environment import Environment
    from holmes.values.errors import ClusterUnreachable

_CONNECT_TIMEOUT_SECONDS = 7.0
"""Includes the TLS handshake, which also waits for a processor of this machine."""

_IDLE_TIMEOUT_SECONDS = 30.0


def open_http_client(access: ClusterAccess, credentials: Credentials, environment: Environment) -> httpx.AsyncClient:
    """Create an HTTP client for the server. Reads files and imports httpx, so call it in a thread.

    Raises `ClusterUnreachable` if certificates or the proxy are not valid.
    """
    # This entry refuses the import of httpx's own command line, whose modules take as long as all others of httpx.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
    import httpx

    cluster = access.cluster
    proxy = cluster.proxy_url or environment_proxy(cluster.server, environment)
    try:
        return httpx.AsyncClient(
            base_url=cluster.server,
            verify=_tls_context(access, credentials) if cluster.encrypted else False,
            proxy=proxy,
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(_IDLE_TIMEOUT_SECONDS, connect=_CONNECT_TIMEOUT_SECONDS),
            headers={"Accept": "application/json", "User-Agent": "holmes"},
        )
    except (httpx.InvalidURL, ValueError, ImportError) as error:
        why = f"the server or proxy address cannot be used ({error})"
        raise access.unreachable(why, "correct the address") from error


def _tls_context(access: ClusterAccess, credentials: Credentials) -> ssl.SSLContext:
    """Load the CA certificates and the client certificate from the kubeconfig or the files that it refers to."""
    cluster = access.cluster
    authority = cluster.authority.read()
    try:
        context = ssl.create_default_context(cadata=authority.decode("ascii") if authority else None)
    except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
        why = f"the cluster's certificate-authority is not a PEM certificate ({error})"
        raise access.unreachable(why, "correct it in the kubeconfig") from error
    # Python 3.13 rejects CA certificates without a key identifier. Some clusters use such certificates, and kubectl
    # accepts them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if cluster.skip_tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if credentials.certificate and credentials.key:
        _show_certificate(context, access, credentials.certificate, credentials.key)
    return context


def _show_certificate(context: ssl.SSLContext, access: ClusterAccess, certificate: bytes, key: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="holmes-") as folder:
        certificate_file, key_file = Path(folder, "certificate.pem"), Path(folder, "key.pem")
        certificate_file.write_bytes(certificate)
        key_file.touch(mode=0o600)
        key_file.write_bytes(key)
        try:
            context.load_cert_chain(certificate_file, key_file, password="")  # an encrypted key must fail, not prompt
        except (ssl.SSLError, OSError) as error:
            why = f"the client certificate and key of user {access.user.name!r} cannot be used ({error})"
            raise access.unreachable(why, "correct them in the kubeconfig or log in again") from error


def environment_proxy(server: str, environment: Environment) -> str | None:
    """Select the proxy from HTTPS_PROXY and NO_PROXY, as kubectl does. Returns None if the server needs no proxy."""
    parts = urlsplit(server)
    name = f"{parts.scheme}_proxy"
    proxy = environment.get(name.upper()) or environment.get(name)
    host = parts.hostname or ""
    excluded = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    entries = [entry.strip().lower() for entry in excluded.split(",") if entry.strip()]
    if not proxy or _is_loopback(host) or any(_is_excluded(host, parts.port, entry) for entry in entries):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_excluded(host: str, port: int | None, entry: str) -> bool:
    """Return whether an entry of NO_PROXY (`*`, a domain, `host:port`, an address or a network) matches the server."""
    if entry == "*" or entry in (host, f"{host}:{port}"):
        return True
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return host.endswith("." + entry.removeprefix("*").lstrip("."))


def connection_error(access: ClusterAccess, error: httpx.TransportError | ssl.SSLError) -> ClusterUnreachable:
    """Create the error for a failed connection. Its message describes the root cause."""
    import httpx

    if isinstance(error, httpx.TimeoutException):
        waited = _CONNECT_TIMEOUT_SECONDS if isinstance(error, httpx.ConnectTimeout) else _IDLE_TIMEOUT_SECONDS
        return access.unreachable(f"no response within {waited:g} s", "check the network, the VPN and the address")
    if isinstance(error, httpx.ProxyError):
        return access.unreachable(f"the proxy failed ({error})", "check proxy-url, HTTPS_PROXY and NO_PROXY")
    cause = _root_cause(error)
    cut = isinstance(error, httpx.ReadError | httpx.WriteError | httpx.RemoteProtocolError)
    if cut and access.cluster.encrypted and not isinstance(cause, ssl.SSLError):
        # TLS 1.3 checks a client certificate after the handshake, and the client might not receive the rejection.
        why = f"the connection ended before a response ({_why_and_advice(cause)[0]})"
        return access.unreachable(why, "check the network, the VPN, and the client certificate in the kubeconfig")
    return access.unreachable(*_why_and_advice(cause))


def _why_and_advice(cause: BaseException) -> tuple[str, str]:
    match cause:
        case ssl.SSLCertVerificationError():
            why = f"the server's TLS certificate is not trusted ({cause.verify_message})"
            return why, "check certificate-authority and tls-server-name in the kubeconfig"
        case ssl.SSLError():
            return f"TLS failed ({cause.reason or cause})", "check the address and the certificates"
        case socket.gaierror():
            return "the server's host name cannot be resolved", "check the address, DNS and the VPN"
        case ConnectionRefusedError():
            return "connection refused", "check that the cluster is running and that the address is correct"
        case _ if type(cause).__name__ == "LocalProtocolError":  # its text quotes headers, which can be secrets
            return "the request is not valid HTTP", "check the credentials and the address in the kubeconfig"
        case _:
            return str(cause) or type(cause).__name__, "check the network, the VPN and the address"


def _root_cause(error: BaseException) -> BaseException:
    """Return the operating system or TLS error that caused `error`, or `error` itself if none is found."""
    seen: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in seen:
        seen.append(current)
        if isinstance(current, BaseExceptionGroup):
            current = current.exceptions[0]
        else:
            current = current.__cause__ or current.__context__
    telling = [found for found in seen if isinstance(found, (ssl.SSLError, OSError)) and str(found)]
    return telling[-1] if telling else error
