"""Keys and hashes that have a form of their own: JWTs, base64 of keys, age, WireGuard, hashed passwords."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from holmes.redaction.kinds import BASE64, BASE64_EDGE, EDGE, END, TOKEN, Kind, starting, token


def _decoded_start(value: str, characters: int = 120) -> bytes:
    """The first bytes of base64 text; empty when it is none."""
    start = value[: min(characters, len(value))]
    try:
        return base64.b64decode(start[: len(start) // 4 * 4])
    except (ValueError, binascii.Error):
        return b""


def _is_private_key(value: str) -> bool:
    return b"PRIVATE KEY" in _decoded_start(value)


def _is_token(value: str) -> bool:
    return _decoded_start(value, len(value)).count(b".") >= 2


def _has_login(value: str) -> bool:
    """Whether base64 text is `user:password`."""
    user, colon, password = _decoded_start(value, len(value)).partition(b":")
    return bool(user and colon and password) and user.isascii() and b"\x00" not in user


_DOLLAR: Final = re.compile(r"\$(?=[a-z0-9])")

KINDS: Final = (
    Kind(
        name="jwt",
        prefixed=True,
        label=TOKEN,
        literals=("eyJ",),
        pattern=re.compile(
            starting("eyJ", r"A-Za-z0-9_\-.")
            + r"[A-Za-z0-9_\-]{8,}+\.[A-Za-z0-9_\-]*+\.[A-Za-z0-9_\-]*+(?:\.[A-Za-z0-9_\-]*+){0,2}"
        ),
    ),
    Kind(
        name="jwt-base64",
        long_word=True,
        label=TOKEN,
        literals=("ZXlK",),
        pattern=re.compile(starting("ZXlK", BASE64) + r"[A-Za-z0-9+/]{40,}+={0,2}"),
        accepts=_is_token,
    ),
    Kind(
        name="private-key-base64",
        long_word=True,
        label="private-key",
        literals=("LS0tLS1CRUdJTi",),
        pattern=re.compile(starting("LS0tLS1CRUdJTi", BASE64) + r"[A-Za-z0-9+/]{20,}+={0,2}"),
        accepts=_is_private_key,
    ),
    Kind(
        name="registry-login",
        literals=("auth",),
        folded=True,
        pattern=re.compile(
            r"auth(?<![a-z0-9_]auth)\\{0,7}[\"']\s{0,4}:\s{0,4}\\{0,7}[\"'](?P<secret>[A-Za-z0-9+/]{4,}+={0,2})\\{0,7}[\"']"
        ),
        accepts=_has_login,
    ),
    Kind(
        name="registry-config-base64",
        long_word=True,
        literals=("eyJhdXRocyI6", "ewogICJhdXRocyI6", "ewoJImF1dGhzIjog"),
        pattern=re.compile(
            rf"{BASE64_EDGE}(?:eyJhdXRocyI6|ewogICJhdXRocyI6|ewoJImF1dGhzIjog)[A-Za-z0-9+/]{{16,}}+={{0,2}}"
        ),
    ),
    token("age-secret-key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{58}"),
    Kind(
        name="bcrypt-hash",
        label="password-hash",
        literals=("$2",),
        gate=_DOLLAR,
        pattern=re.compile(r"\$2[abxy]\$[0-9]{2}\$[./A-Za-z0-9]{53}(?![./A-Za-z0-9])"),
    ),
    Kind(
        name="crypt-hash",
        label="password-hash",
        literals=("$",),
        gate=_DOLLAR,
        pattern=re.compile(
            r"\$(?:1|5|6|7|y|gy|apr1)\$(?:rounds=[0-9]{1,9}\$|j[./A-Za-z0-9]{1,8}\$)?[./A-Za-z0-9]{1,64}\$[./A-Za-z0-9]{22,}+"
        ),
    ),
    Kind(
        name="argon2-hash",
        label="password-hash",
        literals=("$",),
        gate=_DOLLAR,
        pattern=re.compile(r"\$(?:argon2(?:id|i|d)|scrypt|pbkdf2(?:-sha[0-9]{1,3})?)\$[A-Za-z0-9+/=,.$\-]{20,}+"),
    ),
    Kind(
        name="scram-verifier",
        label="password-hash",
        literals=("SCRAM-SHA-256$",),
        pattern=re.compile(
            r"SCRAM-SHA-256\$[0-9]{1,9}:[A-Za-z0-9+/=]{8,64}"
            r"\$[A-Za-z0-9+/=]{20,64}:[A-Za-z0-9+/=]{20,64}"
        ),
    ),
    Kind(
        name="ldap-hash",
        label="password-hash",
        literals=("{SSHA", "{SHA", "{SMD5", "{MD5", "{CRYPT", "{PLAIN}", "{CLEARTEXT}"),
        pattern=re.compile(
            r"\{(?:SSHA(?:256|512)?|SHA|SMD5|MD5|CRYPT|PLAIN|CLEARTEXT)\}(?P<secret>(?<=T\}|N\})[^\s\"'\\]{4,100}|[A-Za-z0-9+/.$=]{20,}+)"
        ),
    ),
    Kind(
        name="bootstrap-token",
        label=TOKEN,
        literals=("token",),
        gate=re.compile(r"\.[a-z0-9]{16}(?![A-Za-z0-9])"),
        pattern=re.compile(
            r"token(?:(?<=--token)|(?<=[Uu]sing token)|(?<=bootstrap[ \-]token))[=: ][^\n]{0,40}?"
            rf"(?<![A-Za-z0-9.\-])(?P<secret>[a-z0-9]{{6}}\.[a-z0-9]{{16}}){END}"
        ),
    ),
    Kind(
        name="ssh-legacy-ppk",
        literals=("PuTTY-User-Key-File",),
        pattern=re.compile(
            rf"{EDGE}Private-Lines: [0-9]{{1,3}}\r?\n(?P<secret>(?:[A-Za-z0-9+/=]{{4,80}}\r?\n){{1,99}})"
        ),
    ),
)
