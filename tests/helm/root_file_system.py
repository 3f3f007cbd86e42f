"""Makes the root file system of the image from what this machine has, because no container builder runs here.

The layout is that of the Dockerfile: Python below /usr/local, a virtual environment in /opt/holmes with the packages
of docker/requirements.lock, the project's wheel and kubectl, helm in /usr/local/bin, bash from Debian. Files are hard
links where they can be, so nobody may write below the folder; the tests mount it read-only.
"""

from __future__ import annotations

import compileall
import os
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from tests.helm.chart import ROOT
from tests.helm.dockerfile import stages

VERSION: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
LIBRARIES: Final = "usr/lib/x86_64-linux-gnu" if os.uname().machine == "x86_64" else "usr/lib/aarch64-linux-gnu"
# Not needed by a server, and half of the size.
LEFT_OUT: Final = {"test", "site-packages", "idlelib", "ensurepip", "lib2to3", "tkinter", "turtledemo"}
NEVER_SERVED: Final = ("litellm/proxy/_experimental/out/", "kubernetes/test/")
FOLDERS: Final = ("dev", "etc/holmes", "opt", "proc", "run", "sys", "tmp", "usr/bin", "usr/local/bin", "var/lib/holmes")
PROGRAMS: Final = ("/bin/bash", "/bin/busybox", "/usr/bin/env", "/bin/cat", "/bin/sleep", "/usr/bin/setpriv")
# What packages are linked to and every Debian has.
OF_DEBIAN: Final = (
    *("libdl.so.2", "libgcc_s.so.1", "libm.so.6", "libnss_dns.so.2", "libnss_files.so.2", "libpthread.so.0"),
    *("libresolv.so.2", "librt.so.1", "libstdc++.so.6", "libutil.so.1"),
)


def make_root(target: Path, helm: Path) -> None:
    """Fill `target`, which must not be there yet. Takes some seconds."""
    for folder in FOLDERS:
        (target / folder).mkdir(parents=True)
    for name in ("bin", "lib", "lib64"):
        (target / name).symlink_to("usr/bin" if name == "bin" else f"usr/{name}")
    (target / "usr/lib").mkdir(exist_ok=True)
    (target / "usr/lib64").mkdir()
    (target / "tmp").chmod(0o1777)
    _write_accounts(target)
    _add_python(target)
    _add_environment(target)
    for program in PROGRAMS:
        _link(Path(program).resolve(), target / "usr/bin" / Path(program).name)
    (target / "usr/bin/sh").symlink_to("bash")
    _link(helm, target / "usr/local/bin/helm")
    _add_libraries(target)
    data, user = target / "var/lib/holmes", stages()[-1].user()
    os.chown(data, user, user)
    data.chmod(0o750)


def _write_accounts(target: Path) -> None:
    user = stages()[-1].user()
    (target / "etc/passwd").write_text(
        f"root:x:0:0:root:/root:/bin/sh\nholmes:x:{user}:{user}::/var/lib/holmes:/usr/sbin/nologin\n"
    )
    (target / "etc/group").write_text(f"root:x:0:\nholmes:x:{user}:\n")
    (target / "etc/nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")


def _add_python(target: Path) -> None:
    binary = Path(sys.executable).resolve()
    _link(binary, target / "usr/local/bin" / f"python{VERSION}")
    for name in ("python", "python3"):
        (target / "usr/local/bin" / name).symlink_to(f"python{VERSION}")
    standard = Path(sysconfig.get_path("stdlib"))
    for folder, folders, files in os.walk(standard):
        folders[:] = [name for name in folders if name not in LEFT_OUT and not name.startswith("config-")]
        for name in files:
            source = Path(folder, name)
            _link(source, target / f"usr/local/lib/python{VERSION}" / source.relative_to(standard))


def _add_environment(target: Path) -> None:
    """The virtual environment: locked packages as they are installed here, and the wheel built from the sources."""
    environment = target / "opt/holmes"
    (environment / "bin").mkdir(parents=True)
    (environment / "pyvenv.cfg").write_text("home = /usr/local/bin\ninclude-system-site-packages = false\n")
    for name in ("python", "python3"):
        (environment / "bin" / name).symlink_to("/usr/local/bin/python3")
    packages = environment / f"lib/python{VERSION}/site-packages"
    for name in locked_names():
        _add_distribution(name, packages)
    _add_wheel(target.with_name("wheel"), packages)
    _script(environment / "bin/holmes", "from holmes.cli.main import main\nimport sys\nsys.exit(main())\n")


def locked_names() -> list[str]:
    """The packages of the image's lock file."""
    text = (ROOT / "docker/requirements.lock").read_text(encoding="utf-8")
    return re.findall(r"^([a-z0-9][a-z0-9._-]*)==", text, re.MULTILINE)


def _add_distribution(name: str, packages: Path) -> None:
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        return  # for another operating system or version of Python
    for file in installed.files or ():
        source = Path(str(installed.locate_file(file))).resolve()
        if source.suffix == ".pyc" or not source.is_file() or str(file).startswith(NEVER_SERVED):
            continue
        if ".." not in file.parts:
            _link(source, packages / file)
            cached = source.parent / "__pycache__" / f"{source.stem}.{sys.implementation.cache_tag}.pyc"
            if source.suffix == ".py" and cached.is_file():
                _link(cached, (packages / file).parent / "__pycache__" / cached.name)
        elif file.name == "kubectl":
            _link(source, packages.parents[2] / "bin/kubectl")


def _add_wheel(folder: Path, packages: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
        # As pip does, and zipfile does not.
        for program in (info for info in archive.infolist() if info.external_attr >> 16 & 0o111):
            (packages / program.filename).chmod(0o755)
    compileall.compile_dir(packages / "holmes", quiet=2, workers=2)
    shutil.rmtree(folder)


def _script(path: Path, body: str) -> None:
    path.write_text(f"#!/opt/holmes/bin/python\n{body}")
    path.chmod(0o755)


def _add_libraries(target: Path) -> None:
    """What the programs and the standard library's modules are linked to."""
    binaries = [
        target / "usr/local/bin" / f"python{VERSION}",
        *(target / "usr/bin" / Path(each).name for each in PROGRAMS),
    ]
    binaries += (target / f"usr/local/lib/python{VERSION}/lib-dynload").glob("*.so")
    needed = set(_needed(binaries))
    needed.update(Path("/", LIBRARIES, name) for name in OF_DEBIAN if Path("/", LIBRARIES, name).exists())
    for library in needed:
        _link(library.resolve(), target / LIBRARIES / library.name)
        if library.name.startswith("ld-linux"):
            loader = target / ("usr/lib64" if "x86-64" in library.name else "usr/lib") / library.name
            _link(library.resolve(), loader)


def _needed(binaries: list[Path]) -> Iterator[Path]:
    listing = subprocess.run(["ldd", *map(str, binaries)], capture_output=True, text=True, check=False).stdout
    for path in re.findall(r"(?:=> |^\s+)(/\S+) \(0x", listing, re.MULTILINE):
        yield Path(path)


def _link(source: Path, destination: Path) -> None:
    """A hard link, or a copy across file systems and where others may not read the file."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    if destination.exists():
        return
    readable = stat.S_IMODE(source.stat().st_mode) & 0o444 == 0o444
    try:
        if readable:
            os.link(source, destination)
            return
    except OSError:
        pass
    shutil.copy2(source, destination)
    destination.chmod(stat.S_IMODE(source.stat().st_mode) | 0o444)
