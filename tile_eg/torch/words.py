"""What torch's operators are in the words of `.tile` kernels about whole tensors.

Each entry gives the text of one operator's value; a text that a kernel cannot have is refused with a reason, and the operator is
left to torch.
"""

from __future__ import annotations

from math import prod, sqrt
from typing import Any

from tile_eg.ops.elementwise import COMPARE, UNARY
from tile_eg.torch.parts import GATHERS, JOINS, MOVED, PARTS
from tile_eg.torch.word import Word, Writer, arguments, name_of, number, refuse

# ---- element by element ------------------------------------------------------------------------------------------------------


def _of_one(form: str) -> Word:
    def word(w: Writer, n: Any) -> str:
        if len(n.args) != 1 or n.kwargs:
            raise refuse(f"{n.target} with more than its operand")
        return form.format(x=w.text(n.args[0]))

    return word


def _of_two(form: str) -> Word:
    def word(w: Writer, n: Any) -> str:
        given = arguments(n)
        if given.get("alpha", 1) != 1 or given.get("rounding_mode"):
            raise refuse(f"{n.target} with alpha or a rounding mode")
        return form.format(x=w.text(n.args[0]), y=w.text(n.args[1]))

    return word


def _gelu(w: Writer, n: Any) -> str:
    x = w.text(n.args[0])
    if arguments(n)["approximate"] == "tanh":
        return f"0.5 * {x} * (1 + tanh({sqrt(2 / 3.141592653589793)!r} * ({x} + 0.044715 * {x} * {x} * {x})))"
    return f"0.5 * {x} * (1 + erf({x} * {sqrt(0.5)!r}))"


def _clamp(w: Writer, n: Any) -> str:
    given, text = arguments(n), w.text(n.args[0])
    if given.get("min") is not None:
        text = f"maximum({text}, {w.text(given['min'])})"
    return f"minimum({text}, {w.text(given['max'])})" if given.get("max") is not None else text


def _where(w: Writer, n: Any) -> str:
    condition, x, y = (w.text(a) for a in n.args)
    return f"where({condition}, {x}, {y})"


def _cast(w: Writer, n: Any) -> str:
    return f"{w.dtype(n)}({w.text(n.args[0])})"


# ---- over axes ---------------------------------------------------------------------------------------------------------------


def _over(function: str) -> Word:
    def word(w: Writer, n: Any) -> str:
        given = arguments(n)
        return _reduced(w, function, w.text(n.args[0]), n.args[0], given.get("dim"), given.get("keepdim", False))

    return word


def _reduced(w: Writer, function: str, text: str, of: Any, dims: Any, keep: bool) -> str:
    rank = len(w.shape(of))
    if not rank:
        return text
    axes = range(rank) if dims is None or dims == [] else [dims] if isinstance(dims, int) else dims
    over = sorted(a % rank for a in axes)
    if len(over) == rank and not keep:
        return f"{function}({text})"
    return f"{function}({text}, axis={over[0] if len(over) == 1 else tuple(over)}, keepdims={int(keep)})"


def _variance(form: str) -> Word:
    def word(w: Writer, n: Any) -> str:
        given, x = arguments(n), n.args[0]
        centred = w.named(f"{w.text(x)} - {_reduced(w, 'mean', w.text(x), x, given['dim'], True)}")
        squares = _reduced(w, "sum", f"{centred} * {centred}", x, given["dim"], given["keepdim"])
        left = _count(w, x, given["dim"]) - (1 if given["correction"] is None else given["correction"])
        return form.format(f"{squares} / {number(max(left, 0))}")

    return word


def _count(w: Writer, x: Any, dims: Any) -> int:
    """How many elements are reduced to one."""
    sizes = w.shape(x)
    if not all(s.isdigit() for s in sizes):
        raise refuse("the variance along an axis whose size is open")
    return prod(int(s) for a, s in enumerate(sizes) if not dims or a in {d % len(sizes) for d in dims})


