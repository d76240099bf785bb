"""How closely a kernel's numbers are determined by its source: the roundings that may go either way, in numbers.

A half step is the largest relative error of one rounding to nearest: 2**-24 for f32, 2**-11 for f16, 2**-8 for bf16, 2**-4 for
f8e4m3, 2**-3 for f8e5m2. A schedule may compute an operation by another sequence than the source names (`a / b` as
`a * (1 / b)`), whose results are some half steps apart: `apart` in the table of operations. Rules refer to these numbers
(`:within (of "div")`), and `tests/rules/test_laws.py` holds them to it.
"""

from __future__ import annotations

from math import sqrt

from tile_eg.ops.elementwise import BINARY, UNARY, Binary, Unary

HALF_STEP = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8, "float8_e4m3fn": 2.0**-4, "float8_e5m2": 2.0**-3}
SMALLEST_HALF_STEP = {
    "float32": 2.0**-150, "float16": 2.0**-25, "bfloat16": 2.0**-134, "float8_e4m3fn": 2.0**-10, "float8_e5m2": 2.0**-17,
}  # fmt: skip
"""The largest error of one rounding to a subnormal number."""
LARGEST = {
    "float32": (2 - 2.0**-23) * 2.0**127, "float16": 65504.0, "bfloat16": (2 - 2.0**-7) * 2.0**127, "float8_e4m3fn": 448.0,
    "float8_e5m2": 57344.0,
}  # fmt: skip

OPERATIONS: tuple[Unary | Binary, ...] = (*UNARY.values(), *BINARY.values())
HALF_STEPS = {op.name: op.apart[0] for op in OPERATIONS if op.apart != (1, 0)}
"""Half steps of the result's type by which the ways to compute an operation differ; 1 for what is not named."""
HALF_STEPS_OF_ONE = {op.name: op.apart[1] for op in OPERATIONS if op.apart[1]}
"""And so many of the number 1, whatever the result."""
FUNCTION_HALF_STEPS = 8
"""Half steps of f32 by which NumPy's exp and ln may be off beside their rounding (its documentation: below 4 units in the last
place). The simulator's are the nearest number."""

TURNS = 2.0**16
"""The largest number whose sine and cosine are computed: beyond it the nearest multiple of pi is no sure number of f32."""

CONFIDENCE = 4.0
"""n independent errors of at most e each add up to less than CONFIDENCE * sqrt(n) * e, or to n * e if that is less. Of errors
that are uniform within their bounds these are 6.9 standard deviations; of any others the odds are 1500 to 1 (Hoeffding's
inequality; N. Higham and T. Mary, A New Approach to Probabilistic Rounding Error Analysis, SIAM J. Sci. Comput. 41, 2019)."""
SIDES = 2
"""The reference and the kernel may each be as far from the exact result as the roundings allow, and on opposite sides."""

SCALE_BITS = 10
"""Bits of mantissa that the fixpipe holds of what it multiplies by on the way to or from whole numbers; the rest is cut off."""


def sum_half_steps(n: int) -> float:
    """Half steps of f32, of the sum of magnitudes, by which a sum of n numbers in any order is off; none for one number."""
    return min(n - 1.0, CONFIDENCE * sqrt(n))
