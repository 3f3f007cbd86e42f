"""Secrets in the words of other commands, and in the files that they write."""

from __future__ import annotations

import re
from typing import Final

from holmes.redaction.kinds import OPTION, PASSWORD, SECRET, Kind
from holmes.redaction.values import is_reference, is_word, looks_random

_WORD = r"(?P<secret>[^\s\"'\\,\]][^\s\"'\\]{0,200})"
_COOKIE_LETTERS: Final = 16
_Q = r"\\{0,7}[\"']?"


def _is_value(value: str) -> bool:
    return not is_reference(value) and not is_word(value)


def _is_cookie(value: str) -> bool:
    return _is_value(value) and (
        looks_random(value, password=True) or (value.isupper() and len(value) >= _COOKIE_LETTERS)
    )


KINDS: Final = (
    Kind(
        name="secret-literal",
        label=SECRET,
        literals=("from-literal",),
        gate=OPTION,
        pattern=re.compile(
            rf"--from-literal[= \t]{{1,4}}{_Q}[A-Za-z0-9_.\-]{{1,253}}=(?P<secret>[^\s\"'\\]{{1,4000}})"
        ),
        accepts=_is_value,
    ),
    Kind(
        name="vault-value",
        label=SECRET,
        literals=("kv p",),
        gate=re.compile("/"),
        pattern=re.compile(
            r"(?:kv put|kv patch)[ \t]{1,8}(?:-[^\s]{1,60}[ \t]{1,8}){0,4}\S{1,200}(?:[ \t]{1,8}"
            r"[A-Za-z0-9_.\-]{1,80}=\S{0,200}){0,20}?"
            rf"[ \t]{{1,8}}[A-Za-z0-9_.\-]{{1,80}}={_Q}(?P<secret>[^\s\"'\\@][^\s\"'\\]{{0,400}})"
        ),
        accepts=_is_value,
    ),
    Kind(
        name="changed-password",
        label=PASSWORD,
        literals=("chpasswd",),
        folded=True,
        pattern=re.compile(
            rf"{_Q}(?<![^\s\"'])[A-Za-z0-9_.\-]{{1,32}}:(?P<secret>[^\s\"':|\\]{{1,200}}){_Q}[ \t]{{0,4}}\|"
            rf"[ \t]{{0,4}}(?:sudo[ \t]{{1,4}})?chpasswd"
        ),
        accepts=_is_value,
    ),
    Kind(
        name="htpasswd-password",
        label=PASSWORD,
        literals=("htpasswd",),
        folded=True,
        pattern=re.compile(
            rf"htpasswd(?:[ \t]{{1,8}}-[a-zA-Z0-9]{{1,8}}){{0,5}}(?<=b)(?:[ \t]{{1,8}}-"
            rf"[a-zA-Z0-9]{{1,8}}){{0,5}}(?:[ \t]{{1,8}}[^\s\-]\S{{0,100}}){{1,2}}?[ \t]{{1,8}}{_Q}{_WORD}{_Q}"
            rf"(?=[ \t]*(?:$|[\n|>;&)\"'\\]))"
        ),
        accepts=_is_value,
    ),
    Kind(
        name="openssl-password",
        label=PASSWORD,
        literals=("pass:",),
        folded=True,
        pattern=re.compile(
            rf"-(?:pass|passin|passout|passwd|k)(?:[ \t]{{1,8}}|={_Q}|{_Q},[ \t]{{0,4}}){_Q}pass:{_WORD}"
        ),
        accepts=_is_value,
    ),
    Kind(
        name="json-web-key",
        label="private-key",
        literals=("RSA", "OKP", '"EC"'),
        pattern=re.compile(r"\"(?:d|p|q|dp|dq|qi|k)\\{0,7}\"\s{0,4}:\s{0,4}\\{0,7}\"(?P<secret>[A-Za-z0-9_\-]{20,}+)"),
    ),
    Kind(
        name="erlang-cookie",
        label=SECRET,
        literals=("cookie",),
        folded=True,
        pattern=re.compile(
            r"(?:-setcookie|--(?:erlang-)?cookie)(?:[ \t=]{1,8}|\\{0,7}[\"']?(?:,|\n[ \t]{0,60}-)"
            r"[ \t\n]{0,40})\\{0,7}[\"']?(?P<secret>[a-z0-9_!@#$%^&*+.~][^\s\"'\\,)\]]{3,255})"
        ),
        accepts=_is_value,
    ),
    Kind(
        name="erlang-cookie-call",
        label=SECRET,
        literals=("set_cookie", "{cookie"),
        folded=True,
        pattern=re.compile(
            r"(?:set_cookie\((?:[a-z]{1,20}\(\)[ \t]{0,4},|[^(),\n]{1,80},)[ \t]{0,4}:?\\{0,7}[\"']?"
            r"|set_cookie\(:?\\{0,7}[\"']"
            r"|\{cookie,[ \t]{0,4}\\{0,7}[\"']?)"
            r"(?P<secret>[^\s\"'\\(){},:]{4,255})"
        ),
        accepts=_is_value,
    ),
    Kind(
        name="erlang-cookie-words",
        label=SECRET,
        literals=("cookie",),
        folded=True,
        pattern=re.compile(
            r"cookie(?:(?<=erlang.cookie)|(?<=setcookie))(?:[ \t]{0,4}(?:[:=]|is))?[ \t]{1,4}"
            r"\\{0,7}[\"']?(?P<secret>[^\s\"'\\]{6,255})"
        ),
        accepts=_is_cookie,
    ),
    Kind(
        name="erlang-cookie-written",
        label=SECRET,
        literals=("erlang.cookie",),
        folded=True,
        pattern=re.compile(
            r"(?:echo|printf)(?: -n)?[ \t]{1,4}[\"']?(?P<secret>[^\s\"'\\]{6,255})[\"']?[ \t]{0,4}>"
            r"[^\n]{0,200}erlang\.cookie"
        ),
        accepts=_is_value,
    ),
    Kind(
        name="erlang-cookie-file",
        label=SECRET,
        literals=("erlang.cookie",),
        folded=True,
        pattern=re.compile(
            r"erlang\.cookie\\{0,7}[\"']?:?(?:[ \t]{0,8}\r?\n(?:[ \t]{0,8}\n)?|[ \t]{1,8}\\{0,7}[\"']?|\\n"
            r"|\\{0,7}[\"']?:[ \t]{0,4}\\{0,7}[\"']?)[ \t]{0,40}"
            r"(?P<secret>[A-Za-z0-9_\-+/=]{16,255})(?=\\{0,7}[\"']?\s|\\|[\"',}]|$)"
        ),
        accepts=_is_value,
    ),
)
