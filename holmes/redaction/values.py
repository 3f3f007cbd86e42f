"""Decides whether a value can be a secret, and finds its end.

References, amounts, paths and words of a sentence are not secrets. In doubt, a value is treated as a secret, except in
prose. A password may start like a variable, a template or a call, so a reference must be complete and consist of words.

A value ends at its closing quote, at any depth of escaping, or at the end of its indented YAML block. Inside JSON
strings, quotes are escaped. At depth k, a quote has 2^k - 1 backslashes. Blocks are read from the whole text, because
they may be longer than a window.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.redaction.names import strength_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator


QUOTE: Final = expression(r"\\{0,7}[\"'`]")
_DOUBLE_QUOTED: Final = expression(r"[^\"\\\n]*+(?:\\.[^\"\\\n]*+)*+")
# The lookbehind ensures that a run of backslashes matches only once.
_ESCAPED_QUOTE: Final = expression(r"(?<!\\)\\*+(\"|')|\n")
_SCAN_CHARACTERS: Final = 256 * 1024
BLOCK_SCALAR: Final = expression(r"[|>][+\-0-9]{0,2}[ \t]*(?:#[^\n]*)?(?=\r?\n)")
_MARKS: Final = " +-\t"
# Matches a complete reference, which other text may follow.
_VARIABLE: Final = expression(
    r"\{\{(?P<braces>[A-Z][a-z0-9]+)\}\}|\$?\{\{[^{}\n]*\}\}|\$\{[A-Za-z_!#*0-9][^{}\n]*\}|\$\([A-Za-z_.</][^()\n]*\)|\$\(\([^()\n]*\)\)"
    r"|\$env:\w+|\$\{\{|\{\{-?\s*[.$A-Za-z_(\-]*$|\$\{[A-Z_][A-Z0-9_]*$|\$\([A-Za-z_./\-]*$|<[A-Za-z_\-]*$"
    r"|\$[A-Z_][A-Z0-9_]*(?![A-Za-z0-9_])|\$(?P<name>[A-Za-z_]\w*)|\$[0-9?*@](?![A-Za-z0-9_])"
    r"|%[sdvqrx](?!\w)|%[+#][vsd]|%\([\w.]+\)[a-z]|%\{[\w.]+\}|%(?P<percent>[A-Za-z_]\w*)%"
    r"|\{[A-Za-z_]*(?:\.[a-z_]+)*\}|\{\d\}|<(?P<tag>[^<>\n]{0,120})>|`[^`\n]+`|\((?i:redacted)"
)
# A variable name has no digits in place of letters, unlike `$tr0ngPass`.
_LEET: Final = expression(r"[a-z][0-9]+[a-z]")
_ESCAPED_TAG: Final = expression(r"\\u003[ce]")
_PATH: Final = expression(r"(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][A-Za-z0-9_.@%+,\-]*)+$")
_ROOTS: Final = frozenset(
    {
        "app", "apps", "bin", "certs", "config", "credentials", "data", "dev", "etc", "home", "keys", "lib", "media",
        "mnt", "opt", "pki", "proc", "root", "run", "secret", "secrets", "srv", "sys", "tmp", "usr", "users", "var",
        "vault", "workspace",
    }
)  # fmt: skip
_FILE: Final = expression(r"\.(?:cfg|conf|crt|env|ini|jks|json|key|p12|pass|pem|pfx|pwd|secret|token|txt|ya?ml)$")
# A folder is a word, optionally with a number at its end: `db-1`, `v2`.
_FOLDER: Final = expression(r"\.?[A-Za-z]?[a-z_.@\-]*(?:[-_.][0-9]+|(?<=\bv)[0-9])?$|[A-Z_\-]+$")
_CALL: Final = expression(r"(?P<function>[A-Za-z_][\w.]*)\((?P<arguments>[^\n]*)")
_MASKED_CALL: Final = expression(r"[A-Za-z]{1,20}[(\[]\(REDACTED[a-z0-9:\-]{0,80}")
_FETCH: Final = expression(
    r"(?:get|fetch|load|read|lookup|decode|decrypt|random|env|file|base64|generate|create|secret|read)", re.IGNORECASE
)
_MIXED_NAME: Final = expression(r"[._]|[a-z][A-Z]")
_ARGUMENT: Final = expression(r"\s*(?:\)|[\"'$.&]|[A-Za-z_][\w.]*[.(,]|[A-Za-z_][\w.]*$)")
_NUMBER: Final = expression(r"\d+\)?$")
_ATTRIBUTE: Final = expression(
    r"(?:var|local|data|module|self|this|os|config|settings|process|secrets?|vault|env|args|opts|options|params|request|"
    r"ctx|context|cfg|conf|props|properties|values|spec)(?:\.[A-Za-z_]+|\[[\"']?[A-Za-z_.\-]+[\"']?\]|\[\d\])+[;,)]?$",
    re.IGNORECASE,
)
# An attribute of a resource: `random_password.db.result`.
_RESOURCE: Final = expression(r"[a-z]+_[a-z_]+(?:\.[a-z_]+(?:\[[\"']?[a-z0-9_.\-]+[\"']?\])?){2,6}[;,)]?$")
_YAML_TAG: Final = expression(r"!(?:vault|Ref|Sub|GetAtt|ImportValue|secret|env|env_var|include)\b")
_MIXED_LENGTH: Final = 6
_MOST_VARIABLES: Final = 8
_PLACEHOLDER_START: Final = "(REDACTED"
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
_MASKED: Final = expression(r"[*xX.•\-#_]{3,}+$|\*+$|[-{}()\[\]?]{1,3}$")
_ELSEWHERE: Final = expression(
    r"(?:file|vault|ssm|env|op|ref\+\w+|arn:aws[\w\-]*|projects/[\w\-]+/secrets|secret[sm]?|k8s)(?:://|:|/)"
    r"|https?://|[a-z][a-z0-9+.\-]{1,20}://|system:|sha(?:256|512|1):"
)
_VARIABLE_NAME: Final = expression(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$")
_AMOUNT: Final = expression(
    r"[+\-]?\d[\d.,_]*\s?(?:ns|us|µs|ms|s|m|h|d|k|mb|kb|gb|b|[kmg]i|%|bytes?|m\d+s)?$", re.IGNORECASE
)
_SIZE: Final = expression(r"\d+ bytes?$")
_TIME: Final = expression(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*$")
_DATE: Final = expression(r"\d{4}-\d\d-\d\d$")
_PUBLIC: Final = expression(
    r"-----BEGIN (?!.{0,30}PRIVATE)|LS0tLS1CRUdJTiBD|LS0tLS1CRUdJTiBQVUJ|ssh-(?:rsa|ed25519) |ecdsa-"
)
# A type in source code: `Option<String>`, `SecretStr`, `&'static str`.
_TYPE: Final = expression(
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
_OBJECT_NAME: Final = expression(r"[a-z0-9]+(?:[\-./:][a-z0-9]+)*$")
_UUID: Final = expression(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$")
# Masking a cookie also removes the words that mark the line as prose. The rest of the line must not be masked as a
# secret.
_MASKED_COOKIE: Final = expression(r"[\w.\-]=\(REDACTED:cookie:")
_LONG_WORD: Final = 12
# Number of leading characters that are checked for a random mix of letters.
_JUDGED_CHARACTERS: Final = 128
_SHORT_WORD: Final = 6


def closes(backslashes: int, depth: int) -> bool:
    """Return whether a quote after `backslashes` ends a string whose quotes have `depth` backslashes."""
    return backslashes < depth or backslashes % (2 * depth + 2) == depth


def closing_quote(text: str, start: int, quote: str, limit: int) -> int:
    """Return the end of the string that starts at `start`, after `quote`.

    The string ends at its closing quote, the end of its line, or `limit`.
    """
    limit = min(limit, start + _SCAN_CHARACTERS)
    if quote == '"':
        match = _DOUBLE_QUOTED.match(text, start, limit)
        return match.end() if match else start
    if len(quote) == 1:
        return _closing_single(text, start, quote, limit)
    depth = len(quote) - 1
    for match in _ESCAPED_QUOTE.finditer(text, start, limit):
        if match[1] is None:
            return match.start()
        backslashes = match.end() - match.start() - 1
        if match[1] == quote[-1] and closes(backslashes, depth):
            return match.end() - 1 - min(backslashes, depth)
    return limit


def _closing_single(text: str, start: int, quote: str, limit: int) -> int:
    line_end = text.find("\n", start, limit)
    limit = limit if line_end < 0 else line_end
    if text.startswith(quote, start):
        return start
    position = text.find(quote, start, limit)
    # YAML doubles a quote inside a string.
    while position >= 0 and quote == "'" and text.startswith("''", position):
        position = text.find(quote, position + 2, limit)
    return limit if position < 0 else position


def column_of(line: str) -> int:
    """Return the column of the content, or -1 for a blank line. List dashes and diff marks are treated as spaces."""
    content = line.strip()
    if not content:
        return -1
    if content in {"-", "+"}:
        return len(line) - len(line.lstrip())
    return len(line) - len(line.lstrip(_MARKS))


def _next_line(text: str, position: int) -> tuple[int, int]:
    """Return the start and end of the line after `position`, or -1, -1 at the end of the text.

    The line break is not included.
    """
    line_break = text.find("\n", position)
    if line_break < 0 or line_break + 1 >= len(text):
        return -1, -1
    start = line_break + 1
    end = text.find("\n", start)
    return start, len(text) if end < 0 else end


def lines_from(text: str, position: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of every line after `position`."""
    start, end = _next_line(text, position)
    while start >= 0:
        yield start, end
        start, end = _next_line(text, end)


