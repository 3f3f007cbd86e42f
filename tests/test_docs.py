"""Every code block of README and docs is executed: files are written, commands run, outputs compared.

In a `console` block, lines that begin with `$ ` are commands and the lines below are what they print; a `yaml` block
begins with `# file: PATH` and becomes that file. Progress on standard error is left out; an error line is not.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.command_line import Home

ROOT = Path(__file__).parent.parent
# deploy.md needs a shell and services: test_docs_deploy.py.
DOCUMENTS = sorted(path for path in (ROOT / "docs").glob("*.md") if path.stem != "deploy")


@dataclass(frozen=True, slots=True)
class Block:
    language: str
    text: str


def blocks_of(path: Path) -> list[Block]:
    """The fenced code blocks of a document, in order."""
    found = re.findall(r"^```(\w+)\n(.*?)^```$", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [Block(language, text) for language, text in found]


def commands_of(block: Block) -> list[tuple[str, str]]:
    """The commands of a `console` block, each with what it prints."""
    parts = re.split(r"^\$ (.*)\n", block.text, flags=re.MULTILINE)
    assert parts[0] == ""
    return list(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
@pytest.mark.timeout(300)
def test_every_block_of_the_docs_does_what_it_says(
    document: Path, kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home.make(tmp_path / "home", KUBECONFIG=str(kubeconfig))
    monkeypatch.chdir(home.path)
    blocks = blocks_of(document)
    assert blocks
    for block in blocks:
        if block.language == "yaml":
            first, _, text = block.text.partition("\n")
            assert first.startswith("# file: "), f"{document.name}: a yaml block must say which file it is"
            (home.path / first.removeprefix("# file: ")).write_text(f"{first}\n{text}")
            continue
        assert block.language == "console", f"{document.name}: nobody knows how to execute {block.language!r}"
        for command, expected in commands_of(block):
            program, *arguments = shlex.split(command)
            assert program == "holmes"
            done = home.run(*arguments)
            errors = "".join(line for line in done.stderr.splitlines(keepends=True) if line.startswith("holmes: "))
            assert done.stdout + errors == expected


def test_the_two_commands_of_the_readme_are_targets_of_the_makefile() -> None:
    shell = [block.text for block in blocks_of(ROOT / "README.md") if block.language == "bash"]
    assert len(shell) == 2
    makefile = (ROOT / "Makefile").read_text()
    for line, target in zip(shell, ("ask", "test"), strict=True):
        assert line.startswith(f"make {target}")
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)


def test_links_of_the_readme_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text())
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_places_that_the_readme_names_exist() -> None:
    rows = re.findall(r"^\| [^|]+ \| ([^|]*`[^|]*) \|$", (ROOT / "README.md").read_text(), flags=re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`([\w./*]+/[\w./*]*)`", row)]
    assert len(named) > 10
    assert [name for name in named if not list(ROOT.glob(name.rstrip("/")))] == []
