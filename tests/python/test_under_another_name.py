"""Imports redirected from another package's name to this one: the compiler still finds its own files."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import importlib, importlib.abc, importlib.util, sys

class Redirect(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, self) if name.split(".")[0] == "tilelang" else None
    def create_module(self, spec):
        return importlib.import_module("tile_eg" + spec.name[len("tilelang"):])
    def exec_module(self, module):
        pass

sys.meta_path.insert(0, Redirect())
import tilelang
from tile_eg.frontend.text.syntax import parser
parser()
"""


@pytest.mark.slow
def test_the_grammar_is_found() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, env={"TILE_EG_NO_CACHE": "1"})
    assert done.returncode == 0, done.stderr
