"""What a file on the command line holds: `.tile` text, a Python module with one kernel, or a `.program`."""

from __future__ import annotations

import inspect
import linecache
import runpy
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tile_eg.chips import DEFAULT_CHIP
from tile_eg.cli import options
from tile_eg.cli.console import complain
from tile_eg.cli.in_a_row import factory_and_its_own, one_of, sizes_of_this_launch
from tile_eg.errors import WITH_OR_WITHOUT_MARK, InternalError, Span, TileError, did_you_mean, searchable, why_unread
from tile_eg.frontend.of_calls import of_calls
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.open_kernel import AUTO, NoBlocks, OpenKernel, open_kernel
from tile_eg.ir.program import Program
from tile_eg.search import SearchOptions, search_options
from tile_eg.search.any_order import refuse_any_order_in
from tile_eg.search.at_example import at_example
from tile_eg.search.compiler import Planned, lower, plan

if TYPE_CHECKING:
    from tile_eg.jit import CompiledKernel, Factory
    from tile_eg.jit.any_size import AnySizeKernel
    from tile_eg.jit.one_text_cache import CachedOneText
    from tile_eg.search.any_size import AnySize

NOTHING: Mapping[str, tuple[int, ...]] = MappingProxyType({})
KINDS = {".tile": "tile text", ".py": "a Python module", ".program": "an instruction stream"}


def read(
    path: Path, sizes: Mapping[str, int | str], shapes: Mapping[str, tuple[int, ...]] = NOTHING, searched: bool = False
) -> Kernel | Program | KeptKernel:
    """The kernel, or the program, in a file, at the given sizes. TileError where the file cannot be read or holds neither.

    Sizes of a `.tile` kernel that are not given follow from the `shapes` of arrays by tensor name, then from the text's defaults.
    `searched`: a kernel whose author decided its order is read without what he decided.
    """
    if path.is_file() and path.suffix not in KINDS:
        kinds = ", ".join(f"{suffix} ({what})" for suffix, what in KINDS.items())
        raise TileError(f"'{path}' is not a kernel file", help=f"a kernel file ends in {kinds}")
    text = read_text(path)
    if path.suffix == ".py":
        with _faults_of(path):
            return _from_python(path, sizes, searched)
    if searched and path.suffix == ".program":
        raise TileError(f"'{path}' is a program: it has no meaning beside its order, and nothing in it can be searched")
    return _from_tile(text, path, sizes, shapes) if path.suffix == ".tile" else _from_program(text, path, sizes)


def read_at_example(path: Path, sizes: Mapping[str, int | str]) -> tuple[Kernel | Program | KeptKernel, dict[str, int]]:
    """`read`, where sizes that neither the file nor `sizes` tells stand at an example, which is given too.

    TileError where there is a fault at every example: the one at the first of them.
    """
    names = _without_value(path, sizes)
    return at_example(names, lambda at: read(path, {**sizes, **at})) if names else (read(path, sizes), {})


def _without_value(path: Path, sizes: Mapping[str, int | str]) -> list[str]:
    """The sizes of a kernel file that each call tells, but those that are given."""
    if path.suffix == ".tile" and path.is_file():
        from tile_eg.frontend.text import load_text

        template = load_text(read_text(path), str(path))
        return [n for n, v in template.sizes.items() if v is None and n not in template.searched and n not in sizes]
    made = at_each_call(path, sizes)
    return [n for n in made.sizes if n not in sizes] if made else []


def at_each_call(path: Path, sizes: Mapping[str, int | str]) -> AnySizeKernel | None:
    """The kernel of a Python file, where it has sizes or numbers from each call."""
    if path.suffix != ".py" or not path.is_file():
        return None
    from tile_eg.jit import Factory
    from tile_eg.jit.any_size import AnySizeKernel

    name, kernel = _one_kernel(path, sizes)
    with _faults_of(path):
        made = _with_parameters(name, kernel, sizes)[0] if isinstance(kernel, Factory) else kernel
    return made if isinstance(made, AnySizeKernel) else None


def read_text(path: Path, kinds: Iterable[str] = KINDS) -> str:
    """The file's text. TileError where there is none: no file, a folder, not UTF-8; the help lists files that end in `kinds`."""
    try:
        return path.read_text(encoding=WITH_OR_WITHOUT_MARK)
    except FileNotFoundError:
        raise TileError(f"there is no file '{path}'", help=_neighbours(path, kinds)) from None
    except IsADirectoryError:
        raise TileError(f"'{path}' is a folder, not a file", help=_neighbours(path / "any", kinds)) from None
    except UnicodeDecodeError as error:
        raise TileError(f"'{path}' is not UTF-8 text (byte {error.start})", help="save it as UTF-8") from None
    except OSError as error:
        raise TileError(f"cannot read '{path}': {why_unread(error)}") from None


