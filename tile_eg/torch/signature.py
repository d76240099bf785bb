"""What a kernel looks like to its callers: the arguments it takes, what it writes of them, and the tensors that it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from tile_eg.errors import TileError
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.open_kernel import NoBlocks
from tile_eg.jit import CompiledKernel, TileKernel
from tile_eg.jit.any_size import AnySizeKernel
from tile_eg.jit.in_a_row import LaunchesInARow
from tile_eg.ops.records import record

Dims = Sequence[Any]
PROBES = (1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049, 1051, 1061)
"""Primes at which a kernel with open sizes is read: each dimension of an output tells by its factors what it is a product of."""
WHOLE, REAL, TENSOR = "SymInt", "float", "Tensor"


@record
class Parameter:
    """An argument of a call: a tensor, which the kernel may write, or a number; a size by keyword has a default."""

    name: str
    kind: str
    written: bool = False
    optional: bool = False

    def declared(self, letter: str) -> str:
        """As a schema of torch's has it; what is written has a `letter` of its own."""
        if self.kind != TENSOR:
            return f"{self.kind}? {self.name}=None" if self.optional else f"{self.kind} {self.name}"
        return f"Tensor({letter}!) {self.name}" if self.written else f"Tensor {self.name}"


@record
class Signature:
    """The parameters of a kernel in their order, sizes by keyword last.

    `sizes_of` gives the open sizes that arguments by name tell, torch's symbolic numbers among them; `tensors_at` all tensors of
    the kernel at sizes that are plain numbers.
    """

    name: str
    parameters: tuple[Parameter, ...]
    outputs: tuple[str, ...]
    sizes_of: Callable[[Mapping[str, Any]], dict[str, Any]]
    tensors_at: Callable[[Mapping[str, Any]], Sequence[Tensor]]

    def schema(self) -> str:
        """The operator's schema: "(Tensor A, Tensor B) -> Tensor"."""
        shown = [p.declared(chr(ord("a") + i)) for i, p in enumerate(self.parameters) if not p.optional]
        keywords = [p.declared("") for p in self.parameters if p.optional]
        given = ", ".join(["Tensor"] * len(self.outputs))
        one = len(self.outputs) == 1
        return f"({', '.join([*shown, *(['*'] if keywords else []), *keywords])}) -> {given if one else f'({given})'}"

    @property
    def tensors(self) -> list[Parameter]:
        return [p for p in self.parameters if p.kind == TENSOR]

    def given_back(self, arguments: Mapping[str, Any]) -> list[tuple[Dims, str]]:
        """Shape and the name of the element type of each output of a call with these arguments.

        Where a shape is no product of sizes, torch's symbolic numbers become those of this call.
        """
        sizes = self.sizes_of(arguments)
        symbols = [n for n, v in sizes.items() if not isinstance(v, int | float)]
        if symbols and (found := self._as_products(sizes, symbols)):
            return found
        tensors = self._by_name({n: v if isinstance(v, float) else int(v) for n, v in sizes.items()})
        return [(_returned(tensors[n]), tensors[n].dtype.numpy) for n in self.outputs]

    def _as_products(self, sizes: Mapping[str, Any], symbols: Sequence[str]) -> list[tuple[Dims, str]]:
        """The outputs, whose dimensions are products of symbols and a number; none where one is something else."""
        halves = PROBES[: len(symbols)], PROBES[len(symbols) : 2 * len(symbols)]
        if len(halves[1]) < len(symbols):
            return []
        here, there = ({**sizes, **dict(zip(symbols, half, strict=True))} for half in halves)
        try:
            first, second = self._by_name(here), self._by_name(there)
        except TileError:
            return []
        shapes = [[_factors(d, here, symbols) for d in _returned(first[n])] for n in self.outputs]
        if any(tuple(_product(d, there) for d in s) != _returned(second[n]) for s, n in zip(shapes, self.outputs, strict=True)):
            return []
        return [([_product(d, sizes) for d in s], first[n].dtype.numpy) for s, n in zip(shapes, self.outputs, strict=True)]

    def _by_name(self, sizes: Mapping[str, Any]) -> dict[str, Tensor]:
        try:
            return {t.name: t for t in self.tensors_at(sizes)}
        except NoBlocks as empty_grid:
            return {t.name: t for t in empty_grid.tensors}


def _returned(t: Tensor) -> tuple[int, ...]:
    """The shape in which a call gives a tensor."""
    return () if t.alone else t.shape


def _factors(dim: int, probe: Mapping[str, int], symbols: Sequence[str]) -> list[Any]:
    """The names of sizes whose product a dimension is, and the number that is left; `probe` gives each a prime."""
    names = []
    for name in symbols:
        while dim and dim % probe[name] == 0:
            names.append(name)
            dim //= probe[name]
    return [*names, dim]


