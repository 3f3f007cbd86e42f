"""Renders the templates of `prompts/`, which contain all texts that Holmes itself sends to the model.

A missing variable or template raises an error, because it is a bug.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.assets import prompt_directory

if TYPE_CHECKING:
    from collections.abc import Mapping


def render_prompt(name: str, variables: Mapping[str, object] | None = None) -> str:
    """Render `prompts/<name>.jinja2`. The same variables always produce the same bytes."""
    # Imported here, because `holmes --help` does not need jinja2.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(prompt_directory()),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701  plain text for a model, not HTML
    )
    return environment.get_template(f"{name}.jinja2").render(variables or {}).strip()
