"""Secrets that only their place gives away: URLs, headers, cookies, command lines, files of clients."""

from __future__ import annotations

import re
from typing import Final

from holmes.core.redaction.kinds import LONG_ARGUMENT, PASSWORD, SECRET, TOKEN, Kind
from holmes.core.redaction.values import is_reference, looks_random


def _is_value(value: str) -> bool:
    return not is_reference(value)


def _is_random(value: str) -> bool:
    return not is_reference(value) and looks_random(value)


# What stands between the words of a command: blanks, or the commas and quotes of a JSON list.
_GAP = r"(?:[ \t]{1,8}|\\{0,7}[\"'],[ \t]{0,4}\\{0,7}[\"'])"
_NAME_END = r"\\{0,7}[\"']?\]?[ \t]{0,8}[:=][ \t]{0,8}\[?[ \t]{0,8}\\{0,7}[\"']?"
_SCHEMES = r"(?:token|basic|bearer|apikey|geniekey|splunk|ssws|dpop|negotiate|ntlm|pveapitoken)"

_AT: Final = re.compile("@")
# `-u`, `-p`, `-a`, `-w` and `--user` of clients, which take a password.
_LOGIN_OPTION: Final = re.compile(r"-(?<![A-Za-z0-9_.\-]-)(?:[a-zA-Z]{0,5}[upawU]|-(?:proxy-)?user)")

KINDS: Final = (
    Kind(
        name="url-password",
        label=PASSWORD,
        literals=("://",),
        gate=_AT,
        pattern=re.compile(
            r"://[^\s:/?#@\"'<>\\]{0,128}+:(?P<secret>(?!//)[^\s/?#\"'<>\\]{1,512})@(?!sha(?:256|512):)(?=[A-Za-z0-9\[$({*.\-_])"
        ),
        accepts=_is_value,
    ),
    Kind(
        name="driver-url-password",
        label=PASSWORD,
        literals=("@tcp(", "@unix("),
        gate=_AT,
        pattern=re.compile(
            r"(?:(?<![^\s\"'=])[A-Za-z0-9_.\-]{1,64}+:(?P<secret>[^\s\"'<>\\]{1,128})@(?=tcp\(|unix\())"
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
        name="curl-login",
        label=PASSWORD,
        literals=("curl",),
        gate=_LOGIN_OPTION,
        pattern=re.compile(
            rf"curl\b(?:(?!curl)[^\n|]){{0,300}}?(?<![A-Za-z0-9\-])(?:-[a-zA-Z]{{0,5}}u|--(?:proxy-)?user|-U){_GAP}?=?\\{{0,7}}[\"']?"
            r"[^\s:\"'\\]{0,100}:(?P<secret>[^\s\"'\\]{1,200})"
        ),
        accepts=_is_value,
    ),
    Kind(
        name="mysql-password",
        label=PASSWORD,
        literals=("mysql", "mariadb"),
        gate=_LOGIN_OPTION,
        pattern=re.compile(
            r"(?:mysql|mariadb)[a-z\-]{0,12}"
            r"(?:(?!mysql|mariadb)(?:[^\n|;]|\n[ \t]{0,40}- )){0,400}?"
            r"(?<=[ \t\"'])-p"
            r"(?P<secret>[^\s\"'\\=\-/,][^\s\"'\\,]{0,200})"
        ),
        accepts=_is_value,
    ),
    Kind(
        name="client-password",
        label=PASSWORD,
        literals=("sshpass", "redis-cli", "ldap", "docker", "podman", "helm", "rabbitmqadmin"),
        gate=_LOGIN_OPTION,
        pattern=re.compile(
            rf"\b(?:sshpass{_GAP}-p|redis-cli\b(?:(?!redis-cli)[^\n|]){{0,200}}?[ \t\"']-a"
            rf"|ldap[a-z]{{3,8}}\b(?:(?!ldap[a-z]{{3,8}}\b)[^\n|]){{0,300}}?[ \t\"']-w"
            rf"|(?:docker|podman|helm(?:{_GAP}registry)?){_GAP}login\b(?:(?!login)[^\n|]){{0,200}}?[ \t\"']-p"
            rf"|rabbitmqadmin\b(?:(?!rabbitmqadmin)[^\n|]){{0,200}}?[ \t\"']-p){_GAP}?\\{{0,7}}[\"']?"
            r"(?P<secret>[^\s\"'\\,\-][^\s\"'\\]{0,200})"
        ),
        accepts=_is_value,
    ),
    Kind(
        name="netrc-password",
        label=PASSWORD,
        literals=("machine ",),
        pattern=re.compile(
            r"machine[ \t]{1,8}\S{1,200}\s{1,8}login\s{1,8}\S{1,200}\s{1,8}password\s{1,8}(?P<secret>\S{1,200})"
        ),
        accepts=_is_value,
    ),
    Kind(
        name="pgpass-password",
        label=PASSWORD,
        literals=("432:", ":5433:", ":*:"),
        pattern=re.compile(
            r"(?:^|\\n|(?<=[\n\"' ]))[A-Za-z0-9_.*\-]{1,200}+:(?:5432|5433|6432|\*):[^\s:]{1,64}:[^\s:]{1,64}:"
            r"(?P<secret>[^\s\"'\\]{1,200})"
        ),
        accepts=_is_value,
    ),
    Kind(
        name="redis-conf-password",
        label=PASSWORD,
        literals=("requirepass", "masterauth"),
        folded=True,
        pattern=re.compile(
            rf"(?<![A-Za-z0-9_])(?:requirepass|masterauth){_GAP}\\{{0,7}}[\"']?(?P<secret>[^\s\"'\\]{{1,200}})"
        ),
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