def _product(factors: Sequence[Any], sizes: Mapping[str, Any]) -> Any:
    return prod(sizes[f] if isinstance(f, str) else f for f in factors)


def signature_of(kernel: Any) -> Signature:
    """TileError for what is no kernel, or one whose sizes are still to be given."""
    if isinstance(kernel, CompiledKernel | LaunchesInARow):
        return _of_compiled(kernel)
    if isinstance(kernel, AnySizeKernel):
        return _of_any_size(kernel)
    if isinstance(kernel, TileKernel):
        return _of_template(kernel)
    name = type(kernel).__name__
    help = "a function of sizes under @tile_eg.jit gives a kernel when it is called with them" if callable(kernel) else ""
    raise TileError(f"an operator is made of a kernel, not of a {name}", help=help)


def _of_compiled(kernel: CompiledKernel | LaunchesInARow) -> Signature:
    tensors = kernel.kernel.tensors
    made = {*kernel.out_idx, *kernel.workspace_idx}
    parameters = tuple(Parameter(t.name, TENSOR, t.output) for i, t in enumerate(tensors) if i not in made)
    outputs = tuple(tensors[i].name for i in kernel.out_idx)
    return Signature(kernel.kernel.name, parameters, outputs, lambda arguments: {}, lambda sizes: tensors)


def _of_any_size(kernel: AnySizeKernel) -> Signature:
    made = {*kernel.outputs, *kernel.workspaces}
    taken = [a for i, a in enumerate(kernel.arguments) if i not in made]
    written = _written(kernel)
    known = {n for a in taken for d in a.shape or () if hasattr(d, "solved") for n in d.solved(1)}
    numbers = {a.name for a in taken if a.shape is None}
    parameters = [
        Parameter(a.name, TENSOR, a.name in written) if a.shape is not None else Parameter(a.name, _number(a.dtype.name))
        for a in taken
    ]
    parameters += [Parameter(n, WHOLE, optional=True) for n in kernel.open if n not in known | numbers]

    def sizes_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
        found = {n: arguments[n] for n in kernel.open if arguments.get(n) is not None}
        for a in taken:
            for d, n in zip(a.shape or (), getattr(arguments[a.name], "shape", ()), strict=False):
                found.update(d.solved(n) if hasattr(d, "solved") else {})
        return found

    outputs = tuple(kernel.arguments[i].name for i in kernel.outputs)
    return Signature(kernel.name, tuple(parameters), outputs, sizes_of, lambda sizes: kernel.build(sizes).tensors)


def _number(dtype: str) -> str:
    return REAL if dtype in ("f16", "bf16", "f32") else WHOLE


def _written(kernel: AnySizeKernel) -> set[str]:
    """The tensors that the kernel writes, as it is read at sizes of one prime each. TileError where it cannot be read there."""
    sizes = dict.fromkeys(kernel.open, PROBES[0])
    for size in (PROBES[0], 128, 16, 1):
        try:
            return {t.name for t in kernel.build(dict.fromkeys(sizes, size)).tensors if t.output}
        except NoBlocks as empty_grid:
            return {t.name for t in empty_grid.tensors if t.output}
        except TileError as error:
            told = error
    raise TileError(f"which tensors {kernel.name} writes is not known before its sizes are: {told.message}")


def _of_template(kernel: TileKernel) -> Signature:
    dims = kernel.template.tensor_dims()
    known = {n for shape in dims.values() for n in shape}
    numbers = kernel.template.numbers
    parameters = [Parameter(n, TENSOR if n in dims else _number(numbers[n].name)) for n in kernel.template.parameters]
    parameters += [Parameter(n, WHOLE, optional=True) for n in kernel.template.sizes if n not in known | {*numbers}]

    def sizes_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
        found = {n: v for n, v in kernel.template.sizes.items() if v is not None and n not in kernel.template.searched}
        for name, shape in dims.items():
            found.update({d: n for d, n in zip(shape, arguments[name].shape, strict=False) if d is not None})
        return found | {n: arguments[n] for n in kernel.template.sizes if arguments.get(n) is not None}

    outputs = tuple(t.name for t in kernel.template.instantiate(_given(kernel)).tensors if t.output)
    return Signature(kernel.template.name, tuple(parameters), outputs, sizes_of, lambda s: kernel.template.instantiate(s).tensors)


def _given(kernel: TileKernel) -> dict[str, int]:
    """A number for every size that has no default."""
    return {n: 128 for n, v in kernel.template.sizes.items() if v is None and n not in kernel.template.searched}
