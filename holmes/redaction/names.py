"""Decides whether a name shows that its value is a secret: `DB_PASSWORD` and `apiKey`, but not `secretName`.

Splits a name into words, in any naming style.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from itertools import pairwise
from typing import Final, Literal, TypeAlias

from holmes.redaction.kinds import PASSWORD, SECRET, TOKEN
from holmes.values.expressions import expression

# The certainty that a name marks a secret. `weak` names also name objects (`secret: shop-db`), so their values must
# look random.
Strength: TypeAlias = Literal["none", "weak", "strong"]

# Characters that a name can contain to the left of its keyword.
NAME_CHARACTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/"

_WORD: Final = expression(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# Names of source files, as in `PasswordEncoder.java:41`.
_SOURCE_FILE: Final = expression(r"\.(?:c|cc|cpp|cs|erl|ex|go|groovy|h|java|jsx?|kt|php|py|rb|rs|scala|swift|tsx?)$")
_PASSWORDS: Final = frozenset(
    {
        "contrasena", "contrasenya", "kennwort", "masterauth", "mdp", "motdepasse", "parola", "passcode", "passe",
        "passphrase", "passwd", "password", "passwords", "passwort", "psk", "pw", "pwd", "requirepass", "senha",
    }
)  # fmt: skip
_TOKENS: Final = frozenset({"jeton", "jwt", "token"})
_ROMANCE_KEYS: Final = frozenset({"chave", "chiave", "clave", "cle"})
_KEYS: Final = _ROMANCE_KEYS | {"key", "keys", "schluessel", "schlussel"}
_ERLANG: Final = frozenset(
    {
        "couchdb",
        "distribution",
        "ejabberd",
        "emqx",
        "erl",
        "erlang",
        "distributed",
        "node",
        "otp",
        "relx",
        "rabbitmq",
        "release",
        "vernemq",
    }
)
_WEAK: Final = frozenset(
    {
        "chave",
        "clave",
        "geheimnis",
        "secreto",
        "segredo",
        "segreto",
        "auth",
        "cred",
        "credential",
        "credentials",
        "creds",
        "secret",
        "secrets",
        "tokens",
    }
)
_COMPOUND: Final = expression(
    r"(?:api|access|private|secret|encryption|signing|master|ssh|auth|shared|account|license|webhook)key"
    r"|auth(?:entication)?token|(?:access|refresh|id|bot|session)token|(?:client|app|shared)secret|dockerc(?:fg|onfigjson)"
)
_COMPOUND_PASSWORD: Final = expression(r"passw(?:or)?[dt]|kennwort|passphrase|[a-z]{2,}(?:pwd|pass|pw)$")
_KEY_OWNERS: Final = frozenset(
    {
        "access", "account", "admin", "aes", "api", "app", "application", "auth", "client", "cookie", "datadog",
        "decryption", "deploy", "encrypt", "encryption", "fernet", "hmac", "integration", "jwt", "license", "master",
        "preshared", "private", "root", "rsa", "sas", "secret", "server", "service", "session", "shared", "signing",
        "ssh", "ssl", "storage", "tls", "unseal", "webhook", "wireguard", "write",
    }
)  # fmt: skip
# A name with one of these endings describes the location or handling of a secret, not the secret.
_LOCATORS: Final = frozenset(
    {
        "age", "ago", "aging", "algo", "algorithm", "alphabet", "at", "attempt", "attempts", "budget",
        "charset", "complexity", "cost", "date", "day", "days", "deadline", "difficulty", "encoder",
        "encoding", "encryption", "grace", "hashing", "history", "hour",
        "hours", "iterations", "last", "lockout", "minute", "minutes", "modified", "months", "ms", "on", "page",
        "percent", "period", "question", "quota", "rate", "retention", "retries", "retry", "reuse", "rotate",
        "rotated", "rounds", "rule", "rules", "score", "scheme", "set", "since", "strategy", "strength",
        "threshold", "title", "tries", "until", "warn", "warning", "weeks", "window", "years",
        "annotation", "annotations", "audience", "audiences", "bytes", "cert", "certificate",
        "change", "changed", "class", "config", "configmap", "count", "counter", "created", "delay", "dir",
        "directory", "duration", "enabled", "endpoint", "env", "error", "errors", "exists", "expiration",
        "expired", "expires", "expiry", "failed", "failures", "field", "file", "filename", "files", "format",
        "generation", "hash", "id", "ids", "interval", "invalid", "issuer", "kind", "label", "labels", "length",
        "lifetime", "limit", "line", "list", "lister", "manager", "max", "message", "method", "min", "mode",
        "mount", "mounts", "name", "names", "namespace", "operator", "path", "paths", "policy", "position",
        "prefix", "provider", "reason", "ref", "reference", "refs", "request", "requests", "required", "reset",
        "resource", "review", "reviews", "rotation", "seconds", "selector", "server", "service", "size",
        "source", "sources", "status", "store", "suffix", "time", "timeout", "timestamp", "ttl", "type",
        "types", "uid", "updated", "uri", "url", "urls", "usage", "used", "user", "username", "valid",
        "validation", "validity", "var", "version", "volume",
    }
)  # fmt: skip
_NOT_KEYS: Final = frozenset({"checksum", "fingerprint", "public", "publishable", "pub", "thumbprint"})
_AMOUNTS: Final = frozenset(
    {
        "cached", "completion", "input", "max", "maximum", "min", "minimum", "num", "number", "output", "prompt",
        "reasoning", "total",
    }
)  # fmt: skip
# Names that mark a secret although they have one of these endings.
_EXCEPTIONS: Final = frozenset({("secret", "id"), ("role", "secret", "id"), ("vault", "secret", "id")})


def _words_of(name: str) -> tuple[str, ...]:
    """Return the words of a name in lower case: `tls.keyID` gives `tls`, `key`, `id`."""
    if not name.isascii():
        name = "".join(sign for sign in unicodedata.normalize("NFKD", name) if sign.isascii())
    return tuple(word.lower() for word in _WORD.findall(name))


@lru_cache(maxsize=8192)
def strength_of(name: str) -> Strength:
    """Return how certain it is that the value of `name` is a secret."""
    words = () if _SOURCE_FILE.search(name) else _words_of(name)
    while len(words) > 1 and words[-1].isdigit():
        words = words[:-1]
    if not words:
        return "none"
    if words in _EXCEPTIONS:
        return "strong"
    if _is_locator(words):
        return "none"
    if _is_password(words):
        return "strong"
    return "none" if words[0] in _AMOUNTS else _strength_of_words(words)


def _is_locator(words: tuple[str, ...]) -> bool:
    """Return whether the name describes a public key or the location of a secret."""
    if words[-1] in _LOCATORS or not _NOT_KEYS.isdisjoint(words) or words[:2] == ("existing", "secret"):
        return True
    # The value of `passwordKey` is the key under which a Secret stores the password.
    return words[-1] in {"key", "keys"} and len(words) > 1 and (words[-2] in _PASSWORDS or words[-2] == "token")


def _strength_of_words(words: tuple[str, ...]) -> Strength:
    if not _TOKENS.isdisjoint(words) or any(_COMPOUND.search(word) for word in words):
        return "strong"
    pairs = {*pairwise(words), (words[0], words[-1])}
    # Romance languages put the key before its owner: `clave_api`.
    turned = {(second, first) for first, second in pairs if first in _ROMANCE_KEYS}
    if any(owner in _KEY_OWNERS and key in _KEYS for owner, key in pairs | turned):
        return "strong"
    if words[-1] == "cookie" and not _ERLANG.isdisjoint(words):
        return "strong"
    if words[-1] in _WEAK and (len(words) == 1 or words[-1] in {"auth", "creds", "cred", "secrets", "tokens"}):
        return "weak"
    if "secret" in words:
        return "strong" if words[0] != "secret" or words[-1] == "base" else "weak"
    return "weak" if words[-1] in _WEAK else "none"


def _is_password(words: tuple[str, ...]) -> bool:
    return (
        not _PASSWORDS.isdisjoint(words)
        or words[-1] == "pass"
        or any(_COMPOUND_PASSWORD.search(word) for word in words if word not in {"bypass", "compass", "pgpass"})
    )


@lru_cache(maxsize=8192)
def label_of(name: str) -> str:
    """Return the placeholder label for the value of `name`: password, token or secret."""
    words = _words_of(name)
    if words and _is_password(words):
        return PASSWORD
    return TOKEN if any("token" in word or word == "jwt" for word in words) else SECRET