def _extreme(function: str) -> Word:
    def word(w: Writer, n: Any) -> str:
        if len(n.args) != 1:
            raise refuse("the places of extremes")
        return _reduced(w, function, w.text(n.args[0]), n.args[0], None, False)

    return word


def _along(function: str) -> Word:
    def word(w: Writer, n: Any) -> str:
        return f"{function}({w.text(n.args[0])}, axis={n.args[1] % len(w.shape(n))})"

    return word


def _softmax(function: str) -> Word:
    def word(w: Writer, n: Any) -> str:
        x, dim, _ = n.args
        return f"{function}({w.text(x)}, axis={dim % len(w.shape(x))})"

    return word


def _batch_norm(w: Writer, n: Any) -> tuple[str, str, str]:
    """That of a model which is evaluated: each channel has its mean and variance."""
    x, scale, shift, mean, variance, _, epsilon = n.args
    over = ", ".join([":", *["None"] * (len(w.shape(x)) - 2)])
    of = lambda v: f"{w.text(v)}[{over}]"  # noqa: E731
    text = f"({w.text(x)} - {of(mean)}) / sqrt({of(variance)} + {number(epsilon)})"
    scaled = text + (f" * {of(scale)}" if scale is not None else "")
    return scaled + (f" + {of(shift)}" if shift is not None else ""), "0", "0"


def _normed(w: Writer, rows: str, epsilon: Any) -> tuple[str, str, str]:
    """Rows less their means, over their deviations; these means; and one over these deviations."""
    mean = w.named(f"mean({rows}, axis=-1, keepdims=1)")
    centred = w.named(f"{rows} - {mean}")
    inverse = w.named(f"1 / sqrt(mean({centred} * {centred}, axis=-1, keepdims=1) + {number(epsilon)})")
    return f"{centred} * {inverse}", mean, inverse


def _layer_norm(w: Writer, n: Any) -> tuple[str, str, str]:
    x, normalized, scale, shift, epsilon = n.args
    if len(normalized) != 1:
        raise refuse("a norm over several axes")
    text, mean, inverse = _normed(w, w.text(x), epsilon)
    scaled = text + (f" * {w.text(scale)}" if scale is not None else "")
    return scaled + (f" + {w.text(shift)}" if shift is not None else ""), mean, inverse


