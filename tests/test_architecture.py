"""The rules of the structure that import-linter cannot say: no cycle of any kind, one reader of the environment."""

from __future__ import annotations

import ast
from pathlib import Path

import holmes

PACKAGE = Path(holmes.__file__).parent
MODULES = {
    ".".join(("holmes", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}


def imported_modules(path: Path) -> set[str]:
    """Every module of Holmes that `path` imports, also inside functions and under TYPE_CHECKING."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
            found.add(node.module)
    return {name for name in found if name in MODULES and MODULES[name].name != "__init__.py"}


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
    graph = {name: imported_modules(path) - {name} for name, path in MODULES.items()}
    assert sum(map(len, graph.values())) > 50, "the graph is empty, so this test proves nothing"
    assert find_cycle(graph) is None


def test_the_cycle_finder_finds_a_cycle() -> None:
    assert find_cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a", "b", "c", "a"]


def reads_environment(path: Path) -> bool:
    names = {"environ", "getenv", "environb"}
    return any(
        (isinstance(node, ast.Attribute) and node.attr in names) or (isinstance(node, ast.Name) and node.id in names)
        for node in ast.walk(ast.parse(path.read_text()))
    )


def test_only_the_settings_read_the_environment() -> None:
    # The loader of litellm must set one variable before the import, which no argument can replace; the view of objects
    # takes its key from the variables of its own process and empties them, so that a jq program finds none.
    view = {f"holmes.toolsets.kubernetes_view.{name}" for name in ("__main__", "layouts")}
    allowed = {"holmes.llm.litellm_loader", *view}
    readers = {name for name, path in MODULES.items() if reads_environment(path)}
    assert {name for name in readers if not name.startswith("holmes.settings")} <= allowed


def test_files_and_functions_stay_short() -> None:
    too_long = [str(path) for path in MODULES.values() if len(path.read_text().splitlines()) > 400]
    for path in MODULES.values():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
                length = node.end_lineno - node.lineno + 1
                too_long += [f"{path}:{node.lineno} {node.name}"] if length > 60 else []
    assert too_long == []


def test_the_loop_reads_as_the_algorithm_and_stays_below_200_lines() -> None:
    lines = MODULES["holmes.core.tool_calling_llm"].read_text().splitlines()
    assert len([line for line in lines if line.strip()]) < 200


def test_broad_excepts_only_in_the_tool_executor_and_at_the_edge_of_a_face() -> None:
    allowed = {
        "holmes.core.tools_utils.tool_executor",
        "holmes.cli.main",
        "holmes.app.work_main",  # the edge of a process
        "holmes.server.errors",
        "holmes.server.chat_runs",  # a chat that nobody awaits
        "holmes.investigations.worker",  # a job
        "holmes.investigations.deliveries.worker",  # a delivery
        "holmes.investigations.periodic",  # a loop
    }
    broad = set()
    for name, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ExceptHandler) and (
                node.type is None
                or (isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"})
            ):
                broad.add(name)
    assert broad <= allowed
