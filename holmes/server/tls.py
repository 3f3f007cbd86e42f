"""TLS of `holmes serve`, as HOLMES_SSL_* say. Refuses half of a pair, and files that do not fit."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from holmes.settings.settings import reveal
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from holmes.settings.server import ServerSettings


def tls_context(settings: ServerSettings) -> ssl.SSLContext | None:
    """What to serve with; None for plain HTTP. Raises `ConfigError`."""
    certificate, key, authorities = settings.ssl_certfile, settings.ssl_keyfile, settings.ssl_ca_certs
    if certificate is None and key is None:
        if authorities is not None or settings.ssl_keyfile_password is not None:
            raise ConfigError("TLS has no certificate: set HOLMES_SSL_CERTFILE and HOLMES_SSL_KEYFILE")
        return None
    if certificate is None or key is None:
        given, missing = ("CERTFILE", "KEYFILE") if key is None else ("KEYFILE", "CERTFILE")
        raise ConfigError(f"HOLMES_SSL_{given} is set without HOLMES_SSL_{missing}: set both or none")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # Never ask a terminal for it.
        context.load_cert_chain(certificate, key, password=reveal(settings.ssl_keyfile_password) or "")
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"HOLMES_SSL_CERTFILE={str(certificate)!r} and HOLMES_SSL_KEYFILE={str(key)!r} cannot be used: "
            f"{_reason(error)}; both must be PEM files that belong together, an encrypted key needs "
            "HOLMES_SSL_KEYFILE_PASSWORD"
        ) from error
    if authorities is not None:
        try:
            context.load_verify_locations(authorities)
        except (OSError, ValueError) as error:
            raise ConfigError(f"HOLMES_SSL_CA_CERTS={str(authorities)!r} cannot be used: {_reason(error)}") from error
        # Probes and browsers show no certificate, and need the key of the API all the same.
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).lower().replace("_", " ")
    return getattr(error, "strerror", None) or str(error)