def _group_norm(w: Writer, n: Any) -> tuple[str, str, str]:
    """The channels of a group, with all that lies under them, are one row."""
    x, scale, shift, _, channels, _, groups, epsilon = n.args
    batch, *sizes = w.shape(n)
    row = " * ".join([str(channels // groups), *sizes[1:]])
    normed, mean, inverse = _normed(w, w.named(f"reshape({w.text(x)}, {batch}, {groups}, {row})"), epsilon)
    over = ", ".join([":", *["None"] * len(sizes[1:])])
    text = f"reshape({normed}, {', '.join([batch, *sizes])})" + (f" * {w.text(scale)}[{over}]" if scale is not None else "")
    given = text + (f" + {w.text(shift)}[{over}]" if shift is not None else "")
    return given, f"reshape({mean}, {batch}, {groups})", f"reshape({inverse}, {batch}, {groups})"


# ---- products ----------------------------------------------------------------------------------------------------------------


def _product(w: Writer, n: Any) -> str:
    return f"{w.text(n.args[0])} @ {w.text(n.args[1])}"


def _product_and(w: Writer, n: Any) -> str:
    given = arguments(n)
    if given["alpha"] != 1 or given["beta"] != 1:
        raise refuse("a product with alpha or beta")
    return f"{w.text(n.args[1])} @ {w.text(n.args[2])} + {w.text(n.args[0])}"


def _attention(w: Writer, n: Any) -> tuple[str, str]:
    given = arguments(n)
    q, k, v = n.args[:3]
    if given["dropout_p"]:
        raise refuse("attention with dropout")
    queries, width = w.shape(q)[-2:]
    scale = number(given["scale"]) if given.get("scale") is not None else f"(1 / sqrt({width}))"
    scores = f"{w.text(q)} @ {w.text(k)}.mT * {scale}"
    if given.get("attn_mask") is not None:
        scores += f" + {w.text(given['attn_mask'])}"
    if given["is_causal"]:
        scores = f"where(arange({queries})[:, None] >= arange({w.shape(k)[-2]}), {scores}, -inf)"
    return f"softmax({scores}) @ {w.text(v)}", f"logsumexp({scores})"


# ---- axes --------------------------------------------------------------------------------------------------------------------


def _permuted(w: Writer, n: Any) -> str:
    order = [a % len(n.args[1]) for a in n.args[1]]
    return f"transpose({w.text(n.args[0])}, {', '.join(map(str, order))})"


def _exchanged(w: Writer, n: Any) -> str:
    rank = len(w.shape(n.args[0]))
    return f"swapaxes({w.text(n.args[0])}, {n.args[1] % rank}, {n.args[2] % rank})"


def _turned(w: Writer, n: Any) -> str:
    return f"{w.text(n.args[0])}.T" if len(w.shape(n)) == 2 else w.text(n.args[0])


def _reshaped(w: Writer, n: Any) -> str:
    return f"reshape({w.text(n.args[0])}, {', '.join(w.shape(n)) or '1'})"


def _expanded(w: Writer, n: Any) -> str:
    before, after = w.shape(n.args[0]), w.shape(n)
    return w.text(n.args[0]) if before == after else f"broadcast_to({w.text(n.args[0])}, {', '.join(after)})"


def _with_axis(w: Writer, n: Any) -> str:
    rank = len(w.shape(n))
    return f"{w.text(n.args[0])}[{', '.join('None' if a == n.args[1] % rank else ':' for a in range(rank))}]"


def _same(w: Writer, n: Any) -> str:
    return w.text(n.args[0])


# ---- what has no operand -----------------------------------------------------------------------------------------------------


def _positions(w: Writer, n: Any) -> str:
    given = arguments(n)
    if given.get("start", 0) != 0 or given.get("step", 1) != 1:
        raise refuse("positions that do not begin at 0")
    return f"arange({w.shape(n)[0]})"


def _constant(w: Writer, n: Any) -> str:
    value = arguments(n)["s" if name_of(n) == "scalar_tensor" else "fill_value"]
    return {True: "(0 < 1)", False: "(1 < 0)"}[value] if isinstance(value, bool) else number(value)


def _one_of(w: Writer, n: Any) -> str:
    return w.text(n)


COMPARED = {op.name: op.sign for op in COMPARE.values()}
JOINED = {"logical_and": "&", "bitwise_and": "&", "logical_or": "|", "bitwise_or": "|"}
POINTS: dict[str, Word] = {
    **{name: _of_one(f"{name}({{x}})") for op in UNARY.values() for name in op.tile}, "silu": _of_one("silu({x})"),
    **{name: _of_one(f"{name}({{x}})") for name in ("log2", "exp2", "square")},
    "neg": _of_one("(-{x})"),
    "add": _of_two("({x} + {y})"), "sub": _of_two("({x} - {y})"), "mul": _of_two("({x} * {y})"), "div": _of_two("({x} / {y})"),
    "maximum": _of_two("maximum({x}, {y})"), "minimum": _of_two("minimum({x}, {y})"), "pow": _of_two("({x} ** {y})"),
    "rsub": _of_two("({y} - {x})"), "gelu": _gelu, "clamp": _clamp, "clamp_min": _of_two("maximum({x}, {y})"),
    "clamp_max": _of_two("minimum({x}, {y})"), "where": _where,
    **{name: _of_two(f"({{x}} {sign} {{y}})") for name, sign in (COMPARED | JOINED).items()}, "logical_not": _of_one("(~{x})"),
    "bitwise_not": _of_one("(~{x})"), "_to_copy": _cast, "convert_element_type": _cast,
    "_native_batch_norm_legit_no_training": _batch_norm, **JOINS, **MOVED, **GATHERS,
}  # fmt: skip
OVER_AXES: dict[str, Word] = {
    "sum": _over("sum"), "mean": _over("mean"), "amax": _over("amax"), "amin": _over("amin"), "logsumexp": _over("logsumexp"),
    "_softmax": _softmax("softmax"), "_log_softmax": _softmax("log_softmax"), "native_layer_norm": _layer_norm,
    "native_group_norm": _group_norm, "cumsum": _along("cumsum"), "cumprod": _along("cumprod"),
    "max": _extreme("amax"), "min": _extreme("amin"), "var": _variance("{}"), "std": _variance("sqrt({})"),
}  # fmt: skip
PRODUCTS: dict[str, Word] = {
    "mm": _product, "bmm": _product, "addmm": _product_and, "baddbmm": _product_and,
    "_scaled_dot_product_flash_attention_for_cpu": _attention,
}  # fmt: skip
AXES: dict[str, Word] = {
    "view": _reshaped, "_unsafe_view": _reshaped, "reshape": _reshaped, "permute": _permuted, "transpose": _exchanged,
    "t": _turned, "expand": _expanded, **PARTS, "unsqueeze": _with_axis, "squeeze": _reshaped,
    "clone": _same, "alias": _same, "detach": _same, "contiguous": _same,
}  # fmt: skip
VIEWS = frozenset(AXES) - {"clone", "contiguous"}
"""What torch does without a copy."""
CONSTANTS: dict[str, Word] = {
    "arange": _positions, "full": _constant, "full_like": _constant, "scalar_tensor": _constant,
}  # fmt: skip
DECOMPOSED = (
    "gelu_backward", "silu_backward", "tanh_backward", "sigmoid_backward", "threshold_backward", "_softmax_backward_data",
    "_log_softmax_backward_data", "native_layer_norm_backward", "_fused_rms_norm", "_fused_rms_norm_backward", "masked_fill",
    "triu", "tril", "leaky_relu", "leaky_relu_backward", "hardtanh", "hardtanh_backward", "hardswish", "hardswish_backward",
    "hardsigmoid", "hardsigmoid_backward", "elu", "elu_backward", "mish", "softplus", "softplus_backward", "glu", "glu_backward",
    "addcmul", "addcdiv", "lerp", "mse_loss", "mse_loss_backward", "ones", "zeros", "ones_like", "zeros_like", "new_ones",
    "new_zeros", "new_full", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "linalg_vector_norm", "norm", "log_sigmoid_forward", "log_sigmoid_backward",
)  # fmt: skip
"""Operators that torch itself says in others, which have words."""
CONDITIONS = {*COMPARED, *JOINED, "logical_not", "bitwise_not"}
"""What gives conditions: no tensor that a kernel gives holds them, so that they are computed where they are used."""
WORDS: dict[str, Word] = {**POINTS, **OVER_AXES, **PRODUCTS, **AXES, **CONSTANTS, "getitem": _one_of}


def decompositions() -> dict[Any, Any]:
    """Torch's own decompositions of the operators in `DECOMPOSED`, as far as this torch has them."""
    from torch import ops
    from torch._decomp import get_decompositions

    found: dict[Any, Any] = get_decompositions([getattr(ops.aten, n) for n in DECOMPOSED if hasattr(ops.aten, n)])
    return found


def is_free(node: Any) -> bool:
    """Whether a value is nothing to store: another view of one, a condition, a constant, one of several values, a position."""
    name = name_of(node)
    return name in AXES or name in CONDITIONS or name in CONSTANTS or name == "getitem" or _is_position(node, name)


def _is_position(node: Any, name: str) -> bool:
    """Whether a value is a whole number, computed of others: masks by position are."""
    return name in ("add", "sub", "mul", "rsub") and not getattr(node.meta.get("val"), "is_floating_point", lambda: True)()


def is_size(node: Any) -> bool:
    """Whether a value is a number of torch's own: it may give a view its sizes, and is refused as an operand."""
    return type(node.meta.get("val")).__name__ in ("int", "SymInt")
