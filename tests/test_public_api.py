"""`import tile_eg` is the front door: it opens at once, and everything promised stands behind it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tile_eg

HEAVY = ["egglog", "ortools", "numpy", "ml_dtypes", "lark", "typer", "rich", "torch"]


def loaded_after(statement: str) -> set[str]:
    """The top-level modules in a fresh interpreter after a statement."""
    code = f"{statement}\nimport sys\nprint(' '.join({{m.split('.')[0] for m in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.fixture(scope="module")
def after_import() -> set[str]:
    return loaded_after("import tile_eg")


@pytest.mark.parametrize("heavy", HEAVY)
def test_importing_the_package_does_not_load(heavy: str, after_import: set[str]) -> None:
    assert heavy not in after_import


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        tile_eg.no_such_name  # noqa: B018
