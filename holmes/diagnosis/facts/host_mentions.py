"""Finds host names in text and in the settings of workloads: variables, commands and mounted ConfigMaps."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.diagnosis.facts.evidence import value
from holmes.diagnosis.facts.templates import template_of
from holmes.kubernetes.fields import children, text, text_map, texts
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.templates import PodTemplate
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence
    from holmes.values.json_types import JsonObject


Form: TypeAlias = Literal["qualified", "url", "message", "command", "connection", "address", "variable", "ip"]

_LONGEST_LINE = 2_000
_MOST_LINES = 2_000


def _words(words: str) -> frozenset[str]:
    return frozenset(words.split())


_HOST = r"[a-z][a-z0-9-]*(?:\.[a-z0-9][a-z0-9-]*)*"
# An error often follows a URL (`https://cart.example:8080: timeout`), and no match may end inside the name.
_END_OF_URL = r"(?![\w${@-]|\.[\w${<%]|:\S)"
_OPTIONS = r"(?:-{1,2}[\w-]+(?:=\S+)?\s+(?:\d+\s+)?){0,6}"
_PORT = r"\d{2,5}"
# These options make nc listen or run a program, so the argument of nc is not a host to connect to.
_CONNECTS = r"(?![^|;&]{0,200}?\s-(?:[a-z]*l[a-z]*|[ec])(?![\w-]))"

_QUALIFIED = expression(
    rf"(?<![\w.-])(?P<host>[a-z0-9_][\w.-]*\.svc(?:\.[a-z0-9-]+)*)\.?(?::(?P<port>{_PORT})(?!\d))?(?![\w-])"
)
_URL = expression(
    rf"(?<![\w+.-])(?:jdbc:)?(?P<scheme>[a-z][a-z0-9+.-]{{0,20}})://(?:[^\s/@'\"]{{0,200}}@)?"
    rf"(?P<host>{_HOST})\.?(?::(?P<port>{_PORT}))?{_END_OF_URL}"
)
_DNS_URL = expression(rf"\bdns:///(?P<host>{_HOST})(?::(?P<port>{_PORT}))?{_END_OF_URL}")
_ADDRESS = expression(rf"(?<![\w.:/@$%-])(?P<host>{_HOST}):(?P<port>{_PORT})(?![\w@]|[:.-]\w)")
_IP = expression(r"(?<![\w.:-])(?P<host>\d{1,3}(?:\.\d{1,3}){3}(?!\d))(?::(?P<port>\d{1,5})|(?!:\d))(?![\w-]|\.\d|/\d)")
_IPV6 = expression(r"\[(?P<host>[0-9a-fA-F:]{2,39})\]:(?P<port>\d{1,5})(?![\w:-])")
_SETTING = expression(
    r"(?:^|[\s,;{(\"'-])(?P<key>[A-Za-z_][\w.-]{0,80})[\"']?\s{0,4}[=:]\s{0,4}[\"']?(?P<value>[^\s\"';#&|)}\]]{1,500})"
)
_DATA_SOURCE = expression(
    rf"(?i)(?:^|[;=\s\"'])(?:host|server|data source|addr|address|network address)\s?=\s?(?:tcp:)?"
    rf"(?P<host>{_HOST})(?:[,:](?P<port>{_PORT}))?(?:;\s?port=(?P<later>{_PORT}))?(?=;)"
)
_SETTING_HOST = expression(rf"(?P<host>{_HOST})\.?(?::(?P<port>{_PORT}))?(?:/\S*)?")
_PROSE: Final = expression(r"\s[a-z]")

_MOST_DIGITS: Final = 9
_MESSAGES: Final = tuple(
    expression(pattern.replace("HOST", rf"[\"'`]?(?P<host>{_HOST})\.?(?::(?P<port>{_PORT}))?[\"'`]?(?![\w-])"))
    for pattern in (
        r"\blookup HOST(?= on |:| )",
        r"\b(?:ENOTFOUND|EAI_AGAIN|EAI_NONAME)\s+HOST",
        r"(?i:resolve (?:host(?: ?name)?|address)|lookup failed for)[: ]\s*HOST",
        r"(?i:resolve|resolving|resolution of)[: ]\s*(?=[\"'`])HOST",
        # Programs also resolve placeholders, tickets and dependencies, so an unquoted word must end the phrase.
        r"(?i:resolve|resolving|resolution of)[: ]\s*HOST(?=\s*$|[:;,.)(]|\s\(|\s(?:on|to|via|failed|in)\b)",
        r"(?i:host name|unknown host|unknownhostexception|host not found|unknown (?:mysql )?server host)[: ]\s*HOST",
        r"(?i:bad address|can't find|cannot find host|in upstream|no address associated with)[: ]\s*HOST",
        r"\bhost=[\"']HOST,\s*port=(?P<later>\d{2,5})",
    )
)
_CONNECTION = expression(
    rf"(?i:connect(?:ion)? to(?: server at)?|connecting to|server on) [\"'`]?(?P<host>{_HOST})\.?"
    rf"(?::(?P<port>{_PORT}))?"
    r"[\"'`]?(?![\w-])(?:\s+\([^)]{1,60}\))?(?:,?\s+port\s+(?P<later>\d{2,5}))?"
)
_COMMANDS: Final = tuple(
    expression(pattern.replace("HOST", rf"[\"']?(?P<host>{_HOST})\.?[\"']?(?![\w.:=$-])"))
    for pattern in (
        rf"\b(?:nslookup|dig|ping|getent\s+(?:a?hosts(?:v4|v6)?))\s+{_OPTIONS}HOST",
        rf"\b(?:nc|ncat|netcat|telnet){_CONNECTS}\s+{_OPTIONS}HOST\s+(?P<later>\d{{2,5}})(?!\d)",
        rf"\b(?:curl|wget)\s+{_OPTIONS}HOST(?=/)",
        r"\b(?:pg_isready|psql|redis-cli|mysql\w*|mariadb|mongosh)\b[^|;&]{0,80}?\s-h\s*HOST(?:\s+-[pP]\s*(?P<later>\d{2,5}))?",
    )
)

_HOST_KEYS: Final = _words(
    "host hosts hostname addr addrs address addresses endpoint endpoints server servers url urls uri broker brokers "
    "upstream backend"
)
# The value of such a variable is a host only if it is not an ordinary word and a Service has this name: `DB=orders-db`.
_SERVER_KEYS: Final = _words(
    "db database postgres postgresql pg mysql mariadb mongo mongodb redis valkey cache memcached amqp mq rabbitmq "
    "kafka nats elasticsearch opensearch clickhouse cassandra etcd smtp ldap proxy gateway api store storage"
)
_NO_HOSTS: Final = _words(
    "localhost host hostname server port tcp tcp4 tcp6 udp udp4 udp6 http https grpc node line pid code status error "
    "err exit level uid gid user time id index offset size length count main thread worker at the a an to for on in of "
    "and or not no yes true false none null nil default auto stdout stderr stdin disabled enabled off any all local "
    "unknown undefined empty production staging development test dns remote database service address name it this "
    "that failed timeout timed with via from by is was your my our peer socket upstream backend broker client"
)
# Ordinary words that are also common Service names. They are treated as hosts only where a host is required.
_HOSTS_IN_PLACE: Final = _words("database server service backend upstream broker client worker main remote test dns")
_NO_HOST_SCHEMES: Final = _words(
    "s3 s3a s3n gs gcs abfs abfss wasb wasbs file unix npipe docker docker-pullable docker-image containerd cri-o oci "
    "k8s secret vault sm data azure azblob swift classpath jar arn spiffe gcpkms awskms git+ssh chrome"
)
_ABOUT_IMAGES: Final = ("image", "tag", "version", "digest")
_CONNECTION_WORDS: Final = expression(
    r"(?i)^\s*server\s|connect|dial|refused|timed? ?out|resolve|lookup|unreachable|no such host|enotfound|eai_again"
    r"|econn|wait(?:ing|s)?[ -]for\b|broker|upstream|no route|bootstrap|socket|reset by peer|rpc error"
)
_MESSAGE_WORDS: Final = expression(
    r"(?i)lookup|enotfound|eai_|resol|host|bad address|can't find|upstream|no address|connect|server on"
)
_COMMAND_WORDS: Final = expression(
    r"\b(?:nslookup|dig|ping|getent|nc|ncat|netcat|telnet|curl|wget|pg_isready|psql|redis-cli|mysql|mysqladmin|mariadb"
    r"|mongosh)\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A host name or IP address in a text.

    The form `message` means that an error about name resolution contains the name. `doubtful` means that the word
    might not be a host. Examples are `connecting to word`, and `word:number` in a text that does not mention a
    connection.
    """

    host: str
    port: int | None
    form: Form
    doubtful: bool = False


