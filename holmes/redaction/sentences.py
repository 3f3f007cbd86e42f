"""Finds secrets in sentences of six languages: `the password is: x`, `das Passwort lautet x`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.redaction.kinds import PASSWORD, Span
from holmes.redaction.names import label_of, strength_of
from holmes.redaction.values import is_object_name, is_reference, is_word, looks_random
from holmes.values.expressions import expression

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

    from holmes.redaction.pieces import Window

# Beginnings of words that refer to a secret, in addition to the keywords of names. The whole word is checked as a name.
_KEYWORDS: Final = (
    "pass", "pw", "token", "secret", "key", "kennwort", "contrase", "senha", "clave", "parola", "cl\xe9",
    "schl\xfc", "jeton", "chiave", "chave",
)  # fmt: skip
_VERB: Final = (
    r"(?:is|was|are|equals|=|lautet|ist|war|est|sera|es|\xe8|\xe9|e'|era|foi|ser\xe1|sar\xe0|to|auf"
    r"|en|como|come|in|on"
    r"|(?:impostat|cambiat|modificat)[ao] (?:a|in|su)|(?:cambiad|definid)[ao] (?:a|como|para)|\u2192|->|:)"
)
_AFTER_VERB: Final = (
    r"(?:[ \t]+(?:(?:re)?set to|changed to|updated to|(?:impostat|cambiat|modificat)[ao] (?:a|in|su)"
    r"|(?:cambiad|definid|redefinid)[ao] (?:a|como|para)"
    r"|now|currently|set|jetzt|nun|maintenant|ahora|ora|agora|to|auf))?"
)
_SENTENCE: Final = {
    keyword: expression(
        keyword + r"[a-z\xdf-\xff]{0,12}(?P<words>(?:[ \t'\-][^\s.,;:=\"'()|{}<>\[\]\-]{1,24}+){0,8}?)"
        rf"(?:[ \t\xa0]{{1,3}}(?P<verb>{_VERB}{_AFTER_VERB})|(?=:))[ \t]{{0,2}}(?P<colon>:?)[ \t]{{1,3}}"
        r"\\{0,7}(?P<quote>[\"'`]?)(?P<secret>[^\s\"'`\\<>(\[{][^\s\"'`\\<>]{3,200})"
    )
    for keyword in _KEYWORDS
}
# A secret without a verb: `password x`. The value must mix more kinds of characters than an ordinary word.
_BARE: Final = {
    keyword: expression(
        keyword + r"[a-z\xdf-\xff]{0,12}[ \t]{1,3}\\{0,7}(?P<quote>(?:[\"'`]|\xab[ \xa0]?)?)"
        r"(?P<secret>[^\s\"'`\\<>(){}\[\]=:]{6,200})"
    )
    for keyword in ("pass", "kennwort", "contrase", "senha", "clave", "secret", "token", "key")
}
# In `login with password 'x'`, the quoted word is the password.
_WITH: Final = expression(
    r"\b(?:with|using|mit|avec|con|com)[ \t]{1,2}(?:(?:the|dem|le|la|a|o)[ \t]{1,2})?(?:[a-z\xdf-\xff]{1,12}[ \t])?$"
)
_LAST_WORD: Final = expression(r"[a-z]{2,16}[ _-]$")
_SHORTEST_SECRET: Final = 12
_LOGIN: Final = expression(
    r"(?:cred[a-z]{4,8}|login|log(?:ged)? in|zugangsdaten|anmeldedaten)"
    r"[ \t]{0,2}(?:with|are|is|as|mit|avec|con|com|sind|:)?"
    r"[ \t]{0,2}:?[ \t]{1,3}(?:user[ \t]{1,2})?(?P<user>[a-z0-9_.@\-]{2,64})[ \t]{0,2}(?P<sign>[/:]|and|und|et"
    r"|y|e)[ \t]{0,2}"
    r"(?P<secret>[^\s\"'`\\]{6,200})"
)
_LOGIN_WORDS: Final = ("cred", "login", "log in", "logged in", "daten")
# In `user: bob, password: x`, the last word is not a description such as `expired`.
_LOGIN_FIELD: Final = expression(
    r"(?:user(?:name)?|login|account|e-?mail|benutzer(?:name)?|utilisateur|usuario|utente|usu\xe1rio)"
    r"[ \t]{0,2}[:=][ \t]{0,2}"
    r"[^\s,;:=]{1,64}[,;]?[ \t]{1,4}(?:and |und |et |y |e )?$"
)
_LOGIN_FIELD_CHARACTERS: Final = 100
_BEFORE: Final = expression(r"(?:[A-Za-z\u00c0-\u00ff]{1,16}[ '\-]{1,2}){0,2}$")
_BEFORE_CHARACTERS: Final = 40
# Words that end the name of a secret, such as `for` in `the password for bob is`.
_FUNCTION_WORDS: Final = expression(
    r"[ \t](?:for|of|to|from|set|changed|reset|has|have|now|in|on|at|has|was|von|f\xfcr|der|des|zum|pour|du"
    r"|para|del|da|do|per|di|de)(?=[ \t]|$)"
)
_ARTICLES: Final = frozenset(
    {
        "a",
        "as",
        "das",
        "dein",
        "der",
        "die",
        "el",
        "ihr",
        "il",
        "la",
        "le",
        "lo",
        "my",
        "neues",
        "o",
        "su",
        "sua",
        "the",
        "votre",
        "your",
    }
)
# Characters inside an identifier. An identifier is not a word of a sentence.
_JOINTS: Final = frozenset("/_:$")
_COMPOUND_JOINTS: Final = _JOINTS | set("-.")
_ENDS: Final = ".,;:!?)]}"
_ADJECTIVE: Final = expression(
    r"(?:ed|ing|ible|able|ent|ect|ous|ory|id|ido|ida|ado|ada|ato|ata|ig|lich|ert|en|ch|sch|ant|eur|ta|to)$"
)
_WORD_CHARACTERS: Final = 8
_SHORTEST_NAMED: Final = 6
# Verbs that state equality. After these verbs, a numeric code is also treated as a password.
_EQUALS: Final = frozenset({"is", "was", "equals", "lautet", "ist", "est", "es", "\xe8", "\xe9", "="})
# An email address is the recipient of a message, not a secret.
_ADDRESS: Final = expression(r"[A-Za-z0-9._%+\-]{1,64}@[A-Za-z0-9\-]{1,63}(?:\.[A-Za-z0-9\-]{1,63}){1,4}")
_CODE: Final = expression(r"[0-9]{6,12}")


def told_secrets(window: Window) -> Iterator[Span]:
    """Yield the secrets in sentences of this window."""
    for keyword in _KEYWORDS:
        if window.has(keyword):
            for match in _SENTENCE[keyword].finditer(window.lower):
                yield from _told(window, match)
    for keyword, pattern in _BARE.items():
        near = window.near(keyword)
        if near is None or pattern.search(near):
            for match in pattern.finditer(window.lower):
                yield from _bare(window, match)
    if any(window.has(word) for word in _LOGIN_WORDS):
        for match in _LOGIN.finditer(window.lower):
            value = _value(window, match)
            if looks_random(value, password=True) and not is_reference(value, amounts=True) and "/" not in value:
                yield _span(window, match, value, PASSWORD)


def _told(window: Window, match: re.Match[str]) -> Iterator[Span]:
    name = _name(window, match)
    strength = strength_of(name)
    if strength == "none" or window.piece[match.start() - 1 : match.start()] in _joints(match):
        return
    value = _value(window, match)
    if _ADDRESS.fullmatch(value):
        return
    label = label_of(name)
    password = label == PASSWORD
    if password and match["verb"] in _EQUALS and _CODE.fullmatch(value):
        yield _span(window, match, value, label)
        return
    if is_reference(value, amounts=True) or is_reference(match["secret"]) or is_word(value):
        return
    if password and (_names_it(match, value) or _stands_beside_a_user(window, match)):
        yield _span(window, match, value, label)
        return
    certain = password and (bool(match["colon"]) or match["verb"] == ":" or bool(match["quote"]))
    short = password or (strength == "weak" and (bool(match["colon"]) or match["verb"] in _EQUALS))
    if looks_random(value, password=short) or (certain and _may_be_a_password(window, match, value)):
        yield _span(window, match, value, label)


def _names_it(match: re.Match[str], value: str) -> bool:
    """Return whether the verb and a capital letter mark a value. Words such as `expired` start in lower case."""
    sure = match["verb"] == "lautet" or (match["verb"] in _EQUALS and bool(match["colon"]))
    return sure and not value.islower() and len(value) >= _SHORTEST_NAMED


def _stands_beside_a_user(window: Window, match: re.Match[str]) -> bool:
    if match["verb"] not in {None, ":"} or len(_value(window, match)) < _SHORTEST_NAMED:
        return False
    before = window.lower[max(0, match.start() - _LOGIN_FIELD_CHARACTERS) : match.start()]
    return _LOGIN_FIELD.search(before) is not None


def _joints(match: re.Match[str]) -> frozenset[str]:
    """Return the characters that can join a name to other words, as in German compounds.

    If no verb follows, a word with dashes is likely the key of an annotation.
    """
    return _JOINTS if match["verb"] else _COMPOUND_JOINTS


def _bare(window: Window, match: re.Match[str]) -> Iterator[Span]:
    value = _value(window, match)
    name = window.piece[match.start() : match.start("quote")].strip(" \t\\")
    if is_reference(value):
        return
    mixed = any(map(str.islower, value)) and any(map(str.isupper, value)) and any(map(str.isdigit, value))
    before = window.lower[max(0, match.start() - _BEFORE_CHARACTERS) : match.start()]
    handed = (
        bool(match["quote"]) and _WITH.search(before) is not None and not is_word(value) and not is_object_name(value)
    )
    if (mixed or handed) and label_of(name) == PASSWORD:
        yield _span(window, match, value, PASSWORD)
    elif mixed and match["quote"] and len(value) >= _SHORTEST_SECRET and strength_of(_name_in(before) + name) != "none":
        yield _span(window, match, value, label_of(name))


def _name_in(before: str) -> str:
    """Return the word before `secret` or `key` that is part of the name: `client secret`, `api key`."""
    word = _LAST_WORD.search(before)
    return f"{word[0][:-1]}_" if word else ""


def _name(window: Window, match: re.Match[str]) -> str:
    """Join the words that name the secret: `api_key`, `mot_de_passe`."""
    start = match.start()
    before = _BEFORE.search(window.piece[max(0, start - _BEFORE_CHARACTERS) : start])
    words = match["words"]
    end = _FUNCTION_WORDS.search(words)
    words = words[: end.start()] if end else words
    head = window.piece[start : match.start("words")]
    told = f"{before[0] if before else ''}{head}{words}".split()
    return "_".join(word for word in told if word.lower() not in _ARTICLES)


def _value(window: Window, match: re.Match[str]) -> str:
    start, end = match.span("secret")
    return window.piece[start:end].rstrip(_ENDS)


def _may_be_a_password(window: Window, match: re.Match[str], value: str) -> bool:
    """Return whether a word after a colon at the end of a line can be a password and not only an adjective."""
    after = window.piece[match.end("secret") : match.end("secret") + 3].lstrip("\"'` ")
    ends = not after or after[0] in "\r\n" or (after[0] == "(" and value[0].isupper())
    return ends and len(value) >= _WORD_CHARACTERS and not _ADJECTIVE.search(value.lower())


def _span(window: Window, match: re.Match[str], value: str, label: str) -> Span:
    start = window.start + match.start("secret")
    return Span(start=start, end=start + len(value), label=label, secret=value)