def indented_block(text: str, position: int, column: int) -> tuple[int, int]:
    """Find the lines after `position` that are indented deeper than `column`.

    Returns the start of the first line and the end of the last line. Both are equal if no line is found.
    """
    first = last = -1
    for start, end in lines_from(text, position):
        line = text[start : min(end, start + 4096)]
        if line.strip():
            if len(line) - len(line.lstrip(" \t")) <= column:
                break
            first = start if first < 0 else first
            last = end
    return (first, last) if first >= 0 else (position, position)


def refers(value: str) -> bool:
    """Return whether `value` is a complete reference. `value` has no surrounding whitespace."""
    return _is_variable_reference(value) or _is_path(value) or _is_call(value) or _is_attribute(value)


def _is_variable_reference(value: str) -> bool:
    """Return whether `value` consists of variables and templates, without text that could be a secret."""
    value = _ESCAPED_TAG.sub(lambda found: "<" if found[0][-1] == "c" else ">", value)
    first = _VARIABLE.match(value)
    if not first or not _is_plausible(first):
        return False
    left = _VARIABLE.sub(lambda found: "" if _is_plausible(found) else found[0], value, _MOST_VARIABLES)
    if left and value[0] in "{<%" and not value.startswith("{{") and " " not in left:
        return False
    return len(left) < _MIXED_LENGTH or " " in left or not any(map(str.isdigit, left))


