"""Sets the cluster, namespace and variables of a command.

By default, a command uses the chosen context and namespace, unless it specifies others. If SCOPED_NAMESPACES is set, a
command that refers to any other namespace is rejected. Commands are split into words as bash splits them, even in
scripts within quotes. Programs that access the cluster in other ways are not recognised.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.scope import default_namespace, objection, scope_of
from holmes.kubernetes.scope import refuse_outside as refuse_path
from holmes.values.errors import ToolError
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holmes.values.environment import Environment
    from holmes.values.json_types import JsonObject
    from holmes.values.tools import Tool

# A kuberc file changes the defaults of kubectl's options, for example to `-o yaml`, which shows the values of Secrets.
# The first variable is a feature gate, which disappears when the feature is stable. The second variable is permanent.
_WITHOUT_PREFERENCES = {"KUBECTL_KUBERC": "false", "KUBERC": "off"}
_USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_REQUEST_TIMEOUT: Final = "30s"
# Wrappers of kubectl and oc that add the default options. They are in PATH, so xargs, timeout and scripts use them too.
_WRAPPERS: Final = Path(__file__).parent / "programs"
_PROGRAM: Final = expression(r"(?:.*/)?(?:kubectl(?:-[\w-]+)?|oc|helm|stern|istioctl|flux|linkerd|velero)")
_SEPARATORS: Final = ";|&()<>`\n"
# The lexer removes quotes, but a symbol or an empty string in quotes is a word, not a separator or comment.
_MARK: Final = "\x01"
_QUOTED_SIGN: Final = expression(r"""(['"])(?=[#;|&()<>`\n'"])""")
_SHORT_WITH_VALUE: Final = frozenset("ofclLskv")
_LONG_WITH_VALUE: Final = frozenset(
    {"output", "selector", "field-selector", "sort-by", "template", "context", "kubeconfig", "cluster", "user"}
)
_NAMESPACES: Final = frozenset({"ns", "namespace", "namespaces"})
_NODES: Final = frozenset({"no", "node", "nodes"})


def process_environment(environment: Environment) -> Environment:
    """Return `environment` with the interpreter's folder at the end of `PATH`, and without the user's kuberc file.

    The extras of the Holmes package install programs such as kubectl in that folder, which is not on `PATH` if Holmes
    is called by its full path.
    """
    path = environment.get("PATH") or _USUAL_PATH
    folder = str(Path(sys.executable).parent)
    if folder not in path.split(os.pathsep):
        path = f"{path}{os.pathsep}{folder}"
    return environment.with_variables({"PATH": path, **_WITHOUT_PREFERENCES})


def with_namespace(tool: Tool, arguments: JsonObject, environment: Environment) -> JsonObject:
    """Add the default namespace of the scope to the arguments, if the tool accepts a namespace but none is given.

    Raises `ToolError` for a namespace outside the scope.
    """
    scope = scope_of(environment)
    if not scope or all(parameter.name != "namespace" for parameter in tool.parameters):
        return arguments
    given = arguments.get("namespace")
    if isinstance(given, str) and given and (reason := objection(given, scope)):
        raise ToolError(reason)
    return arguments if given else {**arguments, "namespace": default_namespace(environment)}


def command_environment(environment: Environment, variables: Mapping[str, str], *, chosen_cluster: bool) -> Environment:
    """Return the environment of a command, with `variables` and the variables for the default namespace.

    If `chosen_cluster` is true, commands also use the chosen context and namespace, with a time limit for each request.
    Raises `ToolError` if the installation is damaged.
    """
    namespace, context = default_namespace(environment), ""
    if chosen_cluster:
        namespace = namespace or environment.get("HOLMES_KUBE_NAMESPACE") or ""
        context = environment.get("HOLMES_KUBE_CONTEXT") or ""
    defaults = {
        "HELM_NAMESPACE": namespace,
        "HELM_KUBECONTEXT": context,
        "HOLMES_KUBECTL_NAMESPACE": namespace,
        "HOLMES_KUBECTL_CONTEXT": context,
        "HOLMES_KUBECTL_TIMEOUT": _REQUEST_TIMEOUT if chosen_cluster else "",
    }
    wanted = {name: value for name, value in defaults.items() if value}
    own = process_environment(environment).with_variables({**wanted, **variables})
    if not wanted:
        return own
    # A shell skips programs that are not executable, and would then use the current cluster instead of the chosen one.
    if not all(os.access(_WRAPPERS / program, os.X_OK) for program in ("kubectl", "oc")):
        raise ToolError(f"the programs in {_WRAPPERS} are not executable; reinstall Holmes")
    return own.with_variables({"PATH": f"{_WRAPPERS}{os.pathsep}{own.get('PATH')}"})


def refuse_outside(command: str, scope: Sequence[str]) -> None:
    """Raise `ToolError` if a command reads all namespaces or a namespace outside the scope."""
    for words in _commands(command) if scope else ():
        named, rest = _options(words)
        for namespace in named:
            if reason := objection(namespace, scope):
                raise ToolError(reason)
        _refuse_kinds(rest, scope)


def _commands(text: str) -> Iterator[list[str]]:
    """Yield the arguments of each program that reads the cluster."""
    for words in _split(text.replace("\\\n", " ")):
        for word in words:
            if any(space in word for space in " \t\n") and word != text:
                yield from _commands(word)
        start = next((index for index, word in enumerate(words) if _PROGRAM.fullmatch(word)), None)
        if start is not None:
            yield words[start + 1 :]


def _split(text: str) -> Iterator[list[str]]:
    """Split the script into the words of each simple command.

    If a quote is not closed, quotes are treated as ordinary characters.
    """
    text = _QUOTED_SIGN.sub(rf"\1{_MARK}", text)
    lexer = shlex.shlex(text, posix=True, punctuation_chars=_SEPARATORS)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        found = list(lexer)
    except ValueError:
        found = re.findall(rf"[{re.escape(_SEPARATORS)}]|[^\s'\"{re.escape(_SEPARATORS)}]+", text)
    words: list[str] = []
    for word in found:
        if not set(word) - set(_SEPARATORS):
            yield _plain(words)
            words = []
        elif words[-1:] != ["#"]:
            words.append("#" if word.startswith("#") else word.strip("'\""))
    yield _plain(words)


def _plain(words: Sequence[str]) -> list[str]:
    return [word.replace(_MARK, "") for word in words]


def _options(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the namespaces that options specify, and the remaining words, which include the paths of `--raw`."""
    named, rest, left = list[str](), list[str](), list(words)
    while left:
        word = left.pop(0)
        if word == "--":
            return named, rest + (left if rest[:1] != ["exec"] else [])
        name, equals, value = word[2:].partition("=") if word.startswith("--") else ("", "", "")
        if name == "all-namespaces" and value.lower() not in {"false", "f", "0"}:
            named.append("*")
        elif name in {"namespace", "namespaces"}:
            named += (value if equals else _next(left)).split(",")
        elif name == "raw":
            rest.append(value if equals else _next(left))
        elif name in _LONG_WITH_VALUE and not equals:
            _next(left)
        elif not word.startswith("-"):
            rest.append(word)
        elif not name:
            named += _short(word[1:], left, _SHORT_WITH_VALUE - set("f" if rest[:1] == ["logs"] else ""))
    return named, rest


def _short(letters: str, left: list[str], with_value: frozenset[str]) -> Iterator[str]:
    """Yield the namespaces that short options specify.

    Short options may be combined. A value may be the next word in `left`.
    """
    for index, letter in enumerate(letters):
        if letter == "A":
            yield "*"
        elif letter == "n" or letter in with_value:
            value = letters[index + 1 :].removeprefix("=") or _next(left)
            if letter == "n":
                yield value
            return


def _next(left: list[str]) -> str:
    return left.pop(0) if left else ""


def _refuse_kinds(words: Sequence[str], scope: Sequence[str]) -> None:
    """Raise `ToolError` for Namespaces and paths outside the scope, and for node descriptions, which list all pods."""
    for word in words:
        if word.startswith("/"):
            refuse_path(word.partition("?")[0], scope)
    if words[:1] not in (["get"], ["describe"]):
        return
    kinds = {part.partition("/")[0].partition(".")[0].lower() for word in words[1:] for part in word.split(",")}
    if words[0] == "describe" and kinds & _NODES:
        raise ToolError("the description of a node shows pods outside SCOPED_NAMESPACES; get the node as YAML instead")
    first = words[1].lower() if len(words) > 1 else ""
    if kinds & _NAMESPACES:
        names = [word.rpartition("/")[2] for word in words[1:] if "/" in word] or words[2:]
        alone = first.partition("/")[0].partition(".")[0] in _NAMESPACES
        for name in names if names and alone else ["*"]:
            if reason := objection(name, scope):
                raise ToolError(reason)
