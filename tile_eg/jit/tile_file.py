"""The kernel of a `.tile` file as a callable, whose sizes each call tells."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile_eg.chips import DEFAULT_CHIP
from tile_eg.errors import TileError
from tile_eg.ir.open_kernel import AUTO, NoBlocks
from tile_eg.jit.any_size import NOTHING, TemplateTexts, nothing_done, told_by_call
from tile_eg.jit.compiled import CompiledKernel
from tile_eg.jit.located import LocatingAtSizes
from tile_eg.jit.on_npu import MOST_SHAPES
from tile_eg.jit.told import told
from tile_eg.search import check_names, search_options
from tile_eg.simulator.limits import CALL, Limits

if TYPE_CHECKING:
    from tile_eg.frontend.text import Template
    from tile_eg.search.any_size import AnySize
    from tile_eg.search.compiler import Lowered


class TileKernel(LocatingAtSizes):
    """A `.tile` kernel whose sizes are open: each call takes them from the shapes of its arrays.

    Calling it takes the arrays before the `->`, in order or by name, and sizes by name where they are to differ from what
    the arrays say or the text defaults to: `gemm(a, b, BM=64)`. It gives the tensors after the `->`.
    """

    def __init__(
        self, template: Template, chip: str = DEFAULT_CHIP, search: Mapping[str, Any] = NOTHING, limits: Limits = CALL
    ) -> None:
        self.template, self.chip, self.search, self.limits = template, chip, search, limits
        self.texts = TemplateTexts(template, chip, search)
        self.made: dict[tuple[Any, ...] | None, CompiledKernel] = {}

    def __repr__(self) -> str:
        shown = {n: AUTO if n in self.template.searched else v for n, v in self.template.sizes.items()}
        sizes = ", ".join(n if v is None else f"{n}={v}" for n, v in shown.items())
        return f"<kernel {self.template.name}[{sizes}]>"

    @told
    def with_sizes(self, **sizes: int | str) -> CompiledKernel:
        """The kernel with these sizes ("auto": the search finds it), and the text's defaults for the rest."""
        kernel = self.template.instantiate(sizes)
        outputs = [i for i, t in enumerate(kernel.tensors) if t.output]
        made = CompiledKernel(kernel, outputs, (), self.chip, self.search, self.limits)
        made.for_all_sizes = lambda: self.texts.of(sizes).at(sizes, kernel)
        return made

    def for_all_sizes(self, **sizes: int | str) -> AnySize:
        """The kernel compiled once for all sizes that have no default, but those that are given. TileError with why not."""
        return self.texts.compiled(sizes)

    @told
    def compile(self, chip: str | None = None, **sizes: int | str) -> Lowered:
        """The lowered kernel: `.source .schedule .program .cost .memory`. `chip` is a name like "910B2"."""
        return self.with_sizes(**sizes).compile(chip)

    @told
    def get_kernel_source(self, **sizes: int | str) -> str:
        """The Ascend C text."""
        return self.with_sizes(**sizes).get_kernel_source()

    def arrays_and_sizes(self, args: Any, kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The arrays of a call by name, and the sizes that they, or the call, tell."""
        return told_by_call(self.template, args, kwargs)

    @told
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        key = None if kwargs else tuple([getattr(a, "shape", None) for a in args])
        if key in self.made:
            return self.made[key](*args)
        arrays, sizes = self.arrays_and_sizes(args, kwargs)
        try:
            kernel = self.with_sizes(**sizes)
        except NoBlocks as empty_grid:
            outputs = [i for i, t in enumerate(empty_grid.tensors) if t.output]
            return nothing_done(empty_grid.tensors, outputs, arrays)
        self.made |= {key: kernel} if key is not None and len(self.made) < MOST_SHAPES else {}
        return kernel(**arrays)


@told
def load(
    path: str | Path,
    chip: str = DEFAULT_CHIP,
    *,
    seconds: float = CALL.seconds,
    memory: int = CALL.bytes,
    **search: Any,
) -> TileKernel:
    """The kernel of a `.tile` file, of which nothing is executed. TileError where the file cannot be read or is not a kernel.

    `seconds` of processor time and bytes of `memory` are what a call of the kernel may take in the simulator.

    `search` are options as `tile_eg.search.search_options` takes them: `effort="full"`, `exact_math=True`, `rules`, `without`.
    """
    from tile_eg.frontend.text import load_text

    if Path(path).suffix == ".py":
        raise TileError(f"{path} is Python, and load reads .tile text", help="import the function under @tile_eg.jit from it")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        why = getattr(e, "strerror", None) or "it is not UTF-8 text"
        raise TileError(f"cannot read {path}: {why}") from e
    check_names(search)
    search_options(**search)
    return TileKernel(load_text(text, str(Path(path).absolute())), chip, search, Limits(seconds, memory))