@lru_cache(maxsize=8_192)
def mentions(text: str) -> tuple[Mention, ...]:
    """Return all hosts in a text. Each host and port is returned once, in the most certain form."""
    found: dict[tuple[str, int | None], Mention] = {}
    for line in text.splitlines()[:_MOST_LINES]:
        for mention in _of_line(line[:_LONGEST_LINE]):
            earlier = found.get((mention.host, mention.port))
            if earlier is None or (earlier.doubtful and not mention.doubtful):
                found[mention.host, mention.port] = mention
    with_port = {host for host, port in found if port is not None}
    return tuple(each for (host, port), each in found.items() if port is not None or host not in with_port)


def _of_line(line: str) -> Iterator[Mention]:
    if ".svc" in line:
        yield from _matches(_QUALIFIED, line, "qualified")
    if "://" in line:
        yield from _urls(line)
    if _MESSAGE_WORDS.search(line):
        yield from _messages(line)
    if _COMMAND_WORDS.search(line):
        for pattern in _COMMANDS:
            yield from _matches(pattern, line, "command")
    if ":" in line:
        yield from _addresses(line)
        yield from _matches(_IPV6, line, "ip")
    if line.count(".") > 2:
        yield from _matches(_IP, line, "ip")
    if "=" in line or ":" in line:
        yield from _settings(line)
    if ";" in line:
        yield from _matches(_DATA_SOURCE, line, "variable")


