"""A function under `@T.prim_func` -> the kernel tree, read from its source.

The function is never run. Names that it does not bind are those of its closure and module, as they are when it is read.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeVar

from tile_eg.errors import InOrder, Note, NotSearched, ReadFirst, Span, TileError, by_line, searchable, together
from tile_eg.frontend.checks import type_faults
from tile_eg.frontend.element_sums import with_element_sums
from tile_eg.frontend.guarded_rows import with_rows_that_exist
from tile_eg.frontend.guarded_stores import with_counted_stores
from tile_eg.frontend.nibbles import with_bytes
from tile_eg.frontend.of_calls import as_written, of_calls, wholes_of_calls
from tile_eg.frontend.python.bools import is_bool
from tile_eg.frontend.python.carried import carried
from tile_eg.frontend.python.expressions import evaluate
from tile_eg.frontend.python.one_by_one import searched
from tile_eg.frontend.python.parts import with_parts
from tile_eg.frontend.python.returned import output_names, returns_tensors
from tile_eg.frontend.python.slots import without_slots
from tile_eg.frontend.python.source import FunctionSource, called_macro, ends, one_by_one, read_function
from tile_eg.frontend.python.statements import Reader
from tile_eg.frontend.python.tile_loops import tiles_as_grid
from tile_eg.frontend.python.tile_order import in_some_order
from tile_eg.frontend.python.two_streams import in_one_order
from tile_eg.frontend.python.updated import with_updates
from tile_eg.frontend.python.values import Buffer, Launch, as_dtype, describe, nodes
from tile_eg.frontend.python.vector_cores import alike, apart, mentioned, merged
from tile_eg.frontend.python.words import known, sizes
from tile_eg.frontend.python.written_size import many_planes
from tile_eg.ir import index
from tile_eg.ir.kernel import Alloc, Assign, Kernel, Stmt, Tensor, exchanged
from tile_eg.ir.open_kernel import NoBlocks
from tile_eg.language.kernels import ElementType, PrimFunc, TensorType
from tile_eg.language.symbols import Dyn, Size, Symbol
from tile_eg.ops.records import record
from tile_eg.ops.types import F32, I32, U8, DType, dtype_of

Mistake = TypeVar("Mistake", bound=TileError)
NOTHING: Mapping[str, Any] = MappingProxyType({})
AS_STREAMS = "cube core and vector cores are two streams here: their statements are put in an order in which all is there"


NUMBERS = {int: I32, float: F32}
"""What Python's numbers are in a kernel."""


@record
class Argument:
    """A parameter of a kernel: a tensor of a shape, whose dimensions may be sizes of a call, or a number (no shape). `truth`: it
    is a tensor of bools. A call that does not give a number passes its `default`, where there is one."""

    name: str
    shape: tuple[int | Size, ...] | None
    dtype: DType
    span: Span
    truth: bool = False
    default: int | float | None = None


def arguments_of(function: PrimFunc) -> list[Argument]:
    """The parameters of a prim_func, the sizes of a call still open, and what it returns. Raises TileError at the user's line."""
    found = read_function(function.function, function.names)
    reader = Reader(found.source, found.names)
    with _told_in(found):
        given = checked_arguments(reader, found.node)
        if reader.told:
            raise together(reader.told)
    if not returns_tensors(function.function, function.names):
        return given
    span = found.source.span(found.node)
    return [*given, *(Argument(name, (), F32, span) for name in output_names(function))]


def kernel_of(
    function: PrimFunc, sizes: Mapping[str, Any] = NOTHING, streams: bool = False, reader_of: Callable[..., Reader] = Reader
) -> Kernel:
    """The kernel that a prim_func means at the sizes, and with the numbers, of a call; tensors that it writes are its outputs.

    `streams`: the cube core may read what the vector cores write further down, and the other way round. `reader_of` makes what
    reads the function.

    Raises TileError at the user's line, `NoBlocks` where the sizes leave no block to run.
    """
    return searchable(read(function, sizes, streams, reader_of))


