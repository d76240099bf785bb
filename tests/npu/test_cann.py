"""CANN is found where it is installed, and says its version in one of several ways."""

from __future__ import annotations

from pathlib import Path

import pytest

from tile_eg.npu.cann import Cann, installed, machine


@pytest.mark.parametrize(
    ("file", "text", "version"),
    [
        (f"{machine()}-linux/ascend_toolkit_install.info", "package_name=Ascend-cann-toolkit\nversion=8.3.RC1\n", (8, 3)),
        ("compiler/version.info", "Version=7.6.0.1.220\nversion_dir=8.5.0\ntimestamp=20260101\n", (8, 5)),
        ("version.cfg", "# version: 1.0\nruntime_running_version=[7.6.0.1.220:9.0.0]\n", (9, 0)),
        ("compiler/version.info", "Version=7.6.0.1.220\n", None),
    ],
)
def test_the_version_is_that_of_cann_and_not_of_a_package_in_it(
    file: str, text: str, version: tuple[int, int] | None, tmp_path: Path
) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text)
    assert Cann(tmp_path).version == version


@pytest.mark.parametrize("folder", ["cann-9.0.0", "ascend-toolkit/9.0.RC1"])
def test_without_a_file_the_name_of_the_folder_says_the_version(folder: str, tmp_path: Path) -> None:
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "latest").symlink_to(tmp_path / folder)
    assert Cann(tmp_path / "latest").version == (9, 0)


def test_the_folder_that_the_environment_names_is_the_only_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path))
    found = installed()
    assert found is not None and found.home == tmp_path
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path / "missing"))
    assert installed() is None


def test_tools_are_found_in_the_folders_of_each_release(tmp_path: Path) -> None:
    for folder in ("compiler/ccec_compiler/bin", "tools/bisheng_compiler/bin", f"{machine()}-linux/bin"):
        tool = tmp_path / folder.replace("/", "-") / folder / "bisheng"
        tool.parent.mkdir(parents=True)
        tool.write_text("#!/bin/sh\n")
        tool.chmod(0o755)
        assert Cann(tmp_path / folder.replace("/", "-")).tool("bisheng") == tool
