"""CERTIFICATE: authorities of the user's own, for everything that this process and its tools connect to.

The public authorities stay trusted. The bundle is a file, because OpenSSL, Go and Python all find one by variables.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from holmes.settings.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

_VARIABLES: Final = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def certificate_variables(environment: Mapping[str, str]) -> Mapping[str, str]:
    """The variables that make programs trust the authorities of CERTIFICATE; none when it is not set.

    Writes the bundle below `~/.holmes/cache`. Raises `SettingsError` when it is not base64 of PEM certificates.
    """
    encoded = environment.get("CERTIFICATE", "").strip()
    if not encoded:
        return {}
    own = _decoded(encoded)
    bundle = b"\n".join([own, *(path.read_bytes() for path in _known_bundles(environment))])
    folder = Path(environment.get("HOME") or Path.home()) / ".holmes" / "cache"
    path = folder / f"authorities-{hashlib.sha256(bundle).hexdigest()[:16]}.pem"
    try:
        if not path.is_file():
            _write(path, bundle)
    except OSError as error:
        message = f"CERTIFICATE cannot be used: {str(path)!r} cannot be written: {error.strerror}"
        raise SettingsError(message) from error
    return dict.fromkeys(_VARIABLES, str(path))


def _decoded(encoded: str) -> bytes:
    try:
        own = base64.b64decode("".join(encoded.split()), validate=True)
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=own.decode("ascii"))
    except (binascii.Error, UnicodeDecodeError, ssl.SSLError, ValueError) as error:
        message = "CERTIFICATE is not valid: expected PEM certificates, base64-encoded (`base64 --wrap=0 ca.pem`)"
        raise SettingsError(message) from error
    return own


def _known_bundles(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """The authorities that were trusted before: those that a variable names, else the system's, and Python's."""
    import certifi

    named = environment.get("SSL_CERT_FILE") or ssl.get_default_verify_paths().cafile
    paths = dict.fromkeys(Path(each) for each in (named, certifi.where()) if each)
    return tuple(path for path in paths if path.is_file())


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all: another process may read it already."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    Path(temporary).replace(path)
