"""What kernels become in one process after the other, and in processes that did nothing else before."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from multiprocessing import get_context
from pathlib import Path
from random import Random

from tests.fuzz.generator import random_kernel
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.search.compiler import lower

ROOT = Path(__file__).parents[1]


def named(name: str) -> str:
    """The text of a kernel: an example by its name, or a random kernel by its seed."""
    return random_kernel(int(name)) if name.isdigit() else (ROOT / "examples" / f"{name}.tile").read_text()


def emitted(name: str) -> str:
    """A digest of all that a kernel becomes, or of the error that it gets."""
    try:
        made = lower(load_text(named(name), f"{name}.tile").instantiate({}))
        told = "\n".join((made.source, made.host, str(made.program)))
    except TileError as error:
        told = str(error)
    return hashlib.sha256(told.encode()).hexdigest()


def alone(names: Iterable[str]) -> dict[str, str]:
    """Each kernel in a process that compiled nothing before: one that has only been started and has imported the compiler."""
    with get_context("fork").Pool(1, maxtasksperchild=1) as processes:
        return dict(zip(names, processes.map(emitted, names, chunksize=1), strict=True))


def behind(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The kernels one behind the other, in this process."""
    return ((name, emitted(name)) for name in names)


def orders(names: list[str], count: int) -> list[str]:
    """The kernels in so many orders, one order behind the other: as they are, backwards, and shuffled."""
    found = [*names, *reversed(names)]
    for seed in range(count - 2):
        found += Random(seed).sample(names, len(names))
    return found


def in_process(how: str, names: list[str], seed: int) -> list[tuple[str, str]]:
    """`alone` or `behind` in a process of its own, which hashes strings by `seed`."""
    command = [sys.executable, "-m", "tests.orders", how, *names]
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    return [(name, digest) for name, digest in json.loads(done.stdout)]


def differing(names: list[str], count: int) -> list[str]:
    """The kernels that become something else behind others, in any of so many orders, than alone."""
    fresh = dict(in_process("alone", names, 1))
    return sorted({name for name, digest in in_process("behind", orders(names, count), 4242) if digest != fresh[name]})


if __name__ == "__main__":
    kind, *asked = sys.argv[1:]
    print(json.dumps(list(alone(asked).items() if kind == "alone" else behind(asked))))
