"""Functions that launch blocks themselves, and are called with their arrays: `A: T.Tensor[[M, K], T.float16]` in the body,
`T.const`, `T.empty`, `with T.Kernel(...)`, `return C`.

What stands around the launches is Python, and is run at the numbers and sizes of a call; the launches that it comes to are the
kernel, and their bodies are read from their source like any other.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from traceback import walk_tb
from types import FunctionType
from typing import Any

from tile_eg import language
from tile_eg.errors import TileError, attempted, did_you_mean
from tile_eg.frontend.of_calls import OfCall
from tile_eg.frontend.python.instead import near_word
from tile_eg.frontend.python.returned import evaluated
from tile_eg.frontend.python.source import FunctionSource, Written, is_launch, read_function
from tile_eg.ir.passed import NeedsNumber
from tile_eg.language.eager import Made, sizes_known
from tile_eg.language.kernels import ElementType, PrimFunc, TensorType
from tile_eg.ops.records import record

_ASKED = "<declared>"
_LAUNCHED = "<launched>"
_RETURNED = "<returned>"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LATER = "what is to be computed behind the last launch stands where the function is called, or in a launch of its own"


@dataclass
class Eager:
    """A function that launches blocks itself. `tensors` are those of its parameters that it declares as tensors (or numbers) of a
    call, in their order; the others are known when a kernel is compiled. `names` are locals of where it stands."""

    function: FunctionType
    names: Mapping[str, Any]
    tensors: tuple[str, ...]

    @property
    def found(self) -> FunctionSource:
        """Its definition, with the names of its module as they are now."""
        return read_function(self.function, self.names)

    @property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.function)

    def annotation(self, name: str) -> Any:
        return evaluated(self.signature.parameters[name].annotation, self.found.names)

    def declared(self, numbers: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
        """What the tensors are declared as, and the sizes of `T.const`, which are known by their names alone; as far as the
        function gets so."""
        run = _Run(self.found)
        with sizes_known({}) as asked:
            try:
                self._launch(run, numbers)
            except TileError:
                if not run.declared:
                    raise
        return run.declared, asked

    def at(self, numbers: Mapping[str, Any], sizes: Mapping[str, int]) -> Launched:
        """The kernel at the values of its other parameters and the sizes of `T.const`. TileError at the user's line."""
        if zero := [n for n, value in sizes.items() if value == 0]:
            message = f"{', '.join(zero)} {'is' if len(zero) == 1 else 'are'} 0, and a size of T.const is at least 1"
            raise _at(self.found, self.found.node, message, f'{zero[0]} = T.dynamic("{zero[0]}") may be 0: nothing is done then')
        with sizes_known(sizes):
            return self._launch(_Run(self.found), numbers)

    def _launch(self, run: _Run, numbers: Mapping[str, Any]) -> Launched:
        given = {n: run.declared_as(n, self.annotation(n)) for n in self.tensors}
        run.of_calls = {n: v for n, v in numbers.items() if isinstance(v, OfCall)}
        try:
            found = _compiled(self, run)(**given, **numbers)
        except (NameError, TypeError, AttributeError) as error:
            raise _own_mistake(run.found, error) or error from None
        if not isinstance(found, Launched):
            message = f"{self.function.__name__} ended without a launch"
            raise _at(self.found, self.found.node, message, "with T.Kernel(blocks) as b:")
        return found


@record(eq=False)
class Launched:
    """The kernel that a call comes to: its function, and the positions of the tensors that are given back, and of those that are
    made and kept."""

    function: PrimFunc
    out_idx: tuple[int, ...]
    workspace_idx: tuple[int, ...]


