"""`torch.compile(..., backend="tile_eg")`: what a graph does in kernels, and the rest as torch does it.

What is taken, and why the rest is not, is said by the logger `tile_eg.torch` (TORCH_LOGS=tile_eg.torch shows it).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tile_eg.chips import DEFAULT_CHIP, load_chip
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.jit import TileKernel
from tile_eg.ops.records import record
from tile_eg.torch.regions import Region, copied_for_each_user, regions_of
from tile_eg.torch.text import Text, UnknownSize, text_of
from tile_eg.torch.word import name_of
from tile_eg.torch.words import VIEWS, decompositions, is_free, is_size

log = logging.getLogger("tile_eg.torch")
OPTIONS = ("chip", "compare")
MOST_INDEX = 2**31 - 1


@record(eq=False)
class Fused:
    """A region that became a kernel, its predicted microseconds at the example's sizes, and the same in torch's operators.

    Called with the values of the region's inputs, it gives those of the text's outputs, laid out as torch expects them.
    """

    region: Region
    text: Text
    kernel: TileKernel
    microseconds: float
    in_torch: Callable[..., tuple[Any, ...]]

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        of = dict(zip(self.region.inputs, values, strict=True))
        try:
            given = self.kernel(*(_passed(of[n]) for n in self.text.inputs))
        except Exception as error:
            log.warning("%s is done by torch at these sizes: %s", self.text.name, _reason(error))
            return self.in_torch(*values)
        every = given if isinstance(given, list) else [given]
        return tuple(laid_out(v, n) for v, n in zip(every, self.text.outputs, strict=True))

    @property
    def operators(self) -> list[str]:
        """What it computes, by torch's names, in order; views and constants left out."""
        return [name_of(n) for n in sorted(self.region.nodes) if not is_free(n)]


def backend(graph: Any, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None) -> Callable[..., Any]:
    """The backend of `torch.compile`.

    Options: `chip` ("910B2"), and `compare`, which also prices each operator as a kernel of its own and logs both sums.
    TileError for another option, and for a chip that there is not.
    """
    from torch._dynamo.backends.common import aot_autograd

    chosen = dict(options or {})
    if unknown := sorted(chosen.keys() - set(OPTIONS)):
        raise TileError(f"there is no option {unknown[0]} of the backend tile_eg", help=f"there are: {', '.join(OPTIONS)}")
    load_chip(chosen.get("chip", DEFAULT_CHIP))

    def compiled(module: Any, _: Sequence[Any]) -> Any:
        return _boxed(compiled_graph(module, **chosen))

    run: Callable[..., Any] = aot_autograd(fw_compiler=compiled, decompositions=decompositions())(graph, inputs)
    return run


def _boxed(module: Any) -> Any:
    from functorch.compile import make_boxed_func

    return make_boxed_func(module.forward)


def compiled_graph(module: Any, chip: str = DEFAULT_CHIP, compare: bool = False) -> Any:
    """The same graph of aten operators, with kernels for what has them."""
    copied_for_each_user(module.graph)
    kernels = _Kernels(chip)
    found = [k for region in regions_of(module.graph) for k in kernels.of(region)]
    result = _replaced(module, found)
    _tell(module, found, chip, compare)
    return result


class _Kernels:
    """The kernels of a graph. Regions that say the same, as those of a model's layers do, have one, which is compiled once."""

    def __init__(self, chip: str) -> None:
        self.chip = chip
        self.by_text: dict[str, Fused] = {}

    def of(self, region: Region) -> list[Fused]:
        """The region as one kernel; where that is refused its operators one by one, as far as they are kernels."""
        if whole := self.tried(region, "not taken"):
            return [whole]
        alone = [r for r in regions_alone(region) if len(r.nodes) < len(region.nodes)]
        return [kernel for r in alone if (kernel := self.tried(r, "left to torch"))]

    def tried(self, region: Region, otherwise: str) -> Fused | None:
        """The kernel of a region; None where there is none for any reason: torch can do it, and the program goes on."""
        try:
            return self._made(*_said(region, f"kernel{len(self.by_text)}"))
        except Exception as error:
            log.info("%s: %s: %s", otherwise, _listed(region), _reason(error))
            return None

    def _made(self, region: Region, text: Text) -> Fused:
        """TileError where there is none."""
        own, key = _in_torch(region, text.outputs), f"{text.text.partition(text.name)[2]} at {text.sizes}"
        if (same := self.by_text.get(key)) is not None:
            text = replace(text, name=same.text.name, text=same.text.text)
            return replace(same, region=region, text=text, in_torch=own)
        kernel = TileKernel(load_text(text.text, f"<{text.name} of torch.compile>"), self.chip)
        microseconds = kernel.with_sizes(**text.sizes).compile().timeline.microseconds
        return self.by_text.setdefault(key, Fused(region, text, kernel, microseconds, own))


def _reason(error: Exception) -> str:
    return error.message if isinstance(error, TileError) else f"{type(error).__name__}: {error}"


def regions_alone(region: Region) -> list[Region]:
    """Each operator of a region with the views of its operands."""
    inside, found = set(region.nodes), []
    for node in sorted(region.nodes):
        if is_free(node):
            continue
        nodes, waiting = [node, *(u for u in node.users if name_of(u) == "getitem")], list(node.all_input_nodes)
        while waiting:
            if is_free(a := waiting.pop()) and a in inside and name_of(a) != "getitem":
                nodes.append(a)
                waiting += a.all_input_nodes
        found.append(Region(region.kind, region.space, nodes))
    return found


