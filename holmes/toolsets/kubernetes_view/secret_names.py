"""Decides whether a name suggests that its value is secret.

`DB_PASS`, `smtpPassword` and `tls.key` suggest a secret, but `secretName` and `keyspace` do not. The words of a name
may be joined in any style. The value of an ambiguous name is treated as secret.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Final

from holmes.values.expressions import expression

_WORD: Final = expression(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

# Words that suggest a secret wherever they occur in a name.
_SECRET_WORDS: Final = frozenset(
    {
        "authorization", "bearer", "cred", "credential", "credentials", "creds", "dockercfg",
        "dockerconfigjson", "dsn", "htpasswd", "jwt", "masterauth", "otp", "passcode", "passphrase", "passwd",
        "password", "passwords", "psk", "pw", "pwd", "requirepass", "secret", "secrets", "token", "tokens",
        "totp"
    }
)  # fmt: skip
# Words that suggest a secret only at the end of a name. For example, `passThrough` and `authUrl` are not secrets.
_SECRET_LAST_WORDS: Final = frozenset(
    {
        "auth", "cert", "cookie", "cookies", "license", "pass", "pem", "pfx", "pin", "salt"
    }
)  # fmt: skip
# Compound words without a separator that suggest a secret.
_SECRET_PARTS: Final = expression(
    r"passw(?:or)?d|passphrase|(?:api|access|private|secret|encryption|signing|master|ssh)key|authtoken|accesstoken"
    r"|clientsecret|connectionstring|webhookurl"
)
_SECRET_PAIRS: Final = frozenset({("connection", "string"), ("webhook", "url"), ("slack", "url"), ("p", "12")})
# `key` suggests a secret after these words (`encryptionKey`, `tls.key`), even if an id or a number follows
# (`masterKey1`).
_KEY_OWNERS: Final = frozenset(
    {
        "access", "account", "admin", "aes", "api", "app", "application", "auth", "client", "cookie", "crypt",
        "crypto", "datadog", "decryption", "deploy", "encrypt", "encryption", "fernet", "gpg", "hash", "hmac",
        "host", "integration", "jwt", "license", "management", "master", "pgp", "private", "root", "rsa",
        "sas", "secret", "server", "service", "session", "shared", "sign", "signing", "ssh", "ssl", "storage",
        "tls", "unseal", "vault", "webhook", "wireguard", "write"
    }
)  # fmt: skip
# A name that ends with one of these words describes the location or handling of a secret, not its value.
_LOCATOR_WORDS: Final = frozenset(
    {
        "algorithm", "annotations", "audience", "audiences", "class", "count", "create", "dir", "directory",
        "duration", "enabled", "endpoint", "expiration", "expiry", "file", "format", "interval", "issuer",
        "labels", "length", "lifetime", "method", "mode", "mount", "name", "names", "namespace", "path",
        "paths", "policy", "provider", "ref", "reference", "refs", "required", "rotation", "seconds", "size",
        "store", "ttl", "type"
    }
)  # fmt: skip
_AMOUNT_WORDS: Final = frozenset({"limit", "max", "maximum", "min", "minimum", "num", "number", "total"})
_EXISTING: Final = ("existing", "secret")


def words_of(name: str) -> tuple[str, ...]:
    """Split a name into lower-case words. `tls.keyID` becomes `tls`, `key`, `id`."""
    return tuple(word.lower() for word in _WORD.findall(name))


@lru_cache(maxsize=4096)
def sounds_secret(name: str) -> bool:
    """Return whether the value under `name` is probably a secret."""
    words = words_of(name)
    if not words or words[-1] in _LOCATOR_WORDS or words[:2] == _EXISTING or words[0] in _AMOUNT_WORDS:
        return False
    meant = words[:-1] if words[-1].isdigit() and len(words) > 1 else words
    pairs = {*pairwise(meant), (meant[0], meant[-1])}
    return (
        not _SECRET_WORDS.isdisjoint(meant)
        or meant[-1] in _SECRET_LAST_WORDS
        or any(_SECRET_PARTS.search(word) for word in meant)
        or not _SECRET_PAIRS.isdisjoint(pairs)
        or any(owner in _KEY_OWNERS and word in {"key", "keys"} for owner, word in pairs)
    )