MOST_NAMED = 12
"""Files of a folder that are named in a hint."""


def _neighbours(path: Path, kinds: Iterable[str]) -> str:
    folder = path.parent
    found = sorted(p.name for p in folder.iterdir() if p.suffix in kinds and p.is_file()) if folder.is_dir() else []
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return f"files in '{folder}': " + ", ".join(found[:MOST_NAMED]) + more if found else ""


def compiled(
    path: Path, sizes: Mapping[str, int | str], chip: str | None, search: SearchOptions | None = None, number: int | None = None
) -> Planned:
    """The file's kernel compiled for a chip (None: the default), or its program as it stands."""
    return compile_held(read(path, sizes), chip, search, number)


def compile_held(
    held: Kernel | Program | KeptKernel,
    chip: str | None,
    search: SearchOptions | None = None,
    number: int | None = None,
) -> Planned:
    """A kernel compiled as the options of the search say, or a program, in which nothing is searched, as it stands.

    So is a kernel that is kept as it is written. `number` is a schedule's as `tile-eg alternatives` gives them; None: the chosen
    one.
    """
    if not isinstance(held, Kernel):
        from tile_eg.search.kept import planned_kept

        if number is not None:
            what = "a program" if isinstance(held, Program) else "a kernel that is kept as it is written"
            raise TileError(f"--schedule {number}: {what} is one schedule, and has no others")
        planned = plan(held, chip) if isinstance(held, Program) else planned_kept(held, chip or DEFAULT_CHIP)
        if search and search.deterministic:
            refuse_any_order_in(planned.program, getattr(held, "source", ""))
        return planned
    search = tuned_before(held, chip, search)
    if number is not None:
        from tile_eg.explore import schedule_number

        return schedule_number(number, held, chip or DEFAULT_CHIP, search).candidate.planned
    lowered = lower(held, chip or DEFAULT_CHIP, search=search)
    for message in lowered.messages:
        complain(message)
    return lowered


def tuned_before(held: object, chip: str | None, search: SearchOptions | None) -> SearchOptions:
    """The options with the schedule that was tuned for the kernel, if there is one, which is told."""
    from tile_eg.search.tuned import settled

    options, told = settled(held, chip or DEFAULT_CHIP, search or search_options())
    for line in told:
        complain(line)
    return options


def for_all_sizes(
    path: Path, sizes: Mapping[str, int | str], chip: str | None, search: SearchOptions,
    points: Mapping[str, tuple[int, ...]], searched: bool = False, cached: bool = True,
) -> AnySize | None:  # fmt: skip
    """The file's kernel compiled once for all sizes that each call tells, but those that are given; None where it has no others.

    `points` are sizes at which it is priced; those that have a default are then open, too. TileError where there is no such text.
    """
    if not path.is_file() or path.suffix not in (".tile", ".py"):
        if points:
            raise TileError(f"--at has no meaning for '{path}': it is no kernel with sizes")
        return None
    options.check_clash(sizes, points)
    texts_of = _texts_of_tile if path.suffix == ".tile" else partial(_texts_of_python, searched=searched)
    found = texts_of(path, sizes, chip, search, points)
    if found is None:
        if points:
            help = 'in Python such a size is N = T.symbolic("N"), in `.tile` any in the brackets behind the kernel\'s name'
            what = f"--at {', '.join(points)}: no size of the kernel in '{path}' is left to a call by that name"
            raise TileError(what, help=help)
        return None
    name, texts = found
    texts.cached = cached
    from tile_eg.jit.any_size import text_for_all

    for size in points.keys() - set(texts.names):
        raise TileError(f"`{name}` has no size `{size}` to be priced at", help=did_you_mean(size, texts.names))
    with _faults_of(path):
        one = text_for_all(name, texts, sizes)
    for message in one.told:
        complain(message)
    return one


def _texts_of_tile(
    path: Path, sizes: Mapping[str, int | str], chip: str | None, search: SearchOptions, points: Mapping[str, tuple[int, ...]]
) -> tuple[str, CachedOneText] | None:
    from tile_eg.frontend.text import load_text

    template = load_text(read_text(path), str(path))
    open_ = {*template.of_texts, *points}.difference(of_calls(sizes))
    names = tuple(n for n in template.sizes if n in open_)
    if set(names) <= sizes.keys():
        return None
    from tile_eg.jit.one_text_cache import CachedOneText

    template.check_numbers(sizes)
    options.check_sizes({n: v for n, v in sizes.items() if n not in template.numbers}, template.of_calls())
    build = lambda at: template.instantiate({**sizes, **at})  # noqa: E731
    left, text = tuple(n for n in names if n not in sizes), (template.exact, tuple(sorted(sizes.items())))
    return template.name, CachedOneText(build, left, chip or DEFAULT_CHIP, search, points, text)


