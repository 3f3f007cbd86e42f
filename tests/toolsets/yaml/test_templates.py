"""Which parameters a command has, and which statements it cannot have."""

from __future__ import annotations

import pytest

from holmes.toolsets.yaml.templates import compile_command, inferred_parameters
from holmes.values.errors import ConfigError


@pytest.mark.parametrize(
    ("template", "parameters"),
    [
        ("kubectl get {{ kind }} {{ name }}", [("kind", True), ("name", True)]),
        ("# {{ no }}\n  # {{ no }}\necho {{ yes }} # {{ also }}", [("yes", True), ("also", True)]),
        ("{{ env.HOME }} {{ config.url }} {{ request_context.user }} {{ x }}", [("x", True)]),
        ("{% if a %}{{ a }}{% endif %}", [("a", False)]),
        ("{% if a %}{{ a }}{{ b }}{% endif %}", [("a", False), ("b", True)]),
        ("{% if a %}1{% elif b %}{{ b }}{% endif %}", [("a", False), ("b", False)]),
        ("{% if a %}{{ a }}{% endif %} {{ a }}", [("a", True)]),
        ("{% if not a %}none{% else %}{{ a }}{% endif %}", [("a", False)]),
        ("{% if a is defined and b %}{{ a }}{{ b }}{% endif %}", [("a", False), ("b", False)]),
        ("{% if kind == 'x' %}1{% endif %}", [("kind", True)]),
        ("{{ n | default(5) }}", [("n", False)]),
        ('{{ ns if ns is string else "" }}', [("ns", False)]),
        ("{{ a or 'b' }}", [("a", False)]),
        ("{% set y = x %}{{ y }}", [("x", True)]),
        ("{% for i in items %}{{ i }}{{ loop.index }}{% endfor %}", [("items", True)]),
        ("cat <<EOF\n${X[@]} $((1 + 2)) ${#Y} {{ x }}\nEOF", [("x", True)]),
        ("kubectl -n {{ namespace }}", [("namespace", True)]),
        ("echo {# {{ no }} #} plain", []),
    ],
)
def test_parameters_are_inferred_from_what_a_command_uses(template: str, parameters: list[tuple[str, bool]]) -> None:
    assert list(inferred_parameters(template)) == parameters


@pytest.mark.parametrize(
    "template",
    [
        "{% macro m() %}x{% endmacro %}",
        "{% filter upper %}{{ x }}{% endfilter %}",
        "{% include 'a' %}",
        "{% import 'a' as b %}",
        "{% extends 'a' %}",
        "{% block b %}{% endblock %}",
    ],
)
def test_statements_that_could_undo_the_quoting_are_refused(template: str) -> None:
    with pytest.raises(ConfigError, match="is not supported"):
        compile_command(template)


def test_a_broken_template_names_its_line() -> None:
    with pytest.raises(ConfigError, match="line 2 of the command"):
        compile_command("echo\n{% if x %}\n")
