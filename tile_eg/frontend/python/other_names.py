"""What NumPy, torch and TileLang call the functions of tensors."""

from __future__ import annotations

from typing import Any

SAME = {
    "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "negative": "neg", "absolute": "abs",
    "power": "pow", "invert": "not", "bitwise_and": "and",
    "bitwise_or": "or", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le", "equal": "eq",
    "not_equal": "ne", "permute_dims": "transpose", "if_then_else": "where", "Select": "where", "abs_": "abs",
    "Min": "min", "Max": "max", "bitwise_not": "not", "bitwise_xor": "xor", "bitwise_lshift": "shl", "bitwise_rshift": "shr",
    "And": "logical_and", "Or": "logical_or", "Not": "logical_not", "concat": "concatenate", "cat": "concatenate",
    "unsqueeze": "expand_dims", "permute": "transpose", "repeat_interleave": "repeat", "fabs": "abs",
    "ravel": "flatten", "floor_divide": "floordiv", "remainder": "mod", "left_shift": "shl", "right_shift": "shr", "fix": "trunc",
    "arctan2": "atan2", "float_power": "pow", "deg2rad": "radians", "rad2deg": "degrees",
}  # fmt: skip
"""NumPy's and TileLang's other names of operations."""
OF_AXES = {"max": "amax", "min": "amin"}
"""NumPy's functions of axes whose names are those of operations on two values here."""


OF_UFUNCS = {
    "add.reduce": "sum", "multiply.reduce": "prod", "maximum.reduce": "amax", "minimum.reduce": "amin",
    "logical_and.reduce": "all", "logical_or.reduce": "any", "add.accumulate": "cumsum", "multiply.accumulate": "cumprod",
}  # fmt: skip
"""What methods of NumPy's elementwise functions are."""


def of_numpy(function: Any) -> str:
    """The name by which a function of NumPy's is known here."""
    return OF_AXES.get(function.__name__, function.__name__)
