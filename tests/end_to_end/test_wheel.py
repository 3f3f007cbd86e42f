"""What a user installs: the wheel, in an environment that knows nothing of the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent.parent
SCRIPT = """\
- tool_calls: [{name: kubectl_explain, arguments: {path: pod.spec}}]
- text: "The answer from the wheel."
"""


def run(*command: str | Path, cwd: Path, timeout_seconds: float = 300, **variables: str) -> str:
    """Run a command outside the checkout and return its output."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "LANG": "C.UTF-8", **variables}
    done = subprocess.run(
        [*command], cwd=cwd, env=environment, capture_output=True, text=True, timeout=timeout_seconds, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the tree as the release is."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_carries_every_toolset_and_prompt_and_nothing_of_the_tests(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("toolsets", "prompts"):
        shipped = {f"holmes/_data/{folder}/{path.name}" for path in (ROOT / folder).iterdir()}
        assert shipped
        assert shipped <= names
    programs = {info.filename: info.external_attr >> 16 & 0o111 for info in zipfile.ZipFile(wheel).infolist()}
    assert programs["holmes/toolsets/yaml/programs/kubectl"] == programs["holmes/toolsets/yaml/programs/oc"] == 0o111
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/"))]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_clean_environment_runs_ask_and_lists_every_shipped_toolset(
    wheel: Path, clean_environment: Path, kubeconfig: Path, tmp_path: Path
) -> None:
    pip = [str(clean_environment / "bin/pip"), "install", "--quiet", "--disable-pip-version-check"]
    install = [*pip, "--no-deps", "--force-reinstall", str(wheel)]
    subprocess.run(install, check=True, timeout=120, cwd=tmp_path)
    holmes = clean_environment / "bin/holmes"

    listed = run(holmes, "toolset", "list", "--all", cwd=tmp_path, KUBECONFIG=str(kubeconfig))
    shipped = [
        name for path in (ROOT / "toolsets").glob("*.yaml") for name in yaml.safe_load(path.read_text())["toolsets"]
    ]
    assert len(shipped) >= 2
    for name in (*shipped, "kubernetes/logs"):
        assert name in listed

    (wrapper,) = clean_environment.glob("lib/python*/site-packages/holmes/toolsets/yaml/programs/kubectl")
    assert os.access(wrapper, os.X_OK)

    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT)
    answer = run(holmes, "ask", "-n", "why?", "--model", f"scripted:{script}", cwd=tmp_path, KUBECONFIG=str(kubeconfig))
    assert answer == "The answer from the wheel.\n"
