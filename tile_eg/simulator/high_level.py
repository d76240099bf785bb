"""The high-level API of Ascend C: which of it is not simulated, and what does the same work."""

from __future__ import annotations

import re

API = "the high-level API (Matmul objects, tiling, ready-made layers)"

_LINES = "the reductions of rows (WholeReduceMax, WholeReduceSum), Brcb, and elementwise instructions"
_INTEGERS = "Cast with a rounding mode"
_BITS = "And, Or and Not of 16-bit elements"
_SCALES = "Cast, Muls and Adds, or Mul and Add with tensors"

_WORK_OF = {
    _LINES: "SoftMax SimpleSoftMax LogSoftMax SoftmaxFlash SoftmaxFlashV2 SoftmaxFlashV3 SoftmaxGrad SoftmaxGradFront "
    "AdjustSoftMaxRes LayerNorm LayerNormGrad LayerNormGradBeta RmsNorm DeepNorm BatchNorm GroupNorm Normalize WelfordUpdate "
    "WelfordFinalize",
    "Exp, Ln, Adds and Div of the basic API": "GeGLU ReGlu Acosh Asinh Atanh Cosh Sinh",
    "Exp of Mul and Ln, for positive bases": "Power",
    "Erf, and Adds of its negative": "Erfc",
    "a polynomial of Mul and Adds": "Acos Asin Atan Cos Sin SinCos Tan Digamma Lgamma Hypot",
    "ClampMax and ClampMin": "Clamp",
    _INTEGERS: "Ceil Floor Rint Round Frac Fmod Trunc",
    "CompareScalar and Select": "Sign IsFinite IsInf IsNan Where DropOut SelectWithBytesMask",
    _BITS: "Xor BitwiseAnd BitwiseNot BitwiseOr BitwiseXor LogicalAnd LogicalAnds LogicalNot LogicalOr LogicalOrs LogicalXor",
    "Mul and Add": "Fma",
    "Add of one row after another": "CumSum",
    "Sort, with Concat and Extract": "TopK",
    "CreateVecIndex": "Arange ArithProgression",
    "DataCopyPad, on the way from GM and to it": "Pad UnPad",
    "TransDataTo5HD and Transpose": "TransData ConfusionTranspose",
    "WholeReduceSum, or ReduceSum of each row": "Sum Mean ReduceMean ReduceProd ReduceXorSum ReduceAll ReduceAny",
    _SCALES: "AscendQuant AscendDequant AscendAntiQuant Quantize Dequantize AntiQuantize",
    "DataCopy, LoadData, Mmad and Fixpipe": "Matmul MatmulImpl REGIST_MATMUL_OBJ MatmulApiTiling MultiCoreMatmulTiling",
    "numbers drawn on the host": "PhiloxRandom",
}
"""What does the work of functions of the high-level API, which are not simulated: by their names."""

INSTEAD = {name: work for work, names in _WORK_OF.items() for name in names.split()}

_OF_A_FUNCTION = re.compile(
    r"(?:Get)?([A-Z]\w*?)(?:(?:Max|Min|MaxMin)TmpSize|TmpBufferFactorSize|(?:Max|Min|MaxMin)?Tiling\w*|ShapeInfo|Config)"
)


def function_of(name: str) -> str:
    """The function that is not simulated and that this name is of: itself, its tiling, its sizes (empty: of none)."""
    if name in INSTEAD:
        return name
    part = _OF_A_FUNCTION.fullmatch(name)
    wanted = part[1].lower() if part else ""
    return next((function for function in INSTEAD if function.lower() == wanted), "")