def _texts_of_python(
    path: Path, sizes: Mapping[str, int | str], chip: str | None, search: SearchOptions, points: Mapping[str, tuple[int, ...]],
    searched: bool = False,
) -> tuple[str, CachedOneText] | None:
    from tile_eg.jit import Factory
    from tile_eg.jit.any_size import AnySizeKernel

    name, kernel = _one_kernel(path, sizes)
    kernel = kernel.searched() if searched else kernel
    if isinstance(kernel, Factory):
        kernel = _with_parameters(name, kernel, sizes)[0]
    if not isinstance(kernel, AnySizeKernel):
        return None
    options.check_sizes({n: v for n, v in sizes.items() if n in kernel.open and n not in kernel.numbers}, kernel.open)
    from tile_eg.jit.one_text_cache import CachedOneText

    names = tuple(n for n in kernel.sizes if n not in of_calls(sizes))
    return name, CachedOneText(kernel.tree, names, chip or DEFAULT_CHIP, search, points)


def _from_tile(text: str, path: Path, sizes: Mapping[str, int | str], shapes: Mapping[str, tuple[int, ...]]) -> Kernel:
    from tile_eg.frontend.text import load_text

    template = load_text(text, str(path))
    options.check_sizes({n: v for n, v in sizes.items() if n not in template.numbers}, template.of_calls())
    try:
        return template.instantiate({**template.sizes_of(shapes), **sizes})
    except NoBlocks:
        shown = ", ".join(f"{n}={v}" for n, v in sizes.items())
        raise TileError(f"{template.name} has no blocks at {shown}: there is nothing to compile") from None


def _from_program(text: str, path: Path, sizes: Mapping[str, int | str]) -> Program:
    from tile_eg.ir.program.parser import parse_program

    if sizes:
        raise TileError(f"--set has no meaning for '{path}': the sizes of a program are fixed")
    return parse_program(text, str(path))


def _one_kernel(path: Path, sizes: Iterable[str] = ()) -> tuple[str, CompiledKernel | AnySizeKernel | Factory]:
    """The only kernel of a module, with its name there. Of a function that gives kernels and one that it gave it is that one, or
    the function where `sizes` has a parameter of it."""
    from tile_eg.jit import CompiledKernel, Factory
    from tile_eg.jit.any_size import AnySizeKernel
    from tile_eg.jit.in_a_row import LaunchesInARow

    kinds = CompiledKernel | AnySizeKernel | Factory | LaunchesInARow
    found = {n: v for n, v in _module(path).items() if isinstance(v, kinds)}
    kernels: list[tuple[str, Any]] = [*dict(zip(map(id, found.values()), found.items(), strict=True)).values()]
    if (made := factory_and_its_own([v for _, v in kernels])) and len(kernels) > 1:
        chosen = [(n, v) for n, v in kernels if (v is made) == bool({*sizes} & {*inspect.signature(made.function).parameters})]
        kernels = chosen if len(chosen) == 1 else kernels
    if len(kernels) != 1:
        if not kernels:
            raise TileError(f"'{path}' holds no kernel", help="one function of the module stands under @tile_eg.jit")
        names = [n for n, _ in kernels]
        help = f"for each a file that holds it alone: from {path.stem} import {names[0]}"
        raise TileError(f"'{path}' holds several kernels ({', '.join(names)})", help=help)
    name, kernel = kernels[0]
    return name, kernel if isinstance(kernel, Factory) else one_of(name, kernel)


def _from_python(path: Path, sizes: Mapping[str, int | str], searched: bool = False) -> Kernel | KeptKernel:
    from tile_eg.jit import CompiledKernel, Factory

    name, kernel = _one_kernel(path, sizes)
    kernel = kernel.searched() if searched else kernel
    if isinstance(kernel, CompiledKernel):
        return _with_tiles(name, kernel.compiled if searched else kernel.kernel, sizes)
    made = _made(name, kernel, sizes) if isinstance(kernel, Factory) else _at(kernel, sizes, name)
    return made.compiled if searched else made.kernel  # what is searched leaves out what nobody sees


def _at(kernel: AnySizeKernel, sizes: Mapping[str, int | str], name: str, parameters: Iterable[str] = ()) -> CompiledKernel:
    """A kernel that has its sizes from each call, at these."""
    sizes = sizes_of_this_launch(sizes, kernel.open)
    for size in sizes:
        if size not in kernel.open:
            what = "parameter or size" if parameters else "size"
            raise TileError(f"`{name}` has no {what} called `{size}`", help=did_you_mean(size, [*parameters, *kernel.open]))
    _check_all(name, kernel.open, sizes)
    options.check_sizes({n: v for n, v in sizes.items() if n not in kernel.numbers}, kernel.open)
    return kernel.with_sizes(**sizes)