def read(
    function: PrimFunc, sizes: Mapping[str, Any] = NOTHING, streams: bool = False, reader_of: Callable[..., Reader] = Reader
) -> Kernel | InOrder:
    """As `kernel_of`; where the search has no form for the kernel, why it is to be done in the order of its statements."""
    found = read_function(function.function, function.names)
    reader = reader_of(found.source, found.names, sizes)
    reader.once = function.once
    with _told_in(found):
        if returns_tensors(function.function, function.names):
            return _of_tensors(reader, function, found)
        try:
            made = _kernel(reader, found, streams)
        except TileError as e:
            raise together((*reader.told, e)) from e.__cause__
        if isinstance(made, Kernel):
            return made if (why := reader.too_long or many_planes(made)) is None else InOrder(with_texts(why, found), made)
        if not isinstance(made, NotSearched) and not (streams and isinstance(made, ReadFirst)):
            raise made
    with_texts(made, found)
    return InOrder(made)


def _of_tensors(r: Reader, function: PrimFunc, found: FunctionSource) -> Kernel:
    """The kernel of a function that returns expressions of its tensors."""
    from tile_eg.frontend.python.tensor_functions import kernel_of_tensors

    arguments = checked_arguments(r, found.node)
    tensors = [_tensor(r, a) for a in arguments if a.shape is not None]
    numbers = {a.name: _number(r, a) for a in arguments if a.shape is None}
    return kernel_of_tensors(function, tensors, numbers, r.sizes or {})


@contextmanager
def _told_in(found: FunctionSource) -> Iterator[None]:
    """An error inside is told with the text of the function's file."""
    try:
        yield
    except TileError as e:
        with_texts(e, found)
        raise


def with_texts(error: Mistake, found: FunctionSource) -> Mistake:
    """Gives the mistakes of a function the texts that their places point into."""
    every: tuple[TileError, ...] = (error, *error.others)
    for e in every:
        e.source = e.source or _text_of(e, found)
    return error


def _text_of(error: TileError, found: FunctionSource) -> str:
    """The text that the error's place points into: a macro may stand in another file."""
    if error.span is None or error.span.file == found.source.file:
        return found.source.text
    return "".join(linecache.getlines(error.span.file))


def _kernel(r: Reader, found: FunctionSource, streams: bool) -> Kernel | TileError:
    """The kernel, or all that is wrong with its statements."""
    arguments = checked_arguments(r, found.node)
    tensors = [_tensor(r, a) for a in arguments if a.shape is not None]
    r.local.update({a.name: _number(r, a) for a in arguments if a.shape is None})
    r.taken |= {t.name for t in tensors}
    launch = _prologue(r, found.node)
    try:
        _grid(r, launch)
    except TileError as e:
        r.tell(e, launch.items[0])
    if any(last < 0 for _, last in r.grid.values()):
        raise NoBlocks(tensors)
    r.last = ends(launch.body)
    r.run(launch.body)
    _in_some_order(r)
    statements = r.finished()
    if r.told:
        return together((*r.told, together(by_line((*r.told, *type_faults(tensors, statements))))))
    _check_left(r)
    if not any(t.name in r.writes and 0 not in t.shape for t in tensors) and any(0 in t.shape for t in tensors):
        raise NoBlocks(tensors)
    grid = tuple((name, last + 1) for name, (_, last) in r.grid.items())
    outputs = tuple(replace(t, output=t.name in r.writes) for t in tensors)
    statements = [*with_element_sums(without(statements, r.unused), outputs, r.unique)]
    body = with_parts(r.settled(without_slots(statements)), r.unique, r.grid)
    texts = found.source.text, found.source.file
    numbers = of_calls(r.sizes or {}), wholes_of_calls(r.sizes or {})
    made = with_bytes(Kernel(found.node.name, outputs, grid, body, *texts, tuple(r.notes), *numbers))
    if streams and r.half_used is None and (ordered := in_one_order(made)):
        told = Note(AS_STREAMS, r.span(launch.items[0].context_expr))
        whole = _whole(r, replace(ordered, notes=(*made.notes, told)))
        if isinstance(whole, Kernel):
            return whole
    return _whole(r, made)


