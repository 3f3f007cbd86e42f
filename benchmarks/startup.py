"""What it costs to start: `python benchmarks/startup.py`.

Every figure is a ratio of whole processes run in turn, since machines are noisy. CPU is user and system time of the
process and its children, as the operating system accounts it. Exits with 1 when a promise is broken:

- `holmes --help` and `holmes version` use at most 5 times the CPU of `python -c pass` and of `import click` together,
  and at most 0.1 s;
- from the start of `holmes ask` to the first request to the model takes at most 1.2 times a bare `import litellm`;
- a missing cluster is reported in half of the time of a bare `import litellm`, and Ctrl-C during that import ends the
  command in a quarter of it, or in one second.

Also prints the installed size of each package that `holmes ask` needs, and of each extra, from the files that the
distributions record.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.command_line import Home, provider_config
from tests.support.kubernetes_api import document, kubernetes_api, write_kubeconfig
from tests.support.openai_server import Hang, OpenAIServer, Reply

CPU_RUNS = 15
REQUEST_RUNS = 7
MAX_HELP_SECONDS = 0.1
MAX_HELP_RATIO = 5.0
LARGEST_PACKAGES = 25
MEGABYTE = 1_000_000
MAX_FIRST_REQUEST_RATIO = 1.2


def cpu_seconds(arguments: Sequence[str], environment: Mapping[str, str]) -> float:
    """CPU seconds of one `python` process with these arguments."""
    before = os.times()
    command = [sys.executable, *arguments]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def seconds_to_import_litellm(environment: Mapping[str, str]) -> float:
    """Wall seconds of a process that only imports litellm."""
    started = time.monotonic()
    offline = {**environment, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    subprocess.run([sys.executable, "-c", "import litellm"], env=offline, check=True)
    return time.monotonic() - started


def seconds_to_first_request(home: Home, server: OpenAIServer) -> float:
    """Wall seconds from the start of `holmes ask` until the provider has the request."""
    known = len(server.requests)
    started = time.monotonic()
    done = home.run("ask", "-n", "why?")
    if done.exit_code != 0:
        sys.exit(f"holmes ask failed: {done.stderr}")
    return server.requests[known].at_seconds - started


def measure_cpu(environment: Mapping[str, str]) -> bool:
    """Print the CPU table; whether the promise holds."""
    commands = {
        "python -c pass": ["-c", "pass"],
        "import click": ["-c", "import click"],
        "holmes --help": ["-m", "holmes", "--help"],
        "holmes version": ["-m", "holmes", "version"],
    }
    runs: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(CPU_RUNS):
        for name, arguments in commands.items():
            runs[name].append(cpu_seconds(arguments, environment))
    medians = {name: statistics.median(values) for name, values in runs.items()}
    base = medians["python -c pass"] + medians["import click"]
    for name, value in medians.items():
        print(f"  {name:<16} {value * 1000:6.0f} ms CPU, {value / base:.2f} times the base")
    print(
        f"  the base is `python -c pass` plus `import click`: at most {MAX_HELP_RATIO} times and {MAX_HELP_SECONDS} s"
    )
    limit = min(MAX_HELP_RATIO * base, MAX_HELP_SECONDS)
    return all(medians[name] <= limit for name in ("holmes --help", "holmes version"))


def measure_first_request(folder: Path) -> bool:
    """Print the time to the first request; whether the promise holds."""
    with kubernetes_api() as api, OpenAIServer(lambda _: Reply(text="done")) as server:
        api.on("/version", document({"gitVersion": "v1.34.0"}))
        kubeconfig = write_kubeconfig(folder, api.url)
        home = Home.make(folder / "home", config=provider_config(server.base_url), KUBECONFIG=str(kubeconfig))
        ratios: list[float] = []
        for run in range(REQUEST_RUNS + 1):
            bare, asked = seconds_to_import_litellm(home.environment()), seconds_to_first_request(home, server)
            if run:  # the first pair fills the caches
                ratios.append(asked / bare)
                print(f"  import litellm {bare:.2f} s, first request {asked:.2f} s, ratio {asked / bare:.2f}")
    ratio = statistics.median(ratios)
    print(f"  median ratio {ratio:.2f}: at most {MAX_FIRST_REQUEST_RATIO}")
    return ratio <= MAX_FIRST_REQUEST_RATIO


def measure_early_ends(folder: Path) -> bool:
    """Print how soon a known failure and Ctrl-C end `holmes ask`; whether the promises hold."""
    with kubernetes_api() as api, OpenAIServer(lambda _: Hang()) as server:
        api.on("/version", document({"gitVersion": "v1.34.0"}))
        config, kubeconfig = provider_config(server.base_url), write_kubeconfig(folder, api.url)
        home = Home.make(folder / "ends", config=config, KUBECONFIG=str(kubeconfig))
        lost = Home.make(folder / "lost")
        imported, failed, interrupted = float("inf"), float("inf"), float("inf")
        for _ in range(3):
            imported = min(imported, seconds_to_import_litellm(home.environment()))
            started = time.monotonic()
            lost.run("ask", "-n", "why?", "--model", "gpt-4o")
            failed = min(failed, time.monotonic() - started)
            with home.start("ask", "-n", "why?") as process:
                time.sleep(imported / 2)
                process.send_signal(signal.SIGINT)
                started = time.monotonic()
                process.communicate(timeout=60)
                interrupted = min(interrupted, time.monotonic() - started)
    print(f"  import litellm {imported:.2f} s, missing cluster {failed:.2f} s, Ctrl-C {interrupted:.2f} s")
    return failed <= imported / 2 and interrupted <= max(1.0, imported / 4)


def closure(name: str, extras: Iterable[str]) -> set[str]:
    """The packages that `name` with `extras` needs on this machine; packages that are not installed are left out."""
    found: set[str] = set()
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [(canonicalize_name(name), frozenset(extras))]
    while waiting:
        package, wanted = current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        try:
            requires = distribution(package).requires or []
        except PackageNotFoundError:
            continue
        found.add(package)
        for requirement in map(Requirement, requires):
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *wanted)):
                waiting.append((canonicalize_name(requirement.name), frozenset(requirement.extras)))
    return found - {canonicalize_name(name)}


def installed_bytes(package: str) -> int:
    """The size of all files that the package has recorded."""
    files = distribution(package).files or []
    paths = (Path(str(file.locate())) for file in files)
    return sum(path.stat().st_size for path in paths if path.is_file())


def print_sizes() -> None:
    """Print the size of what `holmes ask` needs by package, and what each extra adds to it."""
    sizes = {package: installed_bytes(package) for package in closure("holmes", ())}
    print(f"Installed for `holmes ask`: {sum(sizes.values()) / MEGABYTE:.0f} MB in {len(sizes)} packages")
    ordered = sorted(sizes.items(), key=lambda entry: -entry[1])
    for package, size in ordered[:LARGEST_PACKAGES]:
        print(f"  {package:<24} {size / MEGABYTE:6.1f} MB")
    print(f"  {'all others':<24} {sum(size for _, size in ordered[LARGEST_PACKAGES:]) / MEGABYTE:6.1f} MB")
    for extra in sorted(distribution("holmes").metadata.get_all("Provides-Extra") or []):
        added = {package: installed_bytes(package) for package in closure("holmes", [extra]) - sizes.keys()}
        names = ", ".join(sorted(added, key=lambda package: -added[package])[:3])
        print(f"  extra {extra:<18} {sum(added.values()) / MEGABYTE:6.1f} MB more ({names})")


def main() -> int:
    """Print all tables; 1 when a promise is broken."""
    print_sizes()
    with tempfile.TemporaryDirectory() as folder:
        environment = Home.make(Path(folder) / "empty").environment()
        print(f"CPU of a process, median of {CPU_RUNS}")
        instant = measure_cpu(environment)
        print(f"From start to the first request, {REQUEST_RUNS} pairs")
        quick = measure_first_request(Path(folder))
        print("Ends before the library is loaded, best of 3")
        early = measure_early_ends(Path(folder))
    return 0 if instant and quick and early else 1


if __name__ == "__main__":
    sys.exit(main())