def _listed(region: Region) -> str:
    return ", ".join(name_of(n) for n in sorted(region.nodes) if not is_free(n))


def _said(region: Region, name: str) -> tuple[Region, Text]:
    """A region as a text. Where its inputs do not tell all sizes, views of these are left to torch, one after the other, as their
    results may: a batch of rows that becomes one of heads."""
    try:
        return region, text_of(region, name)
    except UnknownSize:
        inside = set(region.nodes)
        first = [n for n in region.nodes if name_of(n) in VIEWS and not inside & set(n.all_input_nodes)]
        if not first:
            raise
        return _said(Region(region.kind, region.space, [n for n in region.nodes if n not in first]), name)


def _in_torch(region: Region, outputs: Sequence[Any]) -> Any:
    """The operators of a region as a function of its inputs."""
    import torch

    graph = torch.fx.Graph()
    values = {n: graph.placeholder(f"x{i}") for i, n in enumerate(region.inputs)}
    for node in sorted(region.nodes):
        values[node] = graph.node_copy(node, lambda n: values[n])
    graph.output(tuple(values[n] for n in outputs))
    return torch.fx.GraphModule({}, graph)


def _passed(value: Any) -> Any:
    """A tensor as a kernel takes it: of a dimension at least, indices of 32 bits; those beyond stay outside of any tensor."""
    held = value.detach() if value.dim() else value.detach().reshape(1)
    return held.clamp(-1, MOST_INDEX).int() if str(value.dtype) == "torch.int64" else held


def laid_out(value: Any, node: Any) -> Any:
    """A contiguous tensor with its axes in memory in the order that a node's value has: views of it rely on that."""
    strides = [s if isinstance(s, int) else int(s.node.hint) for s in node.meta["val"].stride()]
    if not strides:
        return value.reshape(())
    order = sorted(range(len(strides)), key=lambda a: -strides[a])
    if order == list(range(len(order))) or 0 in strides:
        return value
    return value.permute(order).contiguous().permute([order.index(a) for a in range(len(order))])


def _replaced(module: Any, kernels: Sequence[Fused]) -> Any:
    """The graph with calls of kernels, in an order in which every value is there before it is used."""
    import torch

    of = {n: k for k in kernels for n in k.region.nodes}
    graph = torch.fx.Graph()
    values: dict[Any, Any] = {}
    for unit in _ordered(module.graph, of):
        if not isinstance(unit, Fused):
            values[unit] = graph.node_copy(unit, lambda n: values[n])
            continue
        call = graph.call_function(_function(unit), tuple(values[n] for n in unit.region.inputs))
        for i, n in enumerate(unit.text.outputs):
            values[n] = graph.call_function(_part, (call, i))
    return torch.fx.GraphModule(module, graph)


def _function(kernel: Fused) -> Callable[..., Any]:
    def called(*values: Any) -> tuple[Any, ...]:
        return kernel(*values)

    called.__name__ = called.__qualname__ = kernel.text.name
    return called


def _part(values: tuple[Any, ...], i: int) -> Any:
    return values[i]


def _ordered(graph: Any, of: Mapping[Any, Fused]) -> list[Any]:
    """Nodes and kernels, each behind what it takes, otherwise as they stood."""
    out: list[Any] = []
    placed: set[Any] = set()

    def place(unit: Any) -> None:
        if unit in placed:
            return
        placed.add(unit)
        for needed in unit.region.inputs if isinstance(unit, Fused) else unit.all_input_nodes:
            place(of.get(needed, needed))
        out.append(unit)

    for node in graph.nodes:
        if node.op == "placeholder":
            place(node)
    for node in graph.nodes:
        place(of.get(node, node))
    return out


def _tell(module: Any, kernels: Sequence[Fused], chip: str, compare: bool) -> None:
    taken = {n for k in kernels for n in k.region.nodes}
    times = Counter(k.text.name for k in kernels)
    for k in {k.text.name: k for k in kernels}.values():
        often = f", {count} times" if (count := times[k.text.name]) > 1 else ""
        told = ", ".join(k.operators), k.microseconds, chip, often, k.text.text
        log.info("%s: %s, predicted %.2f us on %s%s\n%s", k.text.name, *told)
    rest = [n for n in module.graph.nodes if n.op == "call_function" and n not in taken and not is_free(n)]
    left = [name_of(n) or str(n.target) for n in rest if not is_size(n)]
    log.info("%d kernels; left to torch: %s", len(kernels), ", ".join(left) or "nothing")
    if compare:
        log.info("%s", compared(kernels, chip))


def compared(kernels: Sequence[Fused], chip: str) -> str:
    """Kernels and predicted time beside one kernel for each operator: what eager would launch.

    A kernel with an operator that is none alone is counted as it is on both sides.
    """
    alone: list[Fused] = []
    for k in kernels:
        parts, kernels_alone = regions_alone(k.region), _Kernels(chip)
        made = [kernels_alone.tried(r, "not priced alone") for r in parts] if len(parts) > 1 else [k]
        alone += [m for m in made if m] if all(made) else [k]
    ours, theirs = (sum(k.microseconds for k in some) for some in (kernels, alone))
    return f"{len(kernels)} kernels take {ours:.2f} us; operator by operator {len(alone)} kernels take {theirs:.2f} us"
