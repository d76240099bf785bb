"""A kernel as an operator of torch's: eager, under `torch.compile` and `torch.export`, with a gradient where one is given.

The operator calls the kernel, which runs where its tensors are: on the CPU in the simulator, on an NPU on the device.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tile_eg.errors import TileError
from tile_eg.jit.told import told
from tile_eg.torch.signature import REAL, TENSOR, WHOLE, Signature, signature_of

GRAD = "grad_"
_fragments: list[Any] = []  # torch forgets what a library registered once the library is gone


@told
def register(kernel: Any, name: str, *, backward: Any = None) -> Any:
    """Registers a kernel as the operator `name` ("mylib::gemm"), and gives it: `torch.ops.mylib.gemm`.

    `kernel` is what `tile_eg.load`, `tile_eg.jit` or `tile_eg.compile` give. It takes its arguments in order or by name,
    sizes that no tensor tells by keyword, and gives new tensors; tensors that the kernel writes are written in place.

    `backward` computes the gradient of the inputs that hold floats, in their order: a function, or a kernel, whose parameters are
    named after the kernel's tensors (inputs and outputs), `grad_` in front of an output's gradient: `lambda grad_C, A, B:
    (grad_C @ B.T, A.T @ grad_C)`. Without it, a call with a tensor that requires a gradient is a TileError.

    TileError where torch is not there, for a name that is none or is taken, and for a kernel that writes its arguments and is to
    have a gradient.
    """
    torch = _torch()
    signature = signature_of(kernel)
    space, _, own = name.partition("::")
    if not (space.isidentifier() and own.isidentifier()):
        raise TileError(f"an operator is called like mylib::{signature.name}, not {name!r}")
    if hasattr(getattr(torch.ops, space), own):
        raise TileError(f"there is an operator {name} already", help="give this one another name")
    if backward is not None and any(p.written for p in signature.parameters):
        written = ", ".join(p.name for p in signature.parameters if p.written)
        help = "give the tensors back (out_idx), instead of writing those that are passed"
        raise TileError(f"{signature.name} writes {written} in place, and torch has no gradient of that", help=help)
    gradient = _Gradient(signature, backward)
    gradient.check()
    _registered(torch, kernel, name, signature, gradient)
    return _operator(torch, name)


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise TileError("torch is not installed here", help="pip install tile_eg[torch]") from None
    return torch


def _registered(torch: Any, kernel: Any, name: str, signature: Signature, gradient: _Gradient) -> None:
    writes = [p.name for p in signature.parameters if p.written]

    def call(*args: Any, **sizes: Any) -> Any:
        given = {n: v for n, v in sizes.items() if v is not None}
        return _as_torch(kernel(*_plain(torch, args), **given))

    def shapes(*args: Any, **sizes: Any) -> Any:
        arguments = _bound(signature, args, sizes)
        device = next((v.device for v in arguments.values() if isinstance(v, torch.Tensor)), "cpu")
        made = [torch.empty(s, dtype=getattr(torch, t), device=device) for s, t in signature.given_back(arguments)]
        return made[0] if len(made) == 1 else tuple(made) if made else None

    operator = torch.library.custom_op(name, call, mutates_args=writes, schema=signature.schema(), device_types="cpu")
    operator.register_fake(shapes)
    space, _, own = name.partition("::")
    fragment = torch.library.Library(space, "FRAGMENT")
    fragment.impl(own, call, "PrivateUse1")
    _fragments.append(fragment)
    if not writes:
        operator.register_autograd(gradient.computed, setup_context=gradient.kept)
        return
    for key in ("AutogradCPU", "AutogradPrivateUse1"):
        fragment.impl(own, _checked(torch, name, signature, gradient), key)


def _checked(torch: Any, name: str, signature: Signature, gradient: _Gradient) -> Callable[..., Any]:
    """The operator that writes in place, where torch would lose a gradient without a word."""

    def checked(*args: Any, **sizes: Any) -> Any:
        if torch.is_grad_enabled():
            gradient.refuse(_bound(signature, args, sizes))
        with torch._C._AutoDispatchBelowAutograd():
            return _operator(torch, name)(*args, **sizes)

    return checked


def _operator(torch: Any, name: str) -> Any:
    space, _, own = name.partition("::")
    return getattr(getattr(torch.ops, space), own)


def _bound(signature: Signature, args: Sequence[Any], sizes: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by name."""
    return dict(zip((p.name for p in signature.parameters), args, strict=False)) | dict(sizes)


