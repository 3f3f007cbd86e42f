"""Renders the templates in `prompts/`, which contain the system prompt and the notes that Holmes sends to the model.

A missing variable or template is a bug and raises an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.assets import prompt_directory

if TYPE_CHECKING:
    from collections.abc import Mapping


def render_prompt(name: str, variables: Mapping[str, object] | None = None) -> str:
    """Render `prompts/<name>.jinja2`. The same variables always produce the same bytes."""
    source = prompt_directory() / f"{name}.jinja2"
    if variables is None:
        return source.read_text(encoding="utf-8").strip()
    # Imported here, because commands such as `holmes --help` and answers without an LLM do not need jinja2.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(prompt_directory()),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701  the result is plain text, not HTML
    )
    return environment.get_template(f"{name}.jinja2").render(variables).strip()
