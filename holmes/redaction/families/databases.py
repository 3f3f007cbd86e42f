"""Kinds of passwords in SQL statements, and in command lines and configuration files of database clients."""

from __future__ import annotations

import re
from typing import Final

from holmes.redaction.kinds import OPTION, PASSWORD, Kind
from holmes.redaction.values import is_prose, is_reference, is_word, looks_random
from holmes.values.expressions import expression

# Separators between the words of a command: spaces, or the commas, quotes and dashes of a list.
_GAP = r"(?:[ \t]{1,8}|[\"'][ \t]{1,4}[\"']|\\{0,7}[\"']?,[ \t\n]{0,40}\\{0,7}[\"']?|[\"']?\n[ \t]{0,60}- {1,4}[\"']?)"
_QUOTE = r"\\{0,7}[\"'`]"
_ARGUMENT = r"(?P<secret>[^\s\"'\\,\]|;<>][^\s\"'\\,\]]{0,200})"
_AT: Final = expression("@")

# Programs, grouped by their password option.
_PROGRAMS: Final = (
    (
        "p",
        (
            "mongo", "mongosh", "mongodump", "mongorestore", "mongoexport", "mongoimport", "mongostat", "mongotop",
            "mongofiles", "cqlsh", "ycqlsh", "cypher-shell", "couchbase-cli", "cbq", "cbbackupmgr", "cbexport",
            "cbimport", "elasticsearch-users", "rabbitmqadmin", "sshpass", "mycli", "litecli", "az login", "crane auth",
            "oras login", "podman login", "docker login", "nerdctl login", "helm registry login", "buildah login",
            "xfreerdp", "rdesktop",
        ),
    ),
    (
        "P",
        (
            "sqlcmd", "bcp", "isql", "osql", "tsql", "fisql", "mosquitto_pub", "mosquitto_sub", "ipmitool", "unzip",
            "zip", "asadm", "aql", "dbisql",
        ),
    ),
    ("a", ("redis-cli", "valkey-cli", "keydb-cli", "redis-benchmark", "dragonfly-cli")),
    (
        "w",
        (
            "ldapsearch", "ldapadd", "ldapmodify", "ldapdelete", "ldapwhoami", "ldappasswd", "ldapcompare", "kadmin",
            "vsql",
        ),
    ),
    ("pw", ("nodetool", "nzsql", "nzload")),
)  # fmt: skip


def _is_value(value: str) -> bool:
    return not is_reference(value) and not is_word(value)


def _is_no_port(value: str) -> bool:
    return _is_value(value) and not (value.isdigit() and len(value) <= 5)


def _is_quoted_password(value: str) -> bool:
    return _is_value(value) and not is_prose(value) and value.strip("?:$%0123456789") != ""


def _is_random_password(value: str) -> bool:
    return _is_value(value) and looks_random(value, password=True)


def _option_kind(option: str, programs: tuple[str, ...]) -> Kind:
    """Return the kind for `PROGRAM ... -p SECRET`, on one line or as a list of words."""
    names = "|".join(re.escape(name).replace(r"\ ", _GAP) for name in sorted(programs, key=len, reverse=True))
    heads = {re.split(r"[ \-_]", name)[0] for name in programs}
    return Kind(
        name=f"program-password-{option}" if option != "P" else "program-password-capital-p",
        label=PASSWORD,
        literals=tuple(sorted(heads)),
        gate=OPTION,
        pattern=expression(
            rf"\b(?:{names})\b(?:(?!\b(?:{names})\b)(?:[^\n|;]|\\\n|\n[ \t]{{0,60}}- )){{0,300}}?"
            rf"(?<=[ \t\"',\[])-{option}(?:{_GAP}|=)?{_QUOTE}?(?<!-{option}-){_ARGUMENT}"
        ),
        accepts=_is_no_port,
    )


