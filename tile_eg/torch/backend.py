"""`torch.compile(..., backend="tile_eg")`: what a graph does in kernels, and the rest as torch does it.

What is taken, and why the rest is not, is said by the logger `tile_eg.torch` (TORCH_LOGS=tile_eg.torch shows it).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.jit import TileKernel
from tile_eg.torch.regions import Region, copied_for_each_user, regions_of
from tile_eg.torch.text import Text, text_of
from tile_eg.torch.words import is_free, name_of

log = logging.getLogger("tile_eg.torch")
OPTIONS = ("chip", "compare")


@dataclass(frozen=True, eq=False)
class Fused:
    """A region that became a kernel, and its predicted microseconds at the example's sizes."""

    region: Region
    text: Text
    kernel: TileKernel
    microseconds: float

    def __call__(self, *tensors: Any) -> tuple[Any, ...]:
        given = self.kernel(*(t.detach() for t in tensors))
        return tuple(given) if isinstance(given, list) else (given,)

    @property
    def operators(self) -> list[str]:
        """What it computes, by torch's names, in order; views and constants left out."""
        return [name_of(n) for n in sorted(self.region.nodes) if not is_free(n)]


def backend(graph: Any, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None) -> Callable[..., Any]:
    """The backend of `torch.compile`.

    Options: `chip` ("910B2"), and `compare`, which also prices each operator as a kernel of its own and logs both sums.
    TileError for another option.
    """
    from torch._dynamo.backends.common import aot_autograd

    chosen = dict(options or {})
    if unknown := sorted(chosen.keys() - set(OPTIONS)):
        raise TileError(f"there is no option {unknown[0]} of the backend tile_eg", help=f"there are: {', '.join(OPTIONS)}")

    def compiled(module: Any, _: Sequence[Any]) -> Any:
        return _boxed(compiled_graph(module, **chosen))

    run: Callable[..., Any] = aot_autograd(fw_compiler=compiled)(graph, inputs)
    return run


def _boxed(module: Any) -> Any:
    from functorch.compile import make_boxed_func

    return make_boxed_func(module.forward)


def compiled_graph(module: Any, chip: str = "910B2", compare: bool = False) -> Any:
    """The same graph of aten operators, with kernels for what has them."""
    copied_for_each_user(module.graph)
    found: list[Fused] = []
    for region in regions_of(module.graph):
        found += kernels_of(region, chip, len(found))
    result = _replaced(module, found)
    _tell(module, found, chip, compare)
    return result


def kernels_of(region: Region, chip: str, number: int) -> list[Fused]:
    """The region as one kernel; where that is refused its operators one by one, as far as they are kernels."""
    try:
        return [_kernel(region, chip, number)]
    except TileError as error:
        log.info("not taken: %s: %s", _listed(region), error.message)
    singles = [r for r in regions_alone(region) if len(r.nodes) < len(region.nodes)]
    found: list[Fused] = []
    for single in singles:
        try:
            found.append(_kernel(single, chip, number + len(found)))
        except TileError as error:
            log.info("left to torch: %s: %s", _listed(single), error.message)
    return found


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


def _kernel(region: Region, chip: str, number: int) -> Fused:
    """TileError where there is none."""
    text = text_of(region, f"kernel{number}")
    kernel = TileKernel(load_text(text.text, f"<{text.name} of torch.compile>"), chip)
    planned = kernel.with_sizes(**text.sizes).compile()
    return Fused(region, text, kernel, planned.timeline.microseconds)


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
        call = graph.call_function(_function(unit), tuple(values[n] for n in unit.text.inputs))
        for i, n in enumerate(unit.text.outputs):
            values[n] = graph.call_function(_part, (call, i))
    return torch.fx.GraphModule(module, graph)


def _function(kernel: Fused) -> Callable[..., Any]:
    def called(*tensors: Any) -> tuple[Any, ...]:
        return kernel(*tensors)

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
        for needed in unit.text.inputs if isinstance(unit, Fused) else unit.all_input_nodes:
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
    for k in kernels:
        log.info("%s: %s, predicted %.2f us on %s\n%s", k.text.name, ", ".join(k.operators), k.microseconds, chip, k.text.text)
    left = [
        name_of(n) or str(n.target) for n in module.graph.nodes if n.op == "call_function" and n not in taken and not is_free(n)
    ]
    log.info("%d kernels; left to torch: %s", len(kernels), ", ".join(left) or "nothing")
    if compare:
        log.info("%s", compared(kernels, chip))


def compared(kernels: Sequence[Fused], chip: str) -> str:
    """Kernels and predicted time beside one kernel for each operator: what eager would launch."""
    alone: list[Fused] = []
    for k in kernels:
        parts = regions_alone(k.region)
        alone += [k] if len(parts) == 1 else [_kernel(r, chip, len(alone) + i) for i, r in enumerate(parts)]
    ours, theirs = (sum(k.microseconds for k in some) for some in (kernels, alone))
    return f"{len(kernels)} kernels take {ours:.2f} us; operator by operator {len(alone)} kernels take {theirs:.2f} us"
