"""Kernels with one instruction that computes a little less, or something else: what the comparison of numbers must see.

Every example is compiled once, with all of its mutants in one text: an instruction that has mutants becomes a choice by a number
that the kernel finds in a tensor of its own. A mutant is *caught* when, on one of the sets of inputs that a run draws, an element
of an output is farther from what the kernel means than roundings allow. Findings do not count here.

    python -m tests.report.number_mutants [EXAMPLE ..]      prints every mutant, and what became of it
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from tile_eg.emit.host import launch_blocks
from tile_eg.emit.names import kernel_symbol
from tile_eg.frontend.text import load_text
from tile_eg.inputs import USUAL, drawn_sets
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ir.reference_bounds import Expected
from tile_eg.report.compare import compare
from tile_eg.search.compiler import Lowered, expected, lower
from tile_eg.simulator.findings import SimulatorError
from tile_eg.simulator.run import simulate

EXAMPLES = Path(__file__).parents[2] / "examples"
GEMM = {"M": 32, "N": 64, "K": 192, "BM": 32, "BN": 64, "BK": 32}
ATTENTION = {"H": 1, "S": 128, "D": 32, "BM": 64, "BN": 32}
SIZES: dict[str, dict[str, int]] = {
    "vector_add": {"M": 32, "N": 64, "BM": 16, "BN": 64},
    "gelu_mul": {"M": 32, "N": 64, "BM": 16, "BN": 64},
    "softmax": {"M": 32, "N": 128, "BM": 16},
    "online_softmax": {"M": 32, "N": 256, "BM": 16, "BN": 64},
    "rms_norm": {"M": 32, "N": 128},
    "layer_norm": {"M": 32, "N": 128},
    "gemm": GEMM,
    "gemm_transposed": GEMM,
    "gemm_int8": {**GEMM, "BK": 64},
    "gemm_exp": {"M": 32, "N": 64, "K": 32, "BM": 32, "BN": 64},
    "matmul_add": {"M": 32, "N": 32, "K": 128, "BM": 32, "BN": 32, "BK": 32},
    "flash_attention": ATTENTION,
    "flash_attention_causal": ATTENTION,
    "flash_attention_rows": ATTENTION,
}
VECTOR = (
    "Add|Adds|Sub|Mul|Muls|MulAddDst|Axpy|Div|Exp|Ln|Sqrt|Max|Maxs|Min|Mins|Relu|Abs|Cast|Duplicate|Select|"
    r"(?:Block|Whole)Reduce\w+"
)
STATEMENT = re.compile(rf"^(?P<indent> +)AscendC::(?P<name>{VECTOR}|Mmad)\((?P<args>.*?)\);", re.M | re.S)
CHANGED = "changed"  # the tensor with the number of the mutant that is to run


@dataclass(frozen=True)
class Mutant:
    """`line` is that of the emitted text; `before` and `after` are the statement."""

    kind: str
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.kind}, line {self.line}: {' '.join(self.after.split())}"


@dataclass(frozen=True)
class Statement:
    name: str
    args: list[str]

    def text(self, name: str = "", **changed: str) -> str:
        args = [changed.get(f"_{i}", a) for i, a in enumerate(self.args)]
        return f"AscendC::{name or self.name}({', '.join(args)});"

    def mutants(self) -> Iterator[tuple[str, str]]:
        if self.name == "Mmad":
            yield "one product less", self.text(_3=_one_less_in_params(self.args[3]))
            return
        if "Max" in self.name:
            yield "max to min", self.text(self.name.replace("Max", "Min"))
        lanes = self.lanes()
        yield "63 of 64 lanes", self.text(**{f"_{lanes}": f"({self.args[lanes]}) - 1"})

    def lanes(self) -> int:
        """Which argument says how many elements, or how many in a round."""
        if self.name.startswith("BlockReduce"):
            return 3
        if self.name.startswith("WholeReduce"):
            return 2
        return len(self.args) - (3 if "Params" in self.args[-1] else 1)


def _one_less_in_params(params: str) -> str:
    head, _, inner = params.partition("(")
    m, n, k, *rest = arguments(inner.rstrip()[:-1])
    return f"{head}({', '.join([m, n, f'({k}) - 1', *rest])})"


def arguments(text: str) -> list[str]:
    """The arguments of a call, by the commas outside of brackets."""
    parts, depth = [""], 0
    for c in re.sub(r"//[^\n]*", "", text):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts]


@dataclass(frozen=True)
class Subject:
    """An example at a small size, the text with all its mutants, and the sets of inputs with what they should give."""

    lowered: Lowered
    text: str
    mutants: list[Mutant]
    sets: Mapping[str, tuple[Mapping[str, np.ndarray], Mapping[str, Expected]]] = field(default_factory=dict)

    def run(self, mutant: int, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The outputs; of mutant 0, the kernel unchanged, as of any other number that none has."""
        p = self.lowered.program
        arrays = [inputs[t.name] if not t.output else np.zeros(t.shape, numpy_dtype(t.dtype)) for t in p.tensors]
        outputs = [i for i, t in enumerate(p.tensors) if t.output]
        done = simulate(
            self.text, kernel_symbol(p), [*arrays, np.array([mutant], np.int32)], kernel_type=p.kernel_type,
            launch=launch_blocks(p), workspace=p.workspace, outputs=outputs,
        )  # fmt: skip
        return {p.tensors[i].name: a for i, a in zip(outputs, done.outputs, strict=True)}

    def caught_by(self, mutant: int) -> str:
        """The first set on which the numbers are wrong, or nothing."""
        for name, (inputs, want) in self.sets.items():
            try:
                got = self.run(mutant, inputs)
            except SimulatorError:
                return name
            if not all(c.good for c in compare(got, want)):
                return name
        return ""


@cache
def subject(name: str) -> Subject:
    file = EXAMPLES / f"{name}.tile"
    kernel = load_text(file.read_text(), file.name).instantiate(SIZES[name])
    lowered = lower(kernel)
    text, mutants = with_mutants(str(lowered.source), kernel_symbol(lowered.program))
    sets = {d.name: (d.arrays, expected(kernel, d.arrays)) for d in drawn_sets(kernel, USUAL, seed=0)}
    return Subject(lowered, text, mutants, sets)


def with_mutants(source: str, symbol: str) -> tuple[str, list[Mutant]]:
    """The text in which statements are chosen by number, and the mutants from 1 on."""
    found: list[Mutant] = []

    def chosen(m: re.Match[str]) -> str:
        statement = Statement(m["name"], arguments(m["args"]))
        line = source.count("\n", 0, m.start()) + 1
        text = ""
        for kind, after in statement.mutants():
            found.append(Mutant(kind, line, m.group(0).strip(), after))
            text += f"if (*(int32_t*){CHANGED} == {len(found)}) {{ {after} }} else "
        return f"{m['indent']}{{ {text}{{ {statement.text()} }} }}"

    text = STATEMENT.sub(chosen, source)
    return re.sub(rf"(void {symbol}\(.*?), GM_ADDR workspace\)", rf"\1, GM_ADDR {CHANGED}, GM_ADDR workspace)", text), found


def fates(name: str) -> dict[Mutant, str]:
    s = subject(name)
    return {m: s.caught_by(i) for i, m in enumerate(s.mutants, 1)}


if __name__ == "__main__":
    for example in sys.argv[1:] or SIZES:
        for mutant, caught in fates(example).items():
            print(f"{example:24}{caught or 'NOT CAUGHT':12}{mutant}", flush=True)
