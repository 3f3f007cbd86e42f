"""Kinds of secrets with a known position: in URLs, headers, cookies, command lines and configuration files."""

from __future__ import annotations

from typing import Final

from holmes.redaction.kinds import LONG_ARGUMENT, OPTION, PASSWORD, SECRET, TOKEN, Kind
from holmes.redaction.values import is_reference, is_word, looks_random
from holmes.values.expressions import expression

_WORD = r"(?P<secret>[^\s\"'\\,\]][^\s\"'\\]{0,200})"
_COOKIE_LETTERS: Final = 16
_Q = r"\\{0,7}[\"']?"
_NAME_END = r"\\{0,7}[\"']?\]?[ \t]{0,8}[:=][ \t]{0,8}\[?[ \t]{0,8}\\{0,7}[\"']?"
_SCHEMES = r"(?:token|basic|bearer|apikey|geniekey|splunk|ssws|dpop|negotiate|ntlm|pveapitoken)"
_AT: Final = expression("@")


def _is_no_word(value: str) -> bool:
    return not is_reference(value) and not is_word(value)


def _is_cookie(value: str) -> bool:
    return _is_no_word(value) and (
        looks_random(value, password=True) or (value.isupper() and len(value) >= _COOKIE_LETTERS)
    )


def _is_value(value: str) -> bool:
    return not is_reference(value)


def _is_random(value: str) -> bool:
    return not is_reference(value) and looks_random(value)


