"""A wheel and an sdist hold all that tile_eg needs: installed beside its core dependencies alone, it works from any folder."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import distribution, version
from pathlib import Path
from shutil import copy, copytree, ignore_patterns

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tests.npu.cann import ROOT

pytestmark = pytest.mark.slow
ALONE = ("PYTHONPATH", "PYTHONHOME", "ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "TILE_EG_RAISE_FAULTS")
"""Variables by which this process would reach into the one that is tried."""
KERNEL = """\
kernel tripled[M=64](X: f32[M, 64]) -> Y: f32[M, 64] {
  grid b = ceildiv(M, 16)
  shared x: f32[16, 64]
  x = X[b*16, 0]
  x = x * 3
  Y[b*16, 0] = x
}
"""
CALLED = """\
import numpy as np, tile_eg
from tile_eg import language as T

@tile_eg.jit
def tripled(X: T.Tensor((64, 64), "float32")):
    return X * 3.0

x = np.ones((64, 64), np.float32)
assert (tripled(x) == 3).all() and (tile_eg.load("own.tile")(x) == 3).all()
print(tile_eg.__file__)
"""
COMMANDS = {
    "check own.tile": "good",
    "emit own.tile -o own.asc --host": "wrote own.asc",
    "run own.tile": "in the simulator: good",
    "explain own.tile": "decisions",
    "doctor": "in the simulator        yes",
    "build own.tile -o directory": "wrote directory",
    "bench own.tile --device simulator": "tripled",
    "rules": "mmad-accumulate",
    "rules 31_vector": "v-fill",
    "chips": "910B2",
    "compare-models own.tile": "timeline",
}
"""Commands, each with a part of what it prints."""


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An sdist of what stands in the checkout, which is left as it is."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("sdist")
    copytree(ROOT / "tile_eg", source / "tile_eg", ignore=ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "README.md"):
        copy(ROOT / file, source)
    made(["-c", f"from setuptools.build_meta import build_sdist; build_sdist({str(out)!r})"], source)
    return next(out.iterdir())


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that pip makes of the sdist. Where setuptools is too old for it here, pip fetches another."""
    out = tmp_path_factory.mktemp("wheel")
    here = [] if Version(version("setuptools")) < Version("70.1") else ["--no-build-isolation"]
    made(["-m", "pip", "wheel", "--no-deps", *here, "-w", str(out), str(sdist)], out)
    return next(out.glob("tile_eg-*.whl"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that holds the wheel and its core dependencies, which are linked from this one."""
    home = tmp_path_factory.mktemp("environment")
    made(["-m", "venv", "--without-pip", str(home)], home)
    made(["-m", "pip", "--python", str(home / "bin" / "python"), "install", "--no-deps", "--no-index", str(wheel)], home)
    packages = next(home.glob("lib/python*/site-packages"))
    for path in set(linked(core_dependencies("tile_eg"))):
        (packages / path.name).symlink_to(path)
    return home / "bin" / "python"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own.tile").write_text(KERNEL)
    return tmp_path


def made(arguments: Sequence[str], folder: Path, python: Path | str = sys.executable) -> str:
    """What a Python prints that runs alone in a folder, and ends well."""
    env = {n: v for n, v in os.environ.items() if n not in ALONE} | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([python, *arguments], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


def core_dependencies(name: str, seen: set[str] | None = None) -> set[str]:
    """The distributions that one needs without its extras, and those that these need."""
    found = set() if seen is None else seen
    for requirement in map(Requirement, distribution(name).requires or []):
        needed = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if needed and requirement.name not in found:
            found.add(requirement.name)
            core_dependencies(requirement.name, found)
    return found


def linked(distributions: Iterable[str]) -> Iterator[Path]:
    """What distributions have in a folder of packages."""
    for name in distributions:
        own = distribution(name)
        tops = {file.parts[0] for file in own.files or [] if file.parts[0] not in ("..", "__pycache__")}
        yield from (Path(str(own.locate_file(top))) for top in tops)


def of_the_checkout() -> set[str]:
    files = (path for path in (ROOT / "tile_eg").rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {f.relative_to(ROOT).as_posix() for f in files if not f.name.startswith(".")}


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert held == of_the_checkout()


def test_the_sdist_holds_them_too(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert of_the_checkout() - held == set()


@pytest.mark.few(2)
@pytest.mark.parametrize("absent", ["pytest", "torch", "hypothesis", "z3", "dask"])
def test_the_environment_has_nothing_beside_the_core_dependencies(python: Path, folder: Path, absent: str) -> None:
    code = f"import importlib.util; print(importlib.util.find_spec({absent!r}))"
    assert made(["-c", code], folder, python).strip() == "None"


@pytest.mark.few(5)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_works_from_another_folder(python: Path, folder: Path, command: str) -> None:
    assert COMMANDS[command] in made([str(python.parent / "tile-eg"), *command.split()], folder, python)


def test_kernels_are_called_from_another_folder_and_nothing_is_written_beside_the_package(python: Path, folder: Path) -> None:
    packages = next(python.parent.parent.glob("lib/python*/site-packages"))
    before = states(packages / "tile_eg")
    (folder / "own.py").write_text(CALLED)
    assert made(["own.py"], folder, python).strip() == str(packages / "tile_eg" / "__init__.py")
    assert states(packages / "tile_eg") == before


def states(folder: Path) -> dict[Path, tuple[int, int]]:
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*")}


@pytest.mark.long
def test_pip_installs_the_wheel_with_what_it_names_and_the_simulator_is_built_from_it(
    wheel: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILE_EG_CACHE", str(tmp_path / "cache"))
    made(["-m", "venv", str(tmp_path / "environment")], tmp_path)
    python = tmp_path / "environment" / "bin" / "python"
    made(["-m", "pip", "install", "--quiet", str(wheel)], tmp_path, python)
    assert "in the simulator: good" in made(["-m", "tile_eg", "run", "own.tile"], folder, python)
