"""One kernel for all forms of a family of vector instructions: it reads the operation, the form, mask and strides from GM."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tests.simulator.kernels import gm, kernel, run_vector

ELEMENTS = 8192  # of each operand
FORMS = ("count", "lanes", "bits", "counter", "register", "counter register")
TYPES = {"half": np.float16, "float": np.float32, "int16_t": np.int16, "int32_t": np.int32}

READ = "int p[32]; for (int i = 0; i < 32; ++i) p[i] = gmP.GetValue(i);\nuint64_t bits[2];\n" + "".join(
    f"bits[{i}] = uint64_t(uint32_t(p[{3 + 2 * i}])) | uint64_t(uint32_t(p[{4 + 2 * i}])) << 32;\n" for i in range(2)
)


SET_REGISTER = """if (p[1] == 3 || p[1] == 5) SetMaskCount();
if (p[1] == 4) SetVectorMask<TYPE, MaskMode::NORMAL>(bits[1], bits[0]);
if (p[1] == 5) SetVectorMask<TYPE, MaskMode::COUNTER>(0, p[2]);"""


@dataclass(frozen=True)
class Form:
    """Which elements take part. `lanes` of `repeat` rounds, strides in 32-byte blocks: (destination, source, second source)."""

    kind: str = "count"
    lanes: int = 64
    bits: int = 0
    repeat: int = 1
    block: tuple[int, int, int] = (1, 1, 1)
    round: tuple[int, int, int] = (8, 8, 8)

    def words(self, operation: int) -> list[int]:
        masks = [self.bits >> (32 * i) & 0xFFFFFFFF for i in range(4)]
        return [operation, FORMS.index(self.kind), self.lanes, *masks, self.repeat, *self.block, *self.round]

    def elements(self, size: int, widths: tuple[int, ...] | None = None) -> list[np.ndarray]:
        """The elements at each operand, `size` bytes the widest element, `widths` bytes an element of each operand."""
        widths = widths or (size,) * 3
        if self.kind == "count":
            return [np.arange(self.lanes)] * len(widths)
        rounds, lane = np.divmod(self.active(256 // size), 256 // size)
        return [self.place(o, rounds, lane, 32 // width) for o, width in enumerate(widths)]

    def active(self, per_round: int) -> np.ndarray:
        """The lanes that take part, counted on from round to round."""
        if self.kind.startswith("counter"):
            return np.arange(self.lanes)
        chosen = [i for i in range(per_round) if (self.bits >> i & 1 if self.kind != "lanes" else i < self.lanes)]
        return np.concatenate([r * per_round + np.array(chosen, int) for r in range(self.repeat)] or [np.array([], int)])

    def place(self, operand: int, rounds: np.ndarray, lane: np.ndarray, block: int) -> np.ndarray:
        return (rounds * self.round[operand] + lane // block * self.block[operand]) * block + lane % block


@dataclass(frozen=True)
class Family:
    """Operations on the same operands: their names, and what every call of one has in common."""

    calls: tuple[str, ...]
    operands: str  # "dst, a, b"
    dtype: str
    params: str  # the repeat parameters built from p[8..13]
    masked: str = "SET"  # template arguments of the form with a mask
    extra: str = ""
    dst_type: str = field(default="")

    def source(self) -> str:
        out = self.dst_type or self.dtype
        cases = "".join(self._case(i, name) for i, name in enumerate(self.calls))
        tensors = f"LocalTensor<{out}> dst(TPosition::VECCALC, 0, {ELEMENTS}); "
        tensors += "".join(
            f"LocalTensor<{self.dtype}> {t}(TPosition::VECCALC, {65536 * (i + 1)}, {ELEMENTS}); " for i, t in enumerate("ab")
        )
        body = f"""{gm("A B", self.dtype, ELEMENTS)} {gm("C", out, ELEMENTS)} {gm("P", "int32_t", 32)}
{READ} {tensors}
float scalar; __builtin_memcpy(&scalar, &p[14], 4); {self.extra}
DataCopy(dst, gmC, {ELEMENTS}); DataCopy(a, gmA, {ELEMENTS}); DataCopy(b, gmB, {ELEMENTS}); ORDER(MTE2_V);
{SET_REGISTER.replace("TYPE", out)}
switch (p[0]) {{
{cases}}}
SetMaskNorm(); ResetMask();
ORDER(V_MTE3); DataCopy(gmC, dst, {ELEMENTS});
"""
        return kernel("A B P C", "AIV_ONLY", body)

    def _case(self, number: int, name: str) -> str:
        masked = [f"{name}({self.operands}, {mask}, p[7], {self.params});" for mask in ("p[2]", "bits")]
        register = name + "<" + self.masked.replace("SET", "false") + ">" + masked[0][len(name) :]
        count = f"{name}({self.operands}, p[2]);"
        return (
            f"case {number}: if (p[1] == 0) {{ {count} }} else if (p[1] == 2) {{ {masked[1]} }} "
            f"else if (p[1] >= 4) {{ {register} }} else {{ {masked[0]} }} break;\n"
        )

    def run(self, name: str, form: Form, a: np.ndarray, b: np.ndarray, before: np.ndarray, scalar: float = 0.0) -> np.ndarray:
        words = form.words(self.calls.index(name)) + [int(np.float32(scalar).view(np.int32))]
        p = np.array([*words, *[0] * (32 - len(words))], np.int64).astype(np.int32)
        run = run_vector(self.source(), a, b, p, before, inout=True)
        assert run.ok, run
        return run.outputs[0]


UNARY_PARAMS = "UnaryRepeatParams(p[8], p[9], p[11], p[12])"
BINARY_PARAMS = "BinaryRepeatParams(p[8], p[9], p[10], p[11], p[12], p[13])"
