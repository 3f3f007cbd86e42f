"""Is this the address of a server? Called where addresses enter: the kubeconfig and the settings of a model.

Pure: it resolves nothing and asks nobody. It refuses what every HTTP client would refuse later, in worse words.
"""

from __future__ import annotations

from urllib.parse import urlsplit


def fault_of_address(address: str) -> str | None:
    """Why `address` cannot be that of an HTTP server, as the end of a sentence; None when it can."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        return f"cannot be read ({error})"
    if any(character.isspace() or not character.isprintable() for character in address):
        return "has spaces or control characters in it"
    if parts.scheme not in ("http", "https"):
        return "does not begin with http:// or https://"
    if not parts.hostname:
        return "names no host"
    if parts.netloc.endswith(":") or port == 0:
        return "has a colon after the host, but no port"
    return None