def _urls(line: str) -> Iterator[Mention]:
    for match in _URL.finditer(line):
        if match["scheme"] not in _NO_HOST_SCHEMES:
            yield from _mention(match["host"], match["port"], "url")
    yield from _matches(_DNS_URL, line, "url")


def _messages(line: str) -> Iterator[Mention]:
    for pattern in _MESSAGES:
        yield from _matches(pattern, line, "message")
    for mention in _matches(_CONNECTION, line, "connection"):
        yield replace(mention, doubtful=mention.port is None)


def _matches(pattern: re.Pattern[str], line: str, form: Form) -> Iterator[Mention]:
    for match in pattern.finditer(line):
        if line.startswith("->", match.end()):
            continue
        groups = match.groupdict()
        yield from _mention(groups["host"], groups.get("port") or groups.get("later"), form)


def _addresses(line: str) -> Iterator[Mention]:
    doubtful = not _CONNECTION_WORDS.search(line)
    for match in _ADDRESS.finditer(line):
        for mention in _mention(match["host"], match["port"], "address"):
            if not line.startswith("->", match.end()):
                yield replace(mention, doubtful=doubtful)


def _settings(line: str) -> Iterator[Mention]:
    for match in _SETTING.finditer(line):
        words = re.split(r"[_.-]|(?<=[a-z])(?=[A-Z])", match["key"])
        if any(word.lower() in _ABOUT_IMAGES for word in words) or "://" in match["value"]:
            continue
        # A colon also ends a clause: "blocked by broker: low on memory".
        clause = line[match.end("key") : match.start("value")] == ": " and _PROSE.match(line, match.end()) is not None
        names_host = words[-1].lower() in _HOST_KEYS or words[-1].lower().endswith(("host", "addr", "url"))
        for part in match["value"].split(","):
            host = _SETTING_HOST.fullmatch(part)
            if host is not None and (names_host or (host["port"] and match["key"].isupper())):
                doubtful = clause and host["port"] is None and host["host"].isalpha()
                yield from (
                    replace(each, doubtful=doubtful) for each in _mention(host["host"], host["port"], "variable")
                )
            elif host is not None and words[-1].lower() in _SERVER_KEYS and "-" in host["host"]:
                yield from (replace(each, doubtful=True) for each in _mention(host["host"], None, "variable"))


