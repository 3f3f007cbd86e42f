"""Secrets that only their place gives away: URLs, headers, cookies, command lines, files of clients."""

from __future__ import annotations

import re
from typing import Final

from holmes.redaction.kinds import LONG_ARGUMENT, PASSWORD, SECRET, TOKEN, Kind
from holmes.redaction.values import is_reference, looks_random


def _is_value(value: str) -> bool:
    return not is_reference(value)


def _is_random(value: str) -> bool:
    return not is_reference(value) and looks_random(value)


_NAME_END = r"\\{0,7}[\"']?\]?[ \t]{0,8}[:=][ \t]{0,8}\[?[ \t]{0,8}\\{0,7}[\"']?"
_SCHEMES = r"(?:token|basic|bearer|apikey|geniekey|splunk|ssws|dpop|negotiate|ntlm|pveapitoken)"

_AT: Final = re.compile("@")

KINDS: Final = (
    Kind(
        name="url-password",
        label=PASSWORD,
        literals=("://",),
        gate=_AT,
        pattern=re.compile(
            r"://(?:[^\s:/?#@\"'<>\\]{0,128}+|[^\s:/?#@\"'<>\\]{1,64}+@[^\s:/?#@\"'<>\\]{1,64}+):"
            r"(?P<secret>(?!//)(?:(?![0-9]{1,5}(?:[/?#]|@[^\s@]*@))[^\s\"'<>\\]{1,512}|[^\s/?#\"'<>\\]{1,512}))"
            r"@(?!sha(?:256|512):)(?=\[|[$({*]|[A-Za-z0-9.\-_]{1,253}(?:[:/?,\s\"'<>\\);&\]}]|$))"
        ),
        accepts=_is_value,
    ),
    Kind(
        name="driver-url-password",
        label=PASSWORD,
        literals=("@tcp(", "@unix(", "@("),
        gate=_AT,
        pattern=re.compile(
            r"(?:(?<![^\s\"'=])[A-Za-z0-9_.\-]{1,64}+:(?P<secret>[^\s\"'<>\\]{1,128})@(?=tcp\(|unix\(|\([A-Za-z0-9.\-]{1,253}:[0-9]))"
        ),
        accepts=_is_value,
    ),
    Kind(
        name="address-password",
        label=PASSWORD,
        literals=("@",),
        gate=_AT,
        pattern=re.compile(
            r":(?<=[A-Za-z0-9_.\-]:)(?P<secret>[^\s:/@\"'<>\\,;(){}]{4,128})@[A-Za-z0-9.\-]{1,253}:[0-9]{2,5}/[A-Za-z0-9_]"
        ),
        accepts=_is_value,
    ),
    Kind(
        name="oracle-url-password",
        label=PASSWORD,
        literals=("jdbc:oracle:",),
        gate=_AT,
        pattern=re.compile(r"jdbc:oracle:[a-z]{2,8}:[A-Za-z0-9_$#]{1,64}/(?P<secret>[^\s\"'<>@\\]{1,128})@"),
        accepts=_is_value,
    ),
    Kind(
        name="query-key",
        label=TOKEN,
        literals=("=",),
        gate=LONG_ARGUMENT,
        pattern=re.compile(
            r"=(?:(?<=[?&]key=)|(?<=[?&]code=)|(?<=[?&\-][Ss]ignature=))(?P<secret>[A-Za-z0-9%+/_\-.~]{16,}+={0,2})"
        ),
        accepts=_is_random,
    ),
    Kind(
        name="authorization-header",
        label=TOKEN,
        literals=("authorization",),
        folded=True,
        pattern=re.compile(
            rf"authorization{_NAME_END}(?:{_SCHEMES}[ \t]{{1,4}}|(?:aws4-hmac-sha256|digest|hawk)\b)?"
            r"(?P<secret>[^\s\"'\\,\]}]{6,}+)"
        ),
        accepts=_is_random,
    ),
    Kind(
        name="authorization-signature",
        label=TOKEN,
        literals=("authorization",),
        folded=True,
        pattern=re.compile(
            r"authorization(?:(?!authorization)[^\n]){1,400}?(?:signature=|response=\\{0,7}\"|mac=\\{0,7}\")(?P<secret>[A-Za-z0-9+/=]{16,200})"
        ),
    ),
    Kind(
        name="bearer-token",
        label=TOKEN,
        literals=("bearer",),
        folded=True,
        pattern=re.compile(
            r"bearer(?<![a-z0-9_]bearer)(?:[ \t]{1,4}|%20|\+)(?P<secret>[A-Za-z0-9_~+/.\-]{16,}+={0,2})"
        ),
        accepts=_is_random,
    ),
    Kind(
        name="basic-login",
        label=PASSWORD,
        literals=("basic",),
        folded=True,
        pattern=re.compile(r"basic(?<![a-z0-9_]basic)[ \t]{1,4}(?P<secret>[A-Za-z0-9+/]{8,}+={0,2})(?![A-Za-z0-9])"),
        accepts=_is_random,
    ),
    Kind(
        name="cookie",
        literals=("cookie",),
        folded=True,
        pattern=re.compile(rf"cookie{_NAME_END}[A-Za-z0-9_.\-]{{1,80}}=(?P<secret>[^\n\"'\\\]]{{1,4096}}+)"),
        accepts=_is_value,
    ),
    Kind(
        name="snmp-community",
        label=SECRET,
        literals=("community",),
        folded=True,
        pattern=re.compile(
            r"community(?:(?<![A-Za-z0-9_-]community)|(?<=r[ow]community)|(?<=snmp[_-]community)|(?<=snmpcommunity))6?"
            r"\\{0,7}[\"']?[ \t]{0,8}[:= \t][ \t]{0,8}\\{0,7}[\"']?(?P<secret>[A-Za-z0-9!@#$%^&*_+.\-]{6,64})"
        ),
        accepts=_is_random,
    ),
    Kind(
        name="wifi-psk",
        label=PASSWORD,
        literals=("psk=", "wpa_passphrase"),
        folded=True,
        pattern=re.compile(r"\b(?:psk=|wpa_passphrase[= ])\\{0,7}\"?(?P<secret>[^\s\"\\][^\n\"\\]{6,63})"),
        accepts=_is_value,
    ),
)
