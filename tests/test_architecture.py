"""The rules of the structure that import-linter cannot say: no cycle of any kind, one reader of the environment."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from functools import cache
from pathlib import Path

import pytest

import holmes

PACKAGE = Path(holmes.__file__).parent
MODULES = {
    ".".join(("holmes", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}


@cache
def nodes_of(source: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(source)))


def imported_modules(name: str, source: str, modules: Collection[str]) -> set[str]:
    """Every one of `modules` that the module `name` imports, also inside functions and under TYPE_CHECKING.

    Importing a module runs the doors (`__init__`) of the packages around it, so they count too. The doors around `name`
    itself only count when it names them: they run before it anyway.
    """
    found: set[str] = set()
    for node in nodes_of(source):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:  # the linter refuses relative imports
            named = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= named if named <= set(modules) else {*named, node.module}
    doors = {door for target in found for door in packages_around(target)} - packages_around(name)
    return {target for target in found | doors if target in modules} - {name}


def packages_around(name: str) -> set[str]:
    parts = name.split(".")
    return {".".join(parts[:length]) for length in range(1, len(parts))}


def find_cycle(graph: dict[str, set[str]]) -> list[str] | None:
    """A path that comes back to its start, or None."""
    done: set[str] = set()

    def visit(name: str, trail: list[str]) -> list[str] | None:
        if name in trail:
            return [*trail[trail.index(name) :], name]
        if name in done:
            return None
        for target in sorted(graph.get(name, ())):
            cycle = visit(target, [*trail, name])
            if cycle:
                return cycle
        done.add(name)
        return None

    return next((cycle for name in sorted(graph) if (cycle := visit(name, []))), None)


def test_no_import_cycle_even_in_functions_and_for_types() -> None:
    graph = {name: imported_modules(name, path.read_text(), MODULES) for name, path in MODULES.items()}
    assert sum(map(len, graph.values())) > 50, "the graph is empty, so this test proves nothing"
    assert find_cycle(graph) is None


def test_the_cycle_finder_finds_a_cycle() -> None:
    assert find_cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a", "b", "c", "a"]


@pytest.mark.parametrize(
    ("sources", "cycle"),
    [
        ({"a": "", "a.door": "import a.room", "a.room": "def f():\n  import a.door"}, ["a.door", "a.room", "a.door"]),
        # A room that takes something from the door of its own package.
        ({"a": "from a.room import x", "a.room": "from a import y"}, ["a", "a.room", "a"]),
        ({"a": "from a.room import x", "a.room": "from a import other", "a.other": ""}, None),
        # Two packages whose doors open into each other.
        ({"a": "from b import x", "b": "if TYPE_CHECKING:\n  from a import y"}, ["a", "b", "a"]),
        # A door that runs because a room behind it is imported.
        (
            {"a": "from a.one import x", "a.one": "import b.two", "a.four": "", "b": "", "b.two": "import a.four"},
            ["a", "a.one", "b.two", "a"],
        ),
        ({"a": "from a.one import x", "a.one": "import a.two", "a.two": ""}, None),
    ],
)
def test_the_cycle_finder_sees_the_doors_of_packages(sources: dict[str, str], cycle: list[str] | None) -> None:
    assert find_cycle({name: imported_modules(name, text, sources) for name, text in sources.items()}) == cycle


def reads_environment(path: Path) -> bool:
    names = {"environ", "getenv", "environb"}
    return any(
        (isinstance(node, ast.Attribute) and node.attr in names) or (isinstance(node, ast.Name) and node.id in names)
        for node in nodes_of(path.read_text())
    )


def test_only_the_settings_read_the_environment() -> None:
    # The loader of litellm must set one variable before the import, which no argument can replace; the process of jq
    # empties its variables, so that a program of jq finds none.
    allowed = {"holmes.llm.litellm_loader", "holmes.toolsets.kubernetes_view.__main__"}
    readers = {name for name, path in MODULES.items() if reads_environment(path)}
    assert {name for name in readers if not name.startswith("holmes.settings")} <= allowed


def test_files_and_functions_stay_short() -> None:
    too_long = [str(path) for path in MODULES.values() if len(path.read_text().splitlines()) > 400]
    for path in MODULES.values():
        for node in nodes_of(path.read_text()):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
                length = node.end_lineno - node.lineno + 1
                too_long += [f"{path}:{node.lineno} {node.name}"] if length > 50 else []
    assert too_long == []


def test_the_loop_reads_as_the_algorithm_and_stays_below_200_lines() -> None:
    lines = MODULES["holmes.core.tool_calling_llm"].read_text().splitlines()
    assert len([line for line in lines if line.strip()]) < 200


def test_broad_excepts_only_in_the_tool_executor_and_at_the_edge_of_a_face() -> None:
    allowed = {
        "holmes.core.tools_utils.tool_executor",
        "holmes.cli.main",
        "holmes.diagnosis.scan",  # a rule
        "holmes.server.work_main",  # the edge of a process
        "holmes.server.errors",
        "holmes.server.chat.chat_runs",  # a chat that nobody awaits
        "holmes.investigations.queue.worker",  # a job
        "holmes.investigations.deliveries.worker",  # a delivery
        "holmes.investigations.queue.queue",  # loops
    }
    broad = set()
    for name, path in MODULES.items():
        for node in nodes_of(path.read_text()):
            if isinstance(node, ast.ExceptHandler) and (
                node.type is None
                or (isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"})
            ):
                broad.add(name)
    assert broad <= allowed


def test_no_test_and_no_page_names_the_host_of_a_public_registry() -> None:
    # In pieces, or this file would be the first one.
    pieces = [
        "".join(pair)
        for pair in (
            *(("npm", "js.org"), ("py", "pi.org"), ("python", "hosted.org"), ("docker", ".io"), ("ghcr", ".io")),
            *(("gcr", ".io"), ("quay", ".io"), ("registry.k8s", ".io"), ("mcr.micro", "soft.com"), ("nvcr", ".io")),
            *(("crates", ".io"), ("ruby", "gems.org"), ("proxy.golang", ".org"), ("public.ecr", ".aws")),
        )
    ]
    root = Path(__file__).parent.parent
    folders = ("tests", "docs", "helm", "toolsets", "prompts", "benchmarks", "holmes")
    files = [path for folder in folders for path in (root / folder).rglob("*") if path.is_file()]
    naming = {
        f"{path.relative_to(root)}: {host}"
        for path in files
        if path.suffix not in {".pyc", ".png", ".ico"}
        for host in pieces
        if host in path.read_text(errors="replace")
    }
    assert naming == set()


def test_no_test_measures_time_or_memory_of_the_machine() -> None:
    measures = re.compile(r"\b(?:(?:perf_counter|process_time|thread_time)(?:_ns)?|tracemalloc|getrusage|ru_maxrss)\b")
    here = Path(__file__)
    others = [path for path in sorted(here.parent.rglob("*.py")) if path != here]
    found = [path.name for path in others if measures.search(path.read_text(encoding="utf-8"))]
    assert found == [], "figures with a bound belong to benchmarks/"