def _mention(host: str, port: str | None, form: Form) -> Iterator[Mention]:
    number = int(port) if port and len(port) <= _MOST_DIGITS else None
    if (host.rstrip(".") in _NO_HOSTS and not _is_in_place(host, port, form)) or any(
        len(label) > 63 or label.endswith("-") for label in host.split(".")
    ):
        return
    # A small number after a colon is usually a line number or image tag, because few services use ports below 79.
    if number is not None and (number > 65_535 or (number < 79 and number not in {21, 22, 23, 25, 53, 70})):
        if form in {"address", "variable"}:
            return
        number = None
    yield Mention(host=host.rstrip("."), port=number, form=form)


def _is_in_place(host: str, port: str | None, form: Form) -> bool:
    """Return whether an ordinary word is in a position that requires a host, as in `http://database/`."""
    return host in _HOSTS_IN_PLACE and (form == "url" or (port is not None and form in {"connection", "command"}))


_LONGEST_CHARACTERS = 65_536
_COMMENT: Final = expression(r"(?m)^[ \t]*(?:#|//|;).*$")
_REFERENCE: Final = expression(r"\$\((?P<plain>\w+)\)|\$\{(?P<braces>\w+)\}|\$(?P<bare>[A-Za-z_]\w*)")
_HOST_NAMES: Final = expression(r"(?i)^(?P<prefix>.*?)(?:HOST|HOSTNAME|ADDR|ADDRESS|SERVER|SERVICE|ENDPOINT)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A text to search for hosts (`CART_HOST=cart:8080`), and the field that contains it.

    `whole` means that the text is a complete command line and is also searched word by word. `sources` contains
    the variables that were expanded in the text.
    """

    text: str
    evidence: Evidence
    whole: bool = False
    sources: tuple[Evidence, ...] = ()

    def place_of(self, host: str, port: int | None) -> Evidence:
        """Return the field that contains the host. It is the field of the text or of an expanded variable."""
        written = host if port is None else f"{host}:{port}"
        for place in (self.evidence, *self.sources):
            if written in place.value:
                return place
        if host in self.evidence.value or (port is not None and str(port) in self.evidence.value):
            return self.evidence
        return next((source for source in self.sources if host in source.value), self.evidence)


def settings_of(state: ClusterState, workload: ClusterObject) -> Iterator[Setting]:
    """Yield the settings of all containers in the pod template of the workload."""
    template = template_of(workload)
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(children(template.spec, kind)):
            path = f"{template.path}.{kind}[{index}]"
            variables = dict(_variables(state, template, container, path))
            yield from _from_variables(variables)
            yield from _from_commands(template, container, path, variables)
    yield from _from_volumes(state, template)


def _variables(
    state: ClusterState, template: PodTemplate, container: JsonObject, path: str
) -> Iterator[tuple[str, tuple[str, Evidence]]]:
    """Yield the name, value and evidence of every variable with a known value.

    Later variables override earlier variables.
    """
    namespace = template.workload.namespace
    for source in children(container, "envFrom"):
        found = state.get("ConfigMap", namespace, text(source, "configMapRef", "name"))
        if found is not None:
            prefix = text(source, "prefix")
            for key, content in text_map(found.body, "data").items():
                yield prefix + key, (content, value(found, f"data.{key}", content))
    for index, variable in enumerate(children(container, "env")):
        name, content = text(variable, "name"), text(variable, "value")
        if content:
            yield name, (content, value(template.workload, f"{path}.env[{index}].value", content))
            continue
        key = text(variable, "valueFrom", "configMapKeyRef", "key")
        found = state.get("ConfigMap", namespace, text(variable, "valueFrom", "configMapKeyRef", "name"))
        content = text(found.body, "data", key) if found is not None else ""
        if found is not None and content:
            yield name, (content, value(found, f"data.{key}", content))


def _from_variables(variables: dict[str, tuple[str, Evidence]]) -> Iterator[Setting]:
    for name, (content, evidence) in variables.items():
        expanded, sources = _expanded(content, variables, only_plain=True)
        match = _HOST_NAMES.match(name)
        port = variables.get(f"{match['prefix']}PORT") if match else None
        if port is not None and port[0].strip().isdecimal() and not re.search(r"[:/,]", expanded):
            expanded = f"{expanded.strip()}:{port[0].strip()}"
        written = f"{name}={expanded}" if "\n" not in expanded else expanded
        yield Setting(text=written, evidence=evidence, sources=sources)


def _from_commands(
    template: PodTemplate, container: JsonObject, path: str, variables: dict[str, tuple[str, Evidence]]
) -> Iterator[Setting]:
    for field in ("command", "args"):
        words = texts(container, field)
        for index, word in enumerate(words):
            written, sources = _expanded(word, variables, only_plain=False)
            before = words[index - 1] if index else ""
            if before.startswith("--") and "=" not in before and " " not in word:
                written = f"{before}={written}"
            place = value(template.workload, f"{path}.{field}[{index}]", word)
            yield Setting(text=written, evidence=place, sources=sources)
        if any(" " not in word for word in words) and len(words) > 1 and not any("\n" in word for word in words):
            whole, sources = _expanded(" ".join(words), variables, only_plain=False)
            evidence = value(template.workload, f"{path}.{field}", " ".join(words))
            yield Setting(text=whole, evidence=evidence, whole=True, sources=sources)


def _from_volumes(state: ClusterState, template: PodTemplate) -> Iterator[Setting]:
    mounted = {
        text(mount, "name")
        for kind in ("initContainers", "containers")
        for container in children(template.spec, kind)
        for mount in children(container, "volumeMounts")
    }
    for volume in children(template.spec, "volumes"):
        if text(volume, "name") not in mounted:
            continue
        projected = (text(each, "configMap", "name") for each in children(volume, "projected", "sources"))
        for name in (text(volume, "configMap", "name"), *projected):
            found = state.get("ConfigMap", template.workload.namespace, name) if name else None
            if found is None or name == "kube-root-ca.crt":
                continue
            for key, content in text_map(found.body, "data").items():
                written = _COMMENT.sub("", content[:_LONGEST_CHARACTERS]).strip()
                lines = written if "\n" in written else f"{key}={written}"
                yield Setting(text=lines, evidence=value(found, f"data.{key}", content))


def _expanded(
    content: str, variables: dict[str, tuple[str, Evidence]], *, only_plain: bool
) -> tuple[str, tuple[Evidence, ...]]:
    """Expand `$(NAME)` in the content. Also expand `$NAME` and `${NAME}` unless `only_plain` is true."""
    sources: list[Evidence] = []

    def replaced(match: re.Match[str]) -> str:
        name = match["plain"] or (not only_plain and (match["braces"] or match["bare"])) or ""
        known = variables.get(name)
        if known is None or "$" in known[0]:
            return match[0]
        sources.append(known[1])
        return known[0]

    return (_REFERENCE.sub(replaced, content) if "$" in content else content), tuple(sources)