def _in_some_order(r: Reader) -> None:
    """Gives the names that stand for tiles in another order what they mean."""
    blocks = {name: last + 1 for name, (_, last) in r.grid.items()}
    body, told = in_some_order(r.statements, r.orders, blocks, r.plain())
    r.statements, r.notes = [*body], [*r.notes, *told]


def _whole(r: Reader, made: Kernel) -> Kernel | TileError:
    """What the kernel means on whole tiles, and without what only carries a value from one core to another; or why there is no
    such kernel."""
    half = None if r.half is None else index.text(r.half)
    both = _on_both_cores(r, tiles_as_grid(with_rows_that_exist(made, half) if half else made))
    whole = carried(with_updates(with_counted_stores(with_rows_that_exist(both)))) if isinstance(both, Kernel) else both
    return searched(whole, r.unique) if isinstance(whole, Kernel) else whole


def without(body: Sequence[Stmt], names: Collection[str]) -> tuple[Stmt, ...]:
    """The statements without buffers that nothing reads, and what fills them."""

    def gone(s: Stmt) -> bool:
        return (isinstance(s, Alloc) and s.name in names) or (isinstance(s, Assign) and s.target.name in names)

    return exchanged(body, lambda s: () if gone(s) else None)


def _on_both_cores(r: Reader, made: Kernel) -> Kernel | NotSearched:
    """What the kernel means where its body runs on both vector cores of a block."""
    if r.half is None:
        return made
    if r.half_used is None:
        return alike(made)
    vid = index.text(r.half)
    return merged(made, vid, r.half_used) if r.has_product else apart(made, vid)


def _check_left(r: Reader) -> None:
    """TileError where a block's index is used beside the word that orders the blocks anew."""
    for name, span, word in r.left:
        for s in nodes(tuple(r.statements)):
            if name in mentioned(s):
                message = f"`{name}` is used beside {word}, which says that the order of blocks does not matter"
                raise TileError(message, span, notes=(("used here", s.span),), help=f"use only what {word} gives")


def checked_arguments(r: Reader, node: ast.FunctionDef) -> list[Argument]:
    """The parameters that are right; what is wrong of the others is told by the reader."""
    found = []
    if several := node.args.vararg or node.args.kwarg:
        help = f'write each by its name: {several.arg}_0: T.Tensor((M, N), "float16")'
        message = f"`{several.arg}` stands for any number of arguments: a kernel has those that it names"
        r.tell(r.error(message, several, help), several)
    defaults = [None] * (len(node.args.args) - len(node.args.defaults)) + node.args.defaults
    for arg, default in zip(node.args.args, defaults, strict=True):
        try:
            value = None if default is None else evaluate(r, default)
            if default is not None and arg.annotation is None and not _is_number(value):
                r.local[arg.arg] = value  # the same in each call
                continue
            found.append(_argument(r, arg, value if _is_number(value) else None))
        except TileError as e:
            r.tell(e, arg)
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _argument(r: Reader, arg: ast.arg, default: int | float | None = None) -> Argument:
    if arg.annotation is None:
        if default is not None:
            return Argument(arg.arg, None, NUMBERS[type(default)], r.span(arg), default=default)
        raise r.error(f"{arg.arg} needs a type", arg, f'write {arg.arg}: T.Tensor((M, N), "float16")')
    node = arg.annotation
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and dtype_of(node.value) is None:
        node = ast.copy_location(ast.parse(node.value, mode="eval").body, arg.annotation)
        for n in ast.walk(node):
            ast.copy_location(n, arg.annotation)
    type_ = evaluate(r, node)
    if isinstance(type_, ElementType | str) or type_ in (int, float):
        dtype = NUMBERS.get(type_) or as_dtype(type_, r.span(arg.annotation))
        return Argument(arg.arg, None, dtype, r.span(arg), default=default)
    if not isinstance(type_, TensorType):
        raise r.error(f"{arg.arg} is {describe(type_)}; a kernel takes T.Tensor arguments, and numbers", arg)
    truth = is_bool(type_.dtype)
    dtype = U8 if truth else as_dtype(type_.dtype, r.span(arg.annotation))
    return Argument(arg.arg, _shape(r, arg, type_.shape), dtype, r.span(arg), truth)


