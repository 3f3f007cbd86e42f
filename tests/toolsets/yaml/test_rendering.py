"""What reaches bash: values arrive exactly or are refused, and nothing in them ever runs."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.toolsets.yaml.definition import ParameterRule, YamlTool
from holmes.toolsets.yaml.rendering import RenderedCommand, render_command
from holmes.values.environment import Environment
from holmes.values.errors import ToolError
from holmes.values.tools import Tool

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.values.json_types import JsonValue

_HOSTILE = (
    "'; touch {canary}; #",
    '"; touch {canary}; #',
    "$(touch {canary})",
    "`touch {canary}`",
    "a\ntouch {canary}\n",
    "a\nEOF\ntouch {canary}\n",
    "x[$(touch {canary})]",
    "${{x:-$(touch {canary})}}",
    "| touch {canary}",
    "&& touch {canary} &",
    "}}; touch {canary}; {{",
    "\\'; touch {canary}; #",
    "%s' $(touch {canary}) '",
    '/ {{ system("touch {canary}") }} /',
    'x" | "touch {canary}" | getline; #',
    "s/x/touch {canary}/e",
    "x/touch {canary}/e; #",
)
_TEMPLATES = (
    "printf '%s' {{ x }}",
    'printf %s "{{ x }}"',
    "printf %s '{{ x }}'",
    'printf %s "a {{ x }} b"',
    "printf %s $'{{ x }}'",
    "printf %s --x={{ x }}",
    "printf %s $(printf %s {{ x }})",
    'printf %s "$(printf %s "{{ x }}")"',
    "printf %s `printf %s {{ x }}`",
    'Y={{ x }}; printf %s "$Y"',
    "cat <<EOF\n{{ x }}\nEOF",
    "cat <<'EOF'\n{{ x }}\nEOF",
    'cat <<-"EOF"\n\t{{ x }}\n\tEOF',
    "bash <<EOF\necho {{ x }}\nEOF",
    "echo $(( {{ x }} + 1 ))",
    "(( {{ x }} > 1 )) && echo yes",
    "[[ {{ x }} -gt 1 ]] && echo yes",
    "L=(a b c); echo ${L[{{ x }}]}",
    "echo ${L:-{{ x }}}",
    "bash -c 'echo {{ x }}'",
    'sh -c "echo {{ x }}"',
    "eval echo {{ x }}",
    'eval "echo {{ x }}"',
    "echo a | awk '/{{ x }}/ {print}'",
    'echo a | awk "{ print \\"{{ x }}\\" }"',
    "echo x | sed 's/x/{{ x }}/'",
    'echo x | sed "{{ x }}"',
    "python3 -c 'print(\"{{ x }}\")'",
    "# {{ x }}\necho done",
    "echo \\{{ x }}",
    "case {{ x }} in a) echo a;; *) echo other;; esac",
    "{% set y %}--flag={{ x }}{% endset %}printf %s {{ y }}",
    "{% set y = '-n ' ~ x %}printf %s {{ y }}",
    "printf %s {{ x | upper }} {{ x | replace(\"'\", '\"') }} {{ x[1:] }} {{ x.split() | join(' ') }}",
    "printf %s {{ '%s' % x }} {{ '{}'.format(x) }} {{ [x] }} {{ {'k': x} }} {{ x | string }} {{ x | safe }}",
    "{% for c in x.split(';') %}printf %s {{ c }};{% endfor %}",
    "printf %s {{ x or 'none' }} {{ x and x }} {{ x | default('-') }} {{ 'a' + x + 'b' }}",
)


def _tool(template: str, *, dashes: bool = False, required: bool = True) -> YamlTool:
    rule = ParameterRule(name="x", required=required, allow_leading_dash=dashes)
    return YamlTool(tool=Tool(name="t", description=""), template=template, rules=(rule,))


def _render(template: str, value: JsonValue, *, dashes: bool = False, required: bool = True) -> RenderedCommand:
    tool = _tool(template, dashes=dashes, required=required)
    return render_command(tool, {"x": value}, config={}, environment=Environment())


def _output(command: RenderedCommand, folder: Path | None = None) -> bytes:
    done = subprocess.run(
        ["/bin/bash", "-c", command.script],
        env={"PATH": "/usr/bin:/bin", **dict(command.variables)},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=20,
        check=False,
        cwd=folder,
    )
    return done.stdout


@settings(max_examples=80, deadline=None)
@given(
    st.one_of(
        st.text(max_size=40),
        st.text(alphabet="-'\"`$()\\;|&<>{}[]*?~#!\n\t ab=", max_size=20),
    )
)
def test_any_text_arrives_unchanged_or_is_refused(value: str) -> None:
    for template in ("printf '%s' {{ x }}", "printf '%s' \"{{ x }}\"", "printf '%s' ''\"\"'{{ x }}'"):
        try:
            command = _render(template, value)
        except ToolError:
            surrogate = any("\ud800" <= sign <= "\udfff" for sign in value)
            assert value.startswith("-") or "\x00" in value or "HOLMES_ARGUMENT_" in value or surrogate
        else:
            assert _output(command) == value.encode()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(alphabet="-'\"`$()\\; \nab", min_size=1, max_size=8), min_size=1, max_size=4))
def test_each_item_of_a_list_is_one_word(items: list[str]) -> None:
    command = _render("printf '%s\\0' {{ x }}", items, dashes=True)
    assert _output(command) == "".join(f"{item}\0" for item in items).encode()


@pytest.mark.parametrize("template", _TEMPLATES)
def test_no_value_ever_runs_wherever_a_template_puts_it(template: str, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    for hostile in _HOSTILE:
        value = hostile.replace("{{", "{").replace("}}", "}").replace("{canary}", str(canary))
        for dashes in (False, True):
            try:
                command = _render(template, value, dashes=dashes)
            except ToolError:
                continue
            _output(command, tmp_path)
            assert not canary.exists(), (template, value, command.script)


@pytest.mark.parametrize(
    ("template", "value", "accepted"),
    [
        ("kubectl get {{ x }}", "--raw=/api", False),
        ("kubectl get {{ x }}", "-f", False),
        ('kubectl get "{{ x }}"', "-f", False),
        ("kubectl get '{{ x }}'", "-f", False),
        ("X={{ x }}; cmd $X", "-f", False),
        ("cmd; cmd2 {{ x }}", "-f", False),
        ("cmd $(cmd2 {{ x }})", "-f", False),
        ("cmd -- a; cmd2 {{ x }}", "-f", False),
        ("{% if true %}{{ y }}{% endif %}{{ x }}", "-f", False),
        ("kubectl get -- {{ x }}", "-f", True),
        ("kubectl get --since={{ x }}", "-1h", True),
        ('kubectl get "--since={{ x }}"', "-1h", True),
        ("cat deployment/{{ x }}", "-f", True),
        ("head -n {{ x }}", -5, True),
        ("head -n {{ x }}", "-5", True),
        ("cat <<EOF\n{{ x }}\nEOF", "-f", True),
        ("# {{ x }}", "-f", True),
    ],
)
def test_a_leading_dash_is_refused_only_where_it_could_become_an_option(
    template: str, value: JsonValue, *, accepted: bool
) -> None:
    if accepted:
        assert str(value) in _render(template, value).script
    else:
        with pytest.raises(ToolError, match="would be read as an option"):
            _render(template, value)
        assert _render(template, value, dashes=True).script


def test_a_dash_inside_a_list_or_behind_a_filter_is_refused_too() -> None:
    with pytest.raises(ToolError, match="would be read as an option"):
        _render("ls {{ x }}", ["a", "-l"])
    with pytest.raises(ToolError, match="would be read as an option"):
        _render("ls {{ x | trim }}", " -l", dashes=True)


@pytest.mark.parametrize(
    ("template", "arguments", "script"),
    [
        ("kubectl get {{ kind }} -n {{ ns }}", {"kind": "pods", "ns": "shop"}, "kubectl get pods -n shop"),
        ("ls{% if a %} {{ a }}{% else %} .{% endif %}", {}, "ls ."),
        ("ls{% if a %} {{ a }}{% else %} .{% endif %}", {"a": "/x"}, "ls /x"),
        ("ls{% if a %} {{ a }}{% else %} .{% endif %}", {"a": None}, "ls ."),
        ("ls{% if a %} {{ a }}{% else %} .{% endif %}", {"a": ""}, "ls ."),
        ("tail -n {{ n | default(100) }}", {}, "tail -n 100"),
        ("tail -n {{ n | default(100) }}", {"n": 5}, "tail -n 5"),
        ('get {{ ns if ns is string else "" }}', {}, "get "),
        ('get {{ ns if ns is string else "" }}', {"ns": "shop"}, "get shop"),
        ('get {{ "-n " ~ ns if ns else "" }}', {"ns": "shop"}, "get -n shop"),
        ('get {{ "-n " + ns if ns else "" }}', {"ns": "shop"}, "get -n shop"),
        ('{% set f = "--all" if all else "" %}get {{ f }}', {"all": True}, "get --all"),
        ("get {{ flag }} {{ other }}", {"flag": True, "other": False}, "get true false"),
        ("for i in ${X[@]}; do echo $((i + 1)) ${#X}; done", {}, "for i in ${X[@]}; do echo $((i + 1)) ${#X}; done"),
        ("get {{ n + 1 }}", {"n": 1}, "get 2"),
        ("{% for i in items %}get {{ i }}\n{% endfor %}", {"items": ["a", "b"]}, "get a\nget b\n"),
        (
            "{% raw %}kubectl get -o go-template='{{.metadata}}'{% endraw %}",
            {},
            "kubectl get -o go-template='{{.metadata}}'",
        ),
        ("get{{- ' x' -}}  y", {}, "get xy"),
        ("{% if namespace %}-n {{ namespace }}{% endif %}", {}, ""),
        ("{% if a != '' %}{{ a }}{% endif %}.", {}, "."),
    ],
)
def test_templates_in_the_wild_render_as_their_authors_mean(
    template: str, arguments: dict[str, JsonValue], script: str
) -> None:
    tool = YamlTool(tool=Tool(name="t", description=""), template=template)
    assert render_command(tool, arguments, config={}, environment=Environment()).script == script


def test_people_see_the_values_and_bash_gets_them_beside_the_script() -> None:
    command = _render("grep {{ x }} file", "it's $HOME")
    assert command.invocation == "grep 'it'\"'\"'s $HOME' file"
    assert command.script == 'grep "${HOLMES_ARGUMENT_0}" file'
    assert command.variables == (("HOLMES_ARGUMENT_0", "it's $HOME"),)


def test_a_variable_of_the_environment_is_used_and_never_shown() -> None:
    tool = YamlTool(tool=Tool(name="t", description=""), template='curl -H "Auth: {{ env.TOKEN }}" {{ config.url }}')
    command = render_command(
        tool, {}, config={"url": "http://x/a b"}, environment=Environment.of({"TOKEN": "planted-value"})
    )
    assert "planted-value" not in repr(command)
    assert command.invocation == "curl -H \"Auth: ${TOKEN}\" 'http://x/a b'"


def test_arguments_cannot_replace_the_names_of_the_environment() -> None:
    tool = YamlTool(tool=Tool(name="t", description=""), template="echo {{ config.url }}")
    command = render_command(tool, {"config": {"url": "evil"}}, config={"url": "good"}, environment=Environment())
    assert command.script == "echo good"


@pytest.mark.parametrize("value", ["a\x00b", "\ud800", "x" * 200_000, "HOLMES_ARGUMENT_1"])
def test_values_that_no_command_can_take_are_refused(value: str) -> None:
    with pytest.raises(ToolError, match="'x'"):
        _render("echo {{ x }}", value)


def test_a_pattern_is_matched_against_the_whole_value_and_every_item() -> None:
    rule = ParameterRule(name="x", pattern="[a-z]+")
    tool = YamlTool(tool=Tool(name="t", description=""), template="echo {{ x }}", rules=(rule,))
    for value in ("abc\n", "ab1", "", ["abc", "-f"], {"k": "A"}):
        with pytest.raises(ToolError, match="must match the pattern"):
            render_command(tool, {"x": value}, config={}, environment=Environment())
    assert render_command(tool, {"x": ["abc"]}, config={}, environment=Environment()).script == "echo abc"


def test_the_sandbox_gives_no_way_into_python() -> None:
    for expression in ("x.__class__.__mro__", "''.__class__", "cycler.__init__.__globals__", "self.__init__"):
        try:
            script = _render(f"echo {{{{ {expression} }}}}", "v").script
        except ToolError:
            continue
        assert script == "echo "


def test_required_and_empty_is_an_empty_word_optional_and_empty_is_nothing() -> None:
    assert _output(_render("printf '[%s]' {{ x }} end", "")) == b"[][end]"
    assert _output(_render("printf '[%s]' {{ x }} end", "", required=False)) == b"[end]"
