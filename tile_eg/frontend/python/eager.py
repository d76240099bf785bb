"""Functions that launch blocks themselves, and are called with their arrays: `A: T.Tensor[[M, K], T.float16]` in the body,
`T.const`, `T.empty`, `with T.Kernel(...)`, `return C`.

What stands before the launch is Python, and is run at the numbers and sizes of a call; which launch it comes to is the kernel,
whose body is read from its source like any other.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from tile_eg import language
from tile_eg.errors import TileError, attempted
from tile_eg.frontend.python.returned import evaluated
from tile_eg.frontend.python.source import FunctionSource, Written, read_function
from tile_eg.language.eager import Made, sizes_known
from tile_eg.language.kernels import ElementType, PrimFunc, TensorType

_ASKED = "<declared>"
_LAUNCHED = "<launched>"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LATER = "two launches that follow each other are two kernels: a function for each, called one after the other"


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
        with sizes_known(sizes):
            return self._launch(_Run(self.found), numbers)

    def _launch(self, run: _Run, numbers: Mapping[str, Any]) -> Launched:
        given = {n: run.declared_as(n, self.annotation(n)) for n in self.tensors}
        found = _compiled(self, run)(**given, **numbers)
        if not isinstance(found, Launched):
            message = f"{self.function.__name__} ended without a launch"
            raise _at(self.found, self.found.node, message, "with T.Kernel(blocks) as b:")
        return found


@dataclass(frozen=True, eq=False)
class Launched:
    """The kernel that a call comes to: its function, and the positions of the tensors that are given back, and of those that are
    made and kept. `several`: a list of them is given back."""

    function: PrimFunc
    out_idx: tuple[int, ...]
    workspace_idx: tuple[int, ...]


@dataclass(eq=False)
class _Run:
    """One run of what stands before the launch: what it declares its tensors as."""

    found: FunctionSource
    declared: dict[str, Any] = field(default_factory=dict)
    places: dict[str, ast.AST] = field(default_factory=dict)
    nodes: list[Any] = field(default_factory=list)

    def declared_as(self, name: str, type_: Any, place: int | None = None) -> Any:
        if isinstance(type_, TensorType | ElementType):
            self.declared[name] = type_
            self.places[name] = self.nodes[place] if place is not None else self.found.node
        return type_

    def launched(self, place: int, names: Mapping[str, Any], given: Any) -> Launched:
        """The launch at a place, with the names that are bound there, and what is returned behind it."""
        node, made = self.nodes[place], [n for n, v in names.items() if isinstance(v, Made)]
        returned = [] if given is None else list(given) if isinstance(given, tuple | list) else [given]
        outputs = [next((n for n in made if names[n] is v), None) for v in returned]
        if None in outputs:
            message, help = "what is returned is no tensor of T.empty", "C = T.empty((M, N), T.float16) before the launch"
            raise _at(self.found, node.items[0].context_expr, message, help)
        types = {**self.declared, **{n: TensorType(names[n].shape, names[n].dtype) for n in made}}
        positions = list(types)
        out = tuple(positions.index(n) for n in outputs if n)
        kept = tuple(positions.index(n) for n in made if n not in outputs)
        return Launched(PrimFunc(self._function(node, types, names), {}), out, kept)

    def _function(self, node: ast.With, types: Mapping[str, Any], names: Mapping[str, Any]) -> Any:
        """A function of the tensors with the launch as its body."""
        arguments = [self._argument(n, self.places.get(n, node.items[0].context_expr)) for n in types]
        whole, own = self.found.node, {n: v for n, v in names.items() if n not in types}
        args = ast.arguments([], arguments, None, [], [], None, [])
        made = ast.copy_location(ast.FunctionDef(whole.name, args, [node], [], None), whole)
        bound = {**self.found.names, **own, **{f"<{n}>": t for n, t in types.items()}}
        return Written(FunctionSource(self.found.source, made, bound))

    def _argument(self, name: str, place: ast.AST) -> ast.arg:
        type_ = ast.copy_location(ast.Name(f"<{name}>", ast.Load()), place)
        return ast.copy_location(ast.arg(name, type_), place)


def eager(function: Any, names: Mapping[str, Any]) -> Eager | None:
    """A function as one that launches blocks itself, or None for any other. TileError where two of its launches follow each
    other. `names` are locals of where it stands."""
    if not isinstance(function, FunctionType):
        return None
    found = attempted(lambda: read_function(function, names))
    if isinstance(found, TileError) or not isinstance(found.node, ast.FunctionDef):
        return None
    if not any(_launches(s, found.names) for s in _own(found.node.body)):
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


def _launches(s: ast.stmt, names: Mapping[str, Any]) -> bool:
    """Whether a statement is a launch."""
    call = s.items[0].context_expr if isinstance(s, ast.With) else None
    return isinstance(call, ast.Call) and _meant(call.func, names) is language.Kernel


def _meant(node: ast.expr, names: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and names.get(node.value.id) is language:
        return getattr(language, node.attr, None)
    return names.get(node.id) if isinstance(node, ast.Name) else None


def _compiled(eager: Eager, run: _Run) -> Any:
    """The function, which ends at its launch and gives that."""
    node, source = run.found.node, run.found.source
    parameters = [ast.copy_location(ast.arg(n), node) for n in eager.signature.parameters]
    args = ast.arguments([], [], None, parameters, [None] * len(parameters), None, [])
    body = _until_launch(node.body, None, eager, run)
    made = ast.copy_location(ast.FunctionDef(node.name, args, body, [], None), node)
    module = ast.fix_missing_locations(ast.Module([made], []))
    names = {**run.found.names, _ASKED: run.declared_as, _LAUNCHED: run.launched}
    exec(compile(module, source.file, "exec"), names)  # noqa: S102  # the author's own function, up to its launch
    return names[node.name]


def _until_launch(body: Sequence[ast.stmt], after: ast.Return | None, eager: Eager, run: _Run) -> list[ast.stmt]:
    """The statements with a return of the launch in the place of it; `after` is the return that follows them."""
    found: list[ast.stmt] = []
    for n, s in enumerate(body):
        rest = body[n + 1 :]
        follows = rest[0] if rest and isinstance(rest[0], ast.Return) else after
        if _declares(s) and s.target.id in eager.tensors:  # type: ignore[attr-defined]
            found.append(_declaration(s, run))  # type: ignore[arg-type]
        elif _launches(s, run.found.names):
            if rest and not isinstance(rest[0], ast.Return):
                raise _at(run.found, rest[0], "a kernel is one launch, and nothing stands behind it but `return`", _LATER)
            return [*found, _return(s, follows, run)]  # type: ignore[arg-type]
        else:
            found.append(_inside(s, follows if not rest or follows is rest[0] else None, eager, run))
    return found


def _inside(s: ast.stmt, after: ast.Return | None, eager: Eager, run: _Run) -> ast.stmt:
    """A statement with the launches in its branches."""
    if not isinstance(s, ast.If) or not any(_launches(x, run.found.names) or _declares(x) for x in _own([s])):
        return s
    branches = (_until_launch(b, after, eager, run) for b in (s.body, s.orelse))
    return ast.copy_location(ast.If(s.test, *branches), s)


def _called(name: str, place: ast.AST, arguments: list[ast.expr]) -> ast.Call:
    return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), arguments, []), place)


def _declaration(s: ast.AnnAssign, run: _Run) -> ast.stmt:
    """`A: T.Tensor(...)` as `A = declared_as("A", T.Tensor(...), place)`."""
    assert isinstance(s.target, ast.Name)
    run.nodes.append(s.target)
    call = _called(_ASKED, s, [ast.Constant(s.target.id), s.annotation, ast.Constant(len(run.nodes) - 1)])
    return ast.copy_location(ast.Assign([ast.copy_location(ast.Name(s.target.id, ast.Store()), s)], call), s)


def _return(s: ast.With, after: ast.Return | None, run: _Run) -> ast.stmt:
    """`with T.Kernel(...): ...` and the `return` behind it as `return launched(place, locals(), returned)`."""
    last = s.body[-1]
    if isinstance(last, ast.Return) and len(s.body) > 1:
        s, after = ast.copy_location(ast.With(s.items, s.body[:-1]), s), last
    run.nodes.append(s)
    given = after.value if after is not None and after.value is not None else ast.Constant(None)
    here = _called("locals", s.items[0].context_expr, [])
    return ast.copy_location(ast.Return(_called(_LAUNCHED, s, [ast.Constant(len(run.nodes) - 1), here, given])), s)


def _at(found: FunctionSource, node: ast.AST, message: str, help: str) -> TileError:
    error = TileError(message, found.source.span(node), help=help)
    error.source = found.source.text
    return error