KINDS: Final = (
    *(_option_kind(option, programs) for option, programs in _PROGRAMS),
    Kind(
        name="mysql-password",
        label=PASSWORD,
        literals=("mysql", "mariadb"),
        gate=OPTION,
        pattern=expression(
            r"(?:mysql|mariadb)[a-z\-]{0,12}"
            r"(?:(?!mysql|mariadb)(?:[^\n|;]|\n[ \t]{0,40}- )){0,400}?"
            r"(?<=[ \t\"'])-p\\{0,7}[\"']?"
            r"(?P<secret>[^\s\"'\\=\-/,][^\s\"'\\,]{0,200})"
        ),
        accepts=_is_value,
    ),
    Kind(
        name="login-option",
        label=PASSWORD,
        literals=("curl", "etcdctl", "skopeo", "elasticdump", "nats"),
        gate=OPTION,
        pattern=expression(
            r"(?:curl|etcdctl|skopeo|elasticdump|nats)\b(?:(?!curl|etcdctl|skopeo)[^\n|]){0,300}?(?<![A-Za-z0-9\-])"
            rf"(?:-[a-zA-Z]{{0,5}}u|--(?:proxy-)?user|-U|--(?:src-|dest-)?creds){_GAP}?=?\\{{0,7}}[\"']?"
            r"[^\s:\"'\\]{0,100}:(?P<secret>[^\s\"'\\]{1,200})"
        ),
        accepts=_is_value,
    ),
    Kind(
        name="smb-login",
        label=PASSWORD,
        literals=("smbclient", "rpcclient", "smbget", "wmic", "winexe"),
        gate=OPTION,
        pattern=expression(r"-U[ \t=]{0,4}\\{0,7}[\"']?[^\s%\"']{1,80}%(?P<secret>[^\s\"'\\]{1,200})"),
        accepts=_is_value,
    ),
    Kind(
        name="oracle-login",
        label=PASSWORD,
        literals=("sqlplus", "expdp", "impdp", "sqlldr"),
        gate=_AT,
        pattern=expression(
            r"(?:sqlplus|expdp|impdp|sqlldr)\b(?:[ \t]{1,8}-[a-zA-Z]{1,12}){0,4}"
            rf"{_GAP}\\{{0,7}}[\"']?(?:userid=)?[A-Za-z0-9_$#]{{1,64}}/(?P<secret>[^\s\"'\\@/]{{1,128}})"
        ),
        accepts=_is_value,
    ),
    Kind(
        name="oracle-connect",
        label=PASSWORD,
        literals=("connect ",),
        gate=_AT,
        folded=True,
        pattern=expression(
            r"connect(?:(?<=\nconnect)|(?<=^connect)|(?<=sql> connect))[ \t]{1,4}"
            r"[a-z][a-z0-9_$#]{0,30}/(?P<secret>[^\s/@\"'\\]{4,64})@[a-z0-9]"
        ),
        accepts=_is_value,
    ),
    Kind(
        name="db2-login",
        label=PASSWORD,
        literals=("connect to",),
        folded=True,
        pattern=expression(
            rf"connect to[ \t]\S{{1,64}}[ \t]{{1,8}}user[ \t]{{1,8}}\S{{1,64}}[ \t]{{1,8}}using"
            rf"[ \t]{{1,8}}{_QUOTE}?{_ARGUMENT}"
        ),
        accepts=_is_value,
    ),
    Kind(
        name="sql-password",
        label=PASSWORD,
        literals=("password",),
        folded=True,
        pattern=expression(
            r"password(?<![a-z0-9]password)[ \t]{0,4}(?:[ \t=(]|for[^\n=]{1,80}=[ \t]{0,4}(?:password"
            r"[ \t]{0,4}\()?)[ \t(]{0,4}"
            r"(?:n|e|x|u&)?\\{0,7}'(?P<secret>(?:[^'\n\\]|''){1,200})\\{0,7}'"
        ),
        accepts=_is_quoted_password,
    ),
    Kind(
        name="sql-dollar-password",
        label=PASSWORD,
        literals=("password",),
        folded=True,
        pattern=expression(r"password[ \t]{1,4}(?P<quote>\$[a-z_]{0,20}\$)(?P<secret>[^\s$]{1,200})(?P=quote)"),
    ),
    Kind(
        name="login-call",
        label=PASSWORD,
        literals=("sp_addlogin", "sp_password", ".auth("),
        gate=expression("'"),
        folded=True,
        pattern=expression(
            r"(?:sp_addlogin|sp_password|\.auth)[ \t(]{1,4}n?\\{0,7}[\"'][^\"'\n]{1,100}[\"'],[ \t]{0,4}n?\\{0,7}[\"']"
            r"(?P<secret>[^\"'\n\\]{1,200})"
        ),
        accepts=_is_value,
    ),
    Kind(
        name="redis-auth",
        label=PASSWORD,
        literals=("AUTH ",),
        pattern=expression(
            r"AUTH(?<![A-Za-z0-9_\-]AUTH)[ \t]{1,4}(?:[a-z]\w{0,40}[ \t]{1,4})?(?P<secret>[^\s\"'\\]{6,200})"
            r"[ \t]*(?=\r?\n|$)"
        ),
        accepts=_is_random_password,
    ),
    Kind(
        name="sql-identified",
        label=PASSWORD,
        literals=("identified",),
        folded=True,
        pattern=expression(
            r"identified\s{1,8}(?:with\s{1,8}\S{1,64}\s{1,8})?(?:by|as)\s{1,8}(?:password\s{1,8}|values\s{1,8})?"
            r"\\{0,7}(?P<quote>[\"'`])(?P<secret>(?:(?!(?P=quote))[^\n\\]|''){1,200})"
        ),
        accepts=_is_quoted_password,
    ),
    Kind(
        name="sql-identified-bare",
        label=PASSWORD,
        literals=("identified",),
        folded=True,
        pattern=expression(
            r"(?:user|role|to|schema)\s{1,8}\S{1,100}\s{1,8}identified\s{1,8}by\s{1,8}(?:values\s{1,8})?(?P<secret>[^\s\"'`;,\\]{1,200})"
        ),
        accepts=_is_quoted_password,
    ),
    Kind(
        name="sql-replaced-password",
        label=PASSWORD,
        literals=("identified",),
        folded=True,
        pattern=expression(
            r"identified\s{1,8}by\s{1,8}(?:(?!identified)[^\n;]){1,300}?\breplace\s{1,8}\\{0,7}[\"']?(?P<secret>[^\s\"'`;\\]{1,200})"
        ),
        accepts=_is_quoted_password,
    ),
    Kind(
        name="redis-acl-password",
        label=PASSWORD,
        literals=("setuser",),
        gate=expression(">"),
        folded=True,
        pattern=expression(
            r"setuser[ \t]{1,8}\S{1,100}(?:[ \t]{1,8}[^\s>]\S{0,100}){0,20}[ \t]{1,8}[>](?P<secret>[^\s\"'\\]{1,200})"
        ),
        accepts=_is_value,
    ),
    Kind(
        name="redis-conf-password",
        label=PASSWORD,
        literals=("requirepass", "masterauth"),
        folded=True,
        pattern=expression(
            rf"(?<![A-Za-z0-9_])(?:requirepass|masterauth){_GAP}\\{{0,7}}[\"']?(?P<secret>[^\s\"'\\]{{1,200}})"
        ),
        accepts=_is_value,
    ),
    Kind(
        name="pgpass-password",
        label=PASSWORD,
        literals=("432:", ":*:", "pgpass"),
        folded=True,
        pattern=expression(
            r"(?:^|\\n|(?<=[\n\"'` ]))[a-z0-9_.*/\-]{1,200}+:(?:[0-9]{2,5}|\*):[^\s:\"'\\]{1,64}:[^\s:\"'\\]{1,64}:"
            r"(?P<secret>[^\s\"'\\]{3,200})"
        ),
        accepts=_is_value,
    ),
)
