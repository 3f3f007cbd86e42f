"""The data files are found, from a checkout and from a wheel alike."""

from __future__ import annotations

from holmes.assets import prompt_directory, toolset_files


def test_toolsets_and_prompts_are_found() -> None:
    names = [path.name for path in toolset_files()]
    assert names == sorted(names)
    assert {"kubernetes.yaml", "helm.yaml"} <= set(names)
    assert (prompt_directory() / "system.jinja2").is_file()