def _is_plausible(match: re.Match[str]) -> bool:
    name = match["name"] or match["percent"] or match["braces"]
    if name and _LEET.search(name):
        return False
    if name:
        return name.isupper() or strength_of(name) != "none" or (not any(map(str.isdigit, name)) and "_" in name)
    tag = match["tag"]
    return not tag or " " in tag or not (any(map(str.isdigit, tag)) and any(map(str.islower, tag)))


def _is_path(value: str) -> bool:
    if not _PATH.match(value):
        return False
    segments = [segment for segment in re.split(r"[/\\]", value) if segment]
    # Base64 text may also start with a slash and contain more slashes, but folder names consist of words.
    if any(_mixes(segment) and len(segment) >= _MIXED_LENGTH for segment in segments):
        return False
    known = bool(segments) and segments[0].lower() in _ROOTS and value.startswith("/")
    last = segments[-1] if segments else ""
    known = known and (_FOLDER.match(last) is not None or strength_of(last) != "none")
    return known or _FILE.search(value) is not None or all(_FOLDER.match(segment) for segment in segments)


def _mixes(value: str) -> bool:
    return any(map(str.isupper, value)) and any(map(str.islower, value)) and any(map(str.isdigit, value))


def _is_call(value: str) -> bool:
    match = _CALL.match(value)
    if not match or _MASKED_CALL.match(value):
        return match is not None
    function, arguments = match["function"], match["arguments"]
    closing = arguments.rfind(")")
    if closing >= 0 and arguments[closing + 1 :].strip(";,)}] .\"'") not in {"", "result"}:
        after = arguments[closing + 1 :]
        # A call may continue as in `getenv("X") or exit()` or `f().result`, but not as in `getRich()x`.
        if not after.startswith((".", " ", "[")):
            return False
    named = _MIXED_NAME.search(function) or _FETCH.match(function)
    if _NUMBER.match(arguments):
        return bool(named) and len(arguments) < _MIXED_LENGTH - 2
    return bool(named or _ARGUMENT.match(arguments)) and not (
        any(map(str.isdigit, arguments)) and '"' not in arguments and "'" not in arguments and not named
    )


def _is_attribute(value: str) -> bool:
    return any(pattern.match(value) for pattern in (_ATTRIBUTE, _RESOURCE, _YAML_TAG))


def is_reference(value: str, *, amounts: bool = False) -> bool:
    """Return whether `value` is empty, already masked, or the location of a secret.

    If `amounts` is true, a number, size or duration is also a reference: `tokens=500` and `token: 15m` are not secrets.
    """
    text = value.strip()
    if text.lower() in _NOTHING or text.startswith(_PLACEHOLDER_START):
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
    """Return whether `value` is empty, a template, a reference to a variable, or a placeholder."""
    text = value.strip()
    return not text or _is_variable_reference(text[:400]) or _MASKED.match(text) is not None


def is_prose(value: str) -> bool:
    """Return whether several words are a sentence and not a passphrase."""
    words = value.lower().split()
    return len(words) > 1 and any(word.strip(".,;:!?\"'()") in _STOP_WORDS for word in words)


def is_word(value: str) -> bool:
    """Return whether `value` is a word from a sentence or help text, and not the value of an option."""
    word = value.lower().strip(".,;:!?\"'()")
    return (
        word in _STOP_WORDS or word in _NOTHING or word in {"file", "flag", "path", "value", "option", "token", "name"}
    )


def is_object_name(value: str) -> bool:
    """Return whether `value` can be the name of a Kubernetes object, but not a UUID: `shop-db`, `default/my-tls`."""
    return _OBJECT_NAME.match(value) is not None and not _UUID.match(value)


def looks_random(value: str, *, password: bool = False) -> bool:
    """Return whether the mix of letters looks random.

    If `password` is true, six characters with a digit or a symbol are enough. Otherwise, at least twelve characters are
    needed.
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