KINDS: Final = (
    Kind(
        name="secret-literal",
        label=SECRET,
        literals=("from-literal",),
        gate=OPTION,
        pattern=expression(
            rf"--from-literal[= \t]{{1,4}}{_Q}[A-Za-z0-9_.\-]{{1,253}}=(?P<secret>[^\s\"'\\]{{1,4000}})"
        ),
        accepts=_is_no_word,
    ),
    Kind(
        name="vault-value",
        label=SECRET,
        literals=("kv p",),
        gate=expression("/"),
        pattern=expression(
            r"(?:kv put|kv patch)[ \t]{1,8}(?:-[^\s]{1,60}[ \t]{1,8}){0,4}\S{1,200}(?:[ \t]{1,8}"
            r"[A-Za-z0-9_.\-]{1,80}=\S{0,200}){0,20}?"
            rf"[ \t]{{1,8}}[A-Za-z0-9_.\-]{{1,80}}={_Q}(?P<secret>[^\s\"'\\@][^\s\"'\\]{{0,400}})"
        ),
        accepts=_is_no_word,
    ),
    Kind(
        name="changed-password",
        label=PASSWORD,
        literals=("chpasswd",),
        folded=True,
        pattern=expression(
            rf"{_Q}(?<![^\s\"'])[A-Za-z0-9_.\-]{{1,32}}:(?P<secret>[^\s\"':|\\]{{1,200}}){_Q}[ \t]{{0,4}}\|"
            rf"[ \t]{{0,4}}(?:sudo[ \t]{{1,4}})?chpasswd"
        ),
        accepts=_is_no_word,
    ),
    Kind(
        name="htpasswd-password",
        label=PASSWORD,
        literals=("htpasswd",),
        folded=True,
        pattern=expression(
            rf"htpasswd(?:[ \t]{{1,8}}-[a-zA-Z0-9]{{1,8}}){{0,5}}(?<=b)(?:[ \t]{{1,8}}-"
            rf"[a-zA-Z0-9]{{1,8}}){{0,5}}(?:[ \t]{{1,8}}[^\s\-]\S{{0,100}}){{1,2}}?[ \t]{{1,8}}{_Q}{_WORD}{_Q}"
            rf"(?=[ \t]*(?:$|[\n|>;&)\"'\\]))"
        ),
        accepts=_is_no_word,
    ),
    Kind(
        name="openssl-password",
        label=PASSWORD,
        literals=("pass:",),
        folded=True,
        pattern=expression(
            rf"-(?:pass|passin|passout|passwd|k)(?:[ \t]{{1,8}}|={_Q}|{_Q},[ \t]{{0,4}}){_Q}pass:{_WORD}"
        ),
        accepts=_is_no_word,
    ),
    Kind(
        name="json-web-key",
        label="private-key",
        literals=("RSA", "OKP", '"EC"'),
        pattern=expression(r"\"(?:d|p|q|dp|dq|qi|k)\\{0,7}\"\s{0,4}:\s{0,4}\\{0,7}\"(?P<secret>[A-Za-z0-9_\-]{20,}+)"),
    ),
    Kind(
        name="erlang-cookie",
        label=SECRET,
        literals=("cookie",),
        folded=True,
        pattern=expression(
            r"(?:-setcookie|--(?:erlang-)?cookie)(?:[ \t=]{1,8}|\\{0,7}[\"']?(?:,|\n[ \t]{0,60}-)"
            r"[ \t\n]{0,40})\\{0,7}[\"']?(?P<secret>[a-z0-9_!@#$%^&*+.~][^\s\"'\\,)\]]{3,255})"
        ),
        accepts=_is_no_word,
    ),
    Kind(
        name="erlang-cookie-call",
        label=SECRET,
        literals=("set_cookie", "{cookie"),
        folded=True,
        pattern=expression(
            r"(?:set_cookie\((?:[a-z]{1,20}\(\)[ \t]{0,4},|[^(),\n]{1,80},)[ \t]{0,4}:?\\{0,7}[\"']?"
            r"|set_cookie\(:?\\{0,7}[\"']"
            r"|\{cookie,[ \t]{0,4}\\{0,7}[\"']?)"
            r"(?P<secret>[^\s\"'\\(){},:]{4,255})"
        ),
        accepts=_is_no_word,
    ),
    Kind(
        name="erlang-cookie-words",
        label=SECRET,
        literals=("cookie",),
        folded=True,
        pattern=expression(
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
        pattern=expression(
            r"(?:echo|printf)(?: -n)?[ \t]{1,4}[\"']?(?P<secret>[^\s\"'\\]{6,255})[\"']?[ \t]{0,4}>"
            r"[^\n]{0,200}erlang\.cookie"
        ),
        accepts=_is_no_word,
    ),
    Kind(
        name="erlang-cookie-file",
        label=SECRET,
        literals=("erlang.cookie",),
        folded=True,
        pattern=expression(
            r"erlang\.cookie\\{0,7}[\"']?:?(?:[ \t]{0,8}\r?\n(?:[ \t]{0,8}\n)?|[ \t]{1,8}\\{0,7}[\"']?|\\n"
            r"|\\{0,7}[\"']?:[ \t]{0,4}\\{0,7}[\"']?)[ \t]{0,40}"
            r"(?P<secret>[A-Za-z0-9_\-+/=]{16,255})(?=\\{0,7}[\"']?\s|\\|[\"',}]|$)"
        ),
        accepts=_is_no_word,
    ),
    Kind(
        name="url-password",
        label=PASSWORD,
        literals=("://",),
        gate=_AT,
        pattern=expression(
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
        pattern=expression(
            r"(?:(?<![^\s\"'=])[A-Za-z0-9_.\-]{1,64}+:(?P<secret>[^\s\"'<>\\]{1,128})@(?=tcp\(|unix\(|\([A-Za-z0-9.\-]{1,253}:[0-9]))"
        ),
        accepts=_is_value,
    ),
    Kind(
        name="address-password",
        label=PASSWORD,
        literals=("@",),
        gate=_AT,
        pattern=expression(
            r":(?<=[A-Za-z0-9_.\-]:)(?P<secret>[^\s:/@\"'<>\\,;(){}]{4,128})@[A-Za-z0-9.\-]{1,253}:[0-9]{2,5}/[A-Za-z0-9_]"
        ),
        accepts=_is_value,
    ),
    Kind(
        name="oracle-url-password",
        label=PASSWORD,
        literals=("jdbc:oracle:",),
        gate=_AT,
        pattern=expression(r"jdbc:oracle:[a-z]{2,8}:[A-Za-z0-9_$#]{1,64}/(?P<secret>[^\s\"'<>@\\]{1,128})@"),
        accepts=_is_value,
    ),
    Kind(
        name="query-key",
        label=TOKEN,
        literals=("=",),
        gate=LONG_ARGUMENT,
        pattern=expression(
            r"=(?:(?<=[?&]key=)|(?<=[?&]code=)|(?<=[?&\-][Ss]ignature=))(?P<secret>[A-Za-z0-9%+/_\-.~]{16,}+={0,2})"
        ),
        accepts=_is_random,
    ),
    Kind(
        name="authorization-header",
        label=TOKEN,
        literals=("authorization",),
        folded=True,
        pattern=expression(
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
        pattern=expression(
            r"authorization(?:(?!authorization)[^\n]){1,400}?(?:signature=|response=\\{0,7}\"|mac=\\{0,7}\")(?P<secret>[A-Za-z0-9+/=]{16,200})"
        ),
    ),
    Kind(
        name="bearer-token",
        label=TOKEN,
        literals=("bearer",),
        folded=True,
        pattern=expression(
            r"bearer(?<![a-z0-9_]bearer)(?:[ \t]{1,4}|%20|\+)(?P<secret>[A-Za-z0-9_~+/.\-]{16,}+={0,2})"
        ),
        accepts=_is_random,
    ),
    Kind(
        name="basic-login",
        label=PASSWORD,
        literals=("basic",),
        folded=True,
        pattern=expression(r"basic(?<![a-z0-9_]basic)[ \t]{1,4}(?P<secret>[A-Za-z0-9+/]{8,}+={0,2})(?![A-Za-z0-9])"),
        accepts=_is_random,
    ),
    Kind(
        name="cookie",
        literals=("cookie",),
        folded=True,
        pattern=expression(rf"cookie{_NAME_END}[A-Za-z0-9_.\-]{{1,80}}=(?P<secret>[^\n\"'\\\]]{{1,4096}}+)"),
        accepts=_is_value,
    ),
    Kind(
        name="snmp-community",
        label=SECRET,
        literals=("community",),
        folded=True,
        pattern=expression(
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
        pattern=expression(r"\b(?:psk=|wpa_passphrase[= ])\\{0,7}\"?(?P<secret>[^\s\"\\][^\n\"\\]{6,63})"),
        accepts=_is_value,
    ),
)