def _shape(r: Reader, arg: ast.arg, shape: Any) -> tuple[int | Size, ...]:
    """The dimensions, those written as a bare `T.dyn` named by the tensor and their position. At a call they may be 0."""
    given = shape if isinstance(shape, list | tuple) else (shape,)
    named = r.at_call([Symbol(f"{arg.arg}_{i}") if isinstance(n, Dyn) else n for i, n in enumerate(given)])
    what, span = f"the shape of {arg.arg}", r.span(arg.annotation or arg)
    return tuple(n if isinstance(n, Size) or (n == 0 and r.sizes) else sizes(n, what, span)[0] for n in named)


def _tensor(r: Reader, argument: Argument) -> Tensor:
    shape = tuple(known(n, f"the shape of {argument.name}", argument.span) for n in argument.shape or (1,))
    r.bools |= {argument.name} if argument.truth else set()
    r.local[argument.name] = Buffer(argument.name, argument.dtype, shape, "tensor", truth=argument.truth)
    return Tensor(argument.name, argument.dtype, shape, False, argument.span, truth=argument.truth, alone=not argument.shape)


def _number(r: Reader, argument: Argument) -> Any:
    """The number that a call passes for a parameter."""
    if r.sizes is None or argument.name not in r.sizes:
        raise TileError(f"{argument.name} is a number of each call, and none was given", argument.span)
    return as_written(r.sizes[argument.name])


def _prologue(r: Reader, node: ast.FunctionDef) -> ast.With:
    """Runs what stands before the launch, and gives the launch, which has to be the last statement."""
    launches = [s for s in node.body if isinstance(s, ast.With)]
    if len(launches) != 1 or node.body[-1] is not launches[0]:
        help = "with T.Kernel(blocks) as b: around all that is done with tiles"
        if any(called_macro(s, r.names) for s in node.body):
            help += "; a macro that has it stands in the same file, takes names alone, and uses names that mean the same in both"
        raise r.error(f"{node.name} has to end with one `with T.Kernel(...)`", node.body[-1], help)
    r.run(node.body[:-1])
    if r.statements:
        raise r.error("tiles can be used only inside `with T.Kernel(...)`", node.body[0])
    return one_by_one(launches[0])


def _grid(r: Reader, node: ast.With) -> None:
    """Binds the grid's names and extents. A name more than there are extents is the half of the vector cores."""
    launch = evaluate(r, node.items[0].context_expr)
    if not isinstance(launch, Launch):
        raise r.error("a kernel's body is `with T.Kernel(...)`", node.items[0].context_expr, "with T.Kernel(blocks) as b:")
    names, half = _grid_names(r, node.items[0].optional_vars, len(launch.extents))
    unique = [r.unique("cid" if n == "_" else n) for n in names]
    r.local.update({n: index.var(u) for n, u in zip(names, unique, strict=True)})
    if half is not None:
        r.half = r.local[half] = index.var(r.unique("vid" if half == "_" else half))
    r.grid = {name: (0, n - 1) for name, n in zip(unique, launch.extents, strict=True)}


def _grid_names(r: Reader, target: ast.expr | None, count: int) -> tuple[list[str], str | None]:
    """The names of the grid's dimensions, and where there is one more, that of the vector core. A kernel whose body runs once has
    no `_` of them."""
    if target is None:
        return ["_"] * count, None
    targets = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    names = [t.id for t in targets if isinstance(t, ast.Name)]
    if len(names) == len(targets) == count + 1:
        return names[:-1], None if r.once and names[-1] == "_" else names[-1]
    if len(names) != count or len(names) != len(targets):
        help = f"as ({', '.join(f'b{k}' for k in range(count))})" if count > 1 else "as b"
        raise r.error(f"this grid has {count} dimension{'s' * (count > 1)}, got {ast.unparse(target)}", target, help)
    return names, None