def _plain(torch: Any, args: Sequence[Any]) -> list[Any]:
    """The arguments without their histories: the operator's own rule says what the gradient is."""
    return [a.detach() if isinstance(a, torch.Tensor) else a for a in args]


def _as_torch(given: Any) -> Any:
    return tuple(given) if isinstance(given, list) else given


class _Gradient:
    """The rule of an operator's gradient, in the terms of torch's: what it keeps of a call, and what it computes."""

    def __init__(self, signature: Signature, backward: Any) -> None:
        self.signature, self.backward = signature, backward
        self.known = [*(p.name for p in signature.parameters), *signature.outputs, *(GRAD + n for n in signature.outputs)]
        self.wanted = self._names() if backward is not None else []

    def _names(self) -> list[str]:
        if not callable(self.backward):
            raise TileError(f"backward is a function or a kernel, not a {type(self.backward).__name__}")
        try:
            return [p.name for p in signature_of(self.backward).parameters if not p.optional]
        except TileError:
            return list(inspect.signature(self.backward).parameters)

    def check(self) -> None:
        """TileError for a parameter of the backward that is named after nothing."""
        for name in self.wanted:
            if name not in self.known:
                raise TileError(
                    f"the parameter {name} of backward is named after no tensor of {self.signature.name}",
                    help=f"it may have: {', '.join(self.known)}",
                )

    def refuse(self, arguments: Mapping[str, Any]) -> None:
        """TileError where a tensor requires a gradient, and there is no rule for it."""
        for name, value in arguments.items():
            if getattr(value, "requires_grad", False):
                help = f"register it with backward=..., pass {name}.detach(), or call it under torch.no_grad()"
                raise TileError(f"{name} requires a gradient, and {self.signature.name} has none", help=help)

    def kept(self, ctx: Any, inputs: Sequence[Any], output: Any, keyword_only_inputs: Mapping[str, Any] | None = None) -> None:
        arguments = _bound(self.signature, inputs, keyword_only_inputs or {})
        if self.backward is None:
            self.refuse(arguments)
        outputs: Sequence[Any] = output if isinstance(output, tuple | list) else [output]
        values = arguments | dict(zip(self.signature.outputs, outputs, strict=True))
        kinds = {p.name: p.kind for p in self.signature.parameters}
        tensors = [n for n in self.wanted if not n.startswith(GRAD) and kinds.get(n, TENSOR) == TENSOR]
        ctx.save_for_backward(*(values[n] for n in tensors))
        ctx.names, ctx.numbers = tensors, {n: values[n] for n in self.wanted if kinds.get(n) in (WHOLE, REAL)}
        ctx.floats = [isinstance(v, _torch().Tensor) and v.is_floating_point() for v in inputs]

    def computed(self, ctx: Any, *grads: Any) -> Any:
        values = dict(zip(ctx.names, ctx.saved_tensors, strict=True)) | ctx.numbers
        values |= {GRAD + n: g for n, g in zip(self.signature.outputs, grads, strict=True)}
        found = self.backward(*(values[n] for n in self.wanted))
        given = list(found) if isinstance(found, tuple | list) else [found]
        if len(given) != sum(ctx.floats):
            message = f"the backward of {self.signature.name} gave {len(given)} gradients, not {sum(ctx.floats)}"
            raise TileError(message, help="one for each tensor of floats among the inputs, in their order")
        rest = iter(given)
        return tuple(next(rest) if floats else None for floats in ctx.floats)