@dataclass(eq=False)
class _Run:
    """One run of what stands around the launches: what it declares its tensors as, and its launches, each with the names that
    are bound there. `of_calls` are numbers that each call of the kernel passes."""

    found: FunctionSource
    declared: dict[str, Any] = field(default_factory=dict)
    places: dict[str, ast.AST] = field(default_factory=dict)
    nodes: list[Any] = field(default_factory=list)
    launches: list[tuple[ast.With, dict[str, Any]]] = field(default_factory=list)
    of_calls: dict[str, OfCall] = field(default_factory=dict)

    def declared_as(self, name: str, type_: Any, place: int | None = None) -> Any:
        if isinstance(type_, TensorType | ElementType):
            self.declared[name] = type_
            self.places[name] = self.nodes[place] if place is not None else self.found.node
        return type_

    def launched(self, place: int, names: Mapping[str, Any]) -> None:
        """A launch at a place, with the names that are bound there."""
        self.launches.append((self.nodes[place], dict(names)))

    def returned(self, names: Mapping[str, Any], given: Any = None) -> Launched | None:
        """The launches up to a return, with the names that are bound there; None where there was none."""
        if not self.launches:
            return None
        last, made = self.launches[-1][0], [n for n, v in names.items() if isinstance(v, Made)]
        values = [] if given is None else list(given) if isinstance(given, tuple | list) else [given]
        outputs = [next((n for n in made if names[n] is v), None) for v in values]
        if None in outputs:
            message, help = "what is returned is no tensor of T.empty", "C = T.empty((M, N), T.float16) before the launch"
            raise _at(self.found, last.items[0].context_expr, message, help)
        self._check_same(names)
        types = {**self.declared, **{n: TensorType(names[n].shape, names[n].dtype) for n in made}}
        if changed := [n for n, v in self.of_calls.items() if names.get(n) is not v]:
            raise NeedsNumber(f"{changed[0]}, which each call tells, stands for another number at the launch")
        types |= {n: ElementType("float32") for n in self.of_calls}
        positions = list(types)
        out = tuple(positions.index(n) for n in outputs if n)
        kept = tuple(positions.index(n) for n in made if n not in outputs)
        return Launched(PrimFunc(self._written(types), {}), out, kept)

    def _check_same(self, names: Mapping[str, Any]) -> None:
        """TileError where a name stands for one tensor at a launch, and for another one behind it."""
        for node, there in self.launches:
            for n, v in there.items():
                if isinstance(v, TensorType) and names.get(n) is not v:
                    message = f"`{n}` is another tensor at this launch than behind it"
                    raise _at(self.found, node.items[0].context_expr, message, "a name of its own for each tensor")

    def _written(self, types: Mapping[str, Any]) -> Any:
        """A function of the tensors with the launches as its body."""
        parts = tuple(self._function(node, types, names) for node, names in self.launches)
        return Written(parts[0], parts if len(parts) > 1 else ())

    def _function(self, node: ast.With, types: Mapping[str, Any], names: Mapping[str, Any]) -> FunctionSource:
        """A function of the tensors with a launch as its body."""
        arguments = [self._argument(n, self.places.get(n, node.items[0].context_expr)) for n in types]
        whole, own = self.found.node, {n: v for n, v in names.items() if n not in types}
        args = ast.arguments([], arguments, None, [], [], None, [])
        made = ast.copy_location(ast.FunctionDef(whole.name, args, [node], [], None), whole)
        bound = {**self.found.names, **own, **{f"<{n}>": t for n, t in types.items()}}
        return FunctionSource(self.found.source, made, bound)

    def _argument(self, name: str, place: ast.AST) -> ast.arg:
        type_ = ast.copy_location(ast.Name(f"<{name}>", ast.Load()), place)
        return ast.copy_location(ast.arg(name, type_), place)


def eager(function: Any, names: Mapping[str, Any]) -> Eager | None:
    """A function as one that launches blocks itself, or None for any other. `names` are locals of where it stands."""
    if not isinstance(function, FunctionType):
        return None
    found = attempted(lambda: read_function(function, names))
    if isinstance(found, TileError) or not isinstance(found.node, ast.FunctionDef):
        return None
    if not any(is_launch(s, found.names) for s in _own(found.node.body)):
        return None
    made = Eager(function, dict(names), ())
    asked = {s.target.id for s in _own(found.node.body) if _declares(s)}  # type: ignore[attr-defined]
    made.tensors = tuple(n for n in made.signature.parameters if n in asked or isinstance(made.annotation(n), TensorType))
    return made


