"""Whether a value can be a secret at all: not a reference to one, an amount, a path, or a word of a sentence.

Called for everything that a name or a place makes suspicious. When in doubt a value is a secret, except in prose.
"""

from __future__ import annotations

import re
from typing import Final

from holmes.redaction.names import strength_of
from holmes.redaction.references import is_variable_reference, refers

PLACEHOLDER_START: Final = "(REDACTED"

_NOTHING: Final = frozenset(
    {
        "", "~", "0", "1", "changed", "configured", "created", "default", "deleted", "denied", "disabled", "empty",
        "enabled", "error", "expired", "failed", "false", "hidden", "incorrect", "invalid", "map", "masked", "missing",
        "n/a", "nil", "no", "none", "null", "ok", "off", "on", "opaque", "optional", "redacted", "rejected",
        "required", "revoked", "set", "string", "success", "true", "undefined", "unset", "unchanged", "unknown",
        "valid", "yes",
        "basic", "bearer", "erforderlich", "falsch", "obligatoire", "obligatorio", "obrigat\xf3rio",
        "requerido", "requis", "richiesto", "ung\xfcltig",
    }
)  # fmt: skip
_MASKED: Final = re.compile(r"[*xX.•\-#_]{3,}+$|\*+$|[-{}()\[\]?]{1,3}$")
_ELSEWHERE: Final = re.compile(
    r"(?:file|vault|ssm|env|op|ref\+\w+|arn:aws[\w\-]*|projects/[\w\-]+/secrets|secret[sm]?|k8s)(?:://|:|/)"
    r"|https?://|[a-z][a-z0-9+.\-]{1,20}://|system:|sha(?:256|512|1):"
)
_VARIABLE_NAME: Final = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$")
_AMOUNT: Final = re.compile(
    r"[+\-]?\d[\d.,_]*\s?(?:ns|us|µs|ms|s|m|h|d|k|mb|kb|gb|b|[kmg]i|%|bytes?|m\d+s)?$", re.IGNORECASE
)
_SIZE: Final = re.compile(r"\d+ bytes?$")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*$")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d$")
_PUBLIC: Final = re.compile(
    r"-----BEGIN (?!.{0,30}PRIVATE)|LS0tLS1CRUdJTiBD|LS0tLS1CRUdJTiBQVUJ|ssh-(?:rsa|ed25519) |ecdsa-"
)
# A type in a source file: `Option<String>`, `SecretStr`, `&'static str`.
_TYPE: Final = re.compile(
    r"(?:&(?:'\w+ )?)?(?:(?:Option|Optional|Box|Vec|Arc|Rc|Cow|Result|List|Maybe|Secret|Promise)[<\[])*"
    r"(?:[Ss]tring|[Ss]tr|SecretStr(?:ing)?|SecretText|[Bb]ytes?|[Bb]ool(?:ean)?|u8|char|Any|Text)"
    r"[>\]]*(?: = \w{1,20})?[,;]?$"
)
_STOP_WORDS: Final = frozenset(
    {
        "a", "an", "and", "are", "as", "be", "been", "before", "by", "can", "cannot", "could", "did", "do",
        "does", "error", "expired", "failed", "for", "from", "has", "have", "if", "in", "incorrect", "into",
        "invalid", "is", "it", "its", "may", "must", "no", "not", "of", "on", "only", "or", "please",
        "required", "so", "than", "that", "the", "their", "then", "this", "to", "too", "unable", "unauthorized",
        "unset", "was", "were", "when", "which", "while", "will", "with", "within", "without", "you", "your",
    }
)  # fmt: skip
_OBJECT_NAME: Final = re.compile(r"[a-z0-9]+(?:[\-./:][a-z0-9]+)*$")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$")
# The words that made prose of a line went with the cookie in it: what is left must not turn into a secret.
_MASKED_COOKIE: Final = re.compile(r"[\w.\-]=\(REDACTED:cookie:")
_LONG_WORD: Final = 12
# So much of a word shows how its letters are mixed.
_JUDGED_CHARACTERS: Final = 128
_SHORT_WORD: Final = 6


def is_reference(value: str, *, amounts: bool = False) -> bool:
    """Whether `value` is empty, hidden already, or says where the secret is.

    With `amounts` numbers, sizes and durations count too: `tokens=500` and `token: 15m` are no secrets.
    """
    text = value.strip()
    if text.lower() in _NOTHING or text.startswith(PLACEHOLDER_START):
        return True
    head = text[:400]
    return bool(
        _MASKED.match(text)
        or _ELSEWHERE.match(head)
        or _PUBLIC.match(head)
        or _SIZE.match(head)
        or _TYPE.match(head)
        or _MASKED_COOKIE.search(head)
        or refers(head)
        or (_VARIABLE_NAME.match(head) and strength_of(head) != "none")
        or (amounts and (_AMOUNT.match(head) or _DATE.match(head) or _TIME.match(head)))
    )


def is_variable(value: str) -> bool:
    """Whether `value` is empty, a template, a reference to a variable, or a placeholder."""
    text = value.strip()
    return not text or is_variable_reference(text[:400]) or _MASKED.match(text) is not None


def is_prose(value: str) -> bool:
    """Whether several words are a sentence and not a pass phrase."""
    words = value.lower().split()
    return len(words) > 1 and any(word.strip(".,;:!?\"'()") in _STOP_WORDS for word in words)


def is_word(value: str) -> bool:
    """Whether this is a word of a sentence or of a help text, and not the value of an option."""
    word = value.lower().strip(".,;:!?\"'()")
    return (
        word in _STOP_WORDS or word in _NOTHING or word in {"file", "flag", "path", "value", "option", "token", "name"}
    )


def is_object_name(value: str) -> bool:
    """Whether this can be the name of a Kubernetes object: `shop-db`, `default/my-tls`; a UUID is none."""
    return _OBJECT_NAME.match(value) is not None and not _UUID.match(value)


def looks_random(value: str, *, password: bool = False) -> bool:
    """Whether letters are mixed as people do not write them.

    With `password` six characters with a digit or a sign are enough, else it takes twelve.
    """
    if len(value) < (_SHORT_WORD if password else _LONG_WORD) or value[-1] in ":(" or value.isdigit():
        return False
    if _UUID.match(value):
        return True
    if is_object_name(value) and any(sign in value for sign in "-./:"):
        return False
    value = value[:_JUDGED_CHARACTERS]
    letters = any(map(str.isalpha, value))
    digits = any(map(str.isdigit, value))
    signs = any(sign in value for sign in "!@#$%^&*+=~?")
    mixed = any(map(str.isupper, value[1:])) and any(map(str.islower, value))
    return letters and (digits or signs or (mixed and "." not in value))