def _with_tiles(name: str, kernel: Kernel | KeptKernel, sizes: Mapping[str, int | str]) -> Kernel | KeptKernel:
    """A kernel without parameters; of the sizes that the search is to find, some may be given."""
    known = kernel.open if isinstance(kernel, OpenKernel) else ()
    sizes = sizes_of_this_launch(sizes, known)
    for size in sizes:
        if size not in known:
            help = did_you_mean(size, known)
            raise TileError(f"--set {size} has no meaning for '{name}': it has no such parameter", help=help)
    given = {n: int(size) for n, size in sizes.items() if size != AUTO}
    if not isinstance(kernel, OpenKernel) or not given:
        return kernel
    left, build = [n for n in known if n not in given], kernel.build
    return searchable(open_kernel(left, lambda found: build({**given, **found}))) if left else build(given)


def _check_all(name: str, needed: Iterable[str], sizes: Mapping[str, int | str]) -> None:
    if missing := [n for n in needed if n not in sizes]:
        values = " ".join(f"--set {n}=512" for n in missing)
        raise TileError(f"`{name}` needs a value for {', '.join(missing)}", help=f"give it: {values}")


def _module(path: Path) -> dict[str, Any]:
    """What a Python file defines. A fault in it is the user's: told with its line."""
    sys.path.insert(0, str(path.parent))
    try:
        return runpy.run_path(str(path), run_name=path.stem)
    except (TileError, InternalError):
        raise
    except SyntaxError as error:
        raise _not_python(error, path) from None
    except (Exception, SystemExit) as error:
        line = next((f.lineno for f in reversed(traceback.extract_tb(error.__traceback__)) if f.filename == str(path)), None)
        raise _raised(error, path, line) from error
    finally:
        sys.path.remove(str(path.parent))


@contextmanager
def _faults_of(path: Path) -> Iterator[None]:
    """What a line of the file raises while its kernel is made is the user's, too; what tile_eg raises is not."""
    try:
        yield
    except TileError:
        raise
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        if last.filename != str(path):
            raise
        raise _raised(error, path, last.lineno) from error


def _raised(error: BaseException, path: Path, line: int | None) -> TileError:
    """What a file raised while it was run, at its line."""
    text = linecache.getline(str(path), line).rstrip() if line else ""
    span = Span(str(path), line, len(text) - len(text.lstrip()) + 1, line, len(text) + 1) if line else None
    within = isinstance(error, ImportError) and "relative import" in str(error)
    help = f"to take it as a part of its package: a file with `from {path.parent.name}.{path.stem} import ...`" if within else ""
    told = TileError(f"this raised {type(error).__name__}: {error}", span, help=help)
    told.source = "".join(linecache.getlines(str(path)))
    return told


def _not_python(error: SyntaxError, path: Path) -> TileError:
    """A text that Python does not read, of the file itself or of one that it imports, at its place."""
    file, line, column = error.filename or str(path), error.lineno or 1, error.offset or 1
    told = TileError(f"this is not Python: {error.msg}", Span(file, line, column, line, column + 1))
    told.source = "".join(linecache.getlines(file))
    return told


def _with_parameters(
    name: str, factory: Factory, sizes: Mapping[str, int | str]
) -> tuple[CompiledKernel | AnySizeKernel, dict[str, int | str]]:
    """What the function gives for those of the sizes that are its parameters, and the others."""
    _check_all(name, [n for n, p in factory.parameters.items() if p.default is p.empty], sizes)
    own = {n: v for n, v in sizes.items() if factory.decides(n, sizes)}
    options.check_sizes({n: v for n, v in own.items() if isinstance(v, int)})
    return one_of(name, factory.compile(**own)), {n: v for n, v in sizes.items() if n not in own}


def _made(name: str, factory: Factory, sizes: Mapping[str, int | str]) -> CompiledKernel:
    """The kernel for these sizes: parameters of the function under @tile_eg.jit, and sizes that the kernel has from each call."""
    from tile_eg.jit.any_size import AnySizeKernel

    parameters = factory.parameters
    made, others = _with_parameters(name, factory, sizes)
    if isinstance(made, AnySizeKernel):
        return _at(made, others, name, parameters)
    for size in sizes_of_this_launch(others, ()):
        raise TileError(f"`{name}` has no parameter called `{size}`", help=did_you_mean(size, parameters))
    return made