def _own(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a function, without those of functions in it."""
    for s in body:
        yield s
        if not isinstance(s, _FUNCTIONS):
            for part in ("body", "orelse", "finalbody"):
                yield from _own(getattr(s, part, ()))


def _declares(s: ast.stmt) -> bool:
    return isinstance(s, ast.AnnAssign) and s.value is None and isinstance(s.target, ast.Name)


def _compiled(eager: Eager, run: _Run) -> Any:
    """The function, which gives its launches."""
    node, source = run.found.node, run.found.source
    parameters = [ast.copy_location(ast.arg(n), node) for n in eager.signature.parameters]
    args = ast.arguments([], [], None, parameters, [None] * len(parameters), None, [])
    body = [*_with_launches(node.body, False, eager, run), _return(ast.copy_location(ast.Return(), node.body[-1]))]
    made = ast.copy_location(ast.FunctionDef(node.name, args, body, [], None), node)
    module = ast.fix_missing_locations(ast.Module([made], []))
    names = {**run.found.names, _ASKED: run.declared_as, _LAUNCHED: run.launched, _RETURNED: run.returned}
    exec(compile(module, source.file, "exec"), names)  # noqa: S102  # the author's own function, without its launches
    return names[node.name]


def _with_launches(body: Sequence[ast.stmt], more: bool, eager: Eager, run: _Run) -> list[ast.stmt]:
    """The statements, which note their launches and give what they return. `more`: others that launch stand behind them."""
    names = run.found.names
    last = max((n for n, s in enumerate(body) if any(is_launch(x, names) for x in _own([s]))), default=len(body))
    found: list[ast.stmt] = []
    for n, s in enumerate(body):
        if n > last and not more and not isinstance(s, ast.Return):
            raise _at(run.found, s, "nothing stands behind the last launch but `return`", _LATER)
        if _declares(s) and s.target.id in eager.tensors:  # type: ignore[attr-defined]
            found.append(_declaration(s, run))  # type: ignore[arg-type]
        elif is_launch(s, names):
            found += _launch(s, run)  # type: ignore[arg-type]
        elif isinstance(s, ast.Return):
            found.append(_return(s))
        else:
            found.append(_inside(s, more or n < last, eager, run))
    return found


def _inside(s: ast.stmt, more: bool, eager: Eager, run: _Run) -> ast.stmt:
    """A statement with the launches and returns in its branches, or in the body of a loop."""
    if isinstance(s, ast.If):
        branches = (_with_launches(b, more, eager, run) for b in (s.body, s.orelse))
        return ast.copy_location(ast.If(s.test, *branches), s)
    if isinstance(s, ast.For):
        body, after = _with_launches(s.body, True, eager, run), _with_launches(s.orelse, more, eager, run)
        return ast.copy_location(ast.For(s.target, s.iter, body, after, None), s)
    return s


def _called(name: str, place: ast.AST, arguments: list[ast.expr]) -> ast.Call:
    return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), arguments, []), place)


def _declaration(s: ast.AnnAssign, run: _Run) -> ast.stmt:
    """`A: T.Tensor(...)` as `A = declared_as("A", T.Tensor(...), place)`."""
    assert isinstance(s.target, ast.Name)
    run.nodes.append(s.target)
    call = _called(_ASKED, s, [ast.Constant(s.target.id), s.annotation, ast.Constant(len(run.nodes) - 1)])
    return ast.copy_location(ast.Assign([ast.copy_location(ast.Name(s.target.id, ast.Store()), s)], call), s)


def _launch(s: ast.With, run: _Run) -> list[ast.stmt]:
    """`with T.Kernel(...): ...` as `launched(place, locals())`, and the `return` that ends it behind that."""
    last, rest = s.body[-1], []
    if isinstance(last, ast.Return) and len(s.body) > 1:
        s, rest = ast.copy_location(ast.With(s.items, s.body[:-1]), s), [_return(last)]
    run.nodes.append(s)
    here = _called("locals", s.items[0].context_expr, [])
    call = _called(_LAUNCHED, s, [ast.Constant(len(run.nodes) - 1), here])
    return [ast.copy_location(ast.Expr(call), s), *rest]


def _return(s: ast.Return) -> ast.Return:
    """`return C` as `return returned(locals(), C)`."""
    given = [s.value] if s.value is not None else []
    return ast.copy_location(ast.Return(_called(_RETURNED, s, [_called("locals", s, []), *given])), s)


def _at(found: FunctionSource, node: ast.AST, message: str, help: str) -> TileError:
    error = TileError(message, found.source.span(node), help=help)
    error.source = found.source.text
    return error


def _own_mistake(found: FunctionSource, error: NameError | TypeError | AttributeError) -> TileError | None:
    """What a line of the function raised as a mistake at its place: a name that it does not know, or tensors that it computes
    with. None of anything else."""
    frames = [f for f in walk_tb(error.__traceback__) if f[0].f_code.co_filename != language.__file__]
    frame, line = frames[-1]
    if frame.f_code.co_filename != found.source.file:
        return None
    if isinstance(error, NameError):
        named: list[Any] = [n for n in ast.walk(found.node) if isinstance(n, ast.Name) and (n.id, n.lineno) == (error.name, line)]
        message, help = f"unknown name `{error.name}`", did_you_mean(str(error.name), frame.f_locals)
    elif isinstance(error, AttributeError) and error.obj is language:
        word = str(error.name)
        named = [n for n in ast.walk(found.node) if isinstance(n, ast.Attribute) and (n.attr, n.lineno) == (word, line)]
        message, help = f"T has no word {word}", near_word("T", language, word)
    else:
        types = "'Made'" in str(error) or "'TensorType'" in str(error)
        named = [s for s in _own(found.node.body) if types and s.lineno <= line <= (s.end_lineno or 0)][-1:]
        message, help = "a tensor has no elements outside of a launch", "compute with tiles, in `with T.Kernel(...)`"
    return _at(found, named[0], message, help) if named else None
