"""Numbers of 4 bits (`i4`, and the floats `f4e2m1` and `f4e1m2`), of which two share a byte, the even one in its lower half:
memories hold bytes.

A tensor of them is one of bytes with half as many columns, and so is a buffer. What is read of a buffer of i4 is a tile of f16
beside it, which is made of the bytes whenever they are loaded. Floats are read by products with scales alone, as bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from tile_eg.errors import Span, TileError
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.index import Expr
from tile_eg.ops.types import E8M0, F16, HALVES, I4, I8, PACKED, U8, DType

N = TypeVar("N")
KEPT, TENSORS = "a kernel that is kept as it is written", "expressions of whole tensors"
SCALED_PRODUCT = "scaled(a, sa) @ scaled(b, sb).T, in Python T.gemm_mx(a, sa, b, sb, c, transpose_B=True)"
ROW = 64
"""Numbers of 4 bits in a block of 32 bytes."""


def with_bytes(kernel: kn.Kernel) -> kn.Kernel:
    """The kernel without numbers of 4 bits. TileError where they do not lie in whole bytes, or where a kernel makes them."""
    places: tuple[kn.Tensor | kn.Alloc, ...] = (*kernel.tensors, *kn.allocs(kernel.body))
    if not any(p.dtype in HALVES for p in places) and not _casts(kernel.body):
        return kernel
    found = _Bytes(kernel)
    tensors = tuple(_halved(t) if t.dtype in HALVES else t for t in kernel.tensors)
    return replace(kernel, tensors=tensors, body=tuple(found.statements(kernel.body)))


def whole_bytes(dtype: DType, where: str, span: Span | None) -> DType:
    """The element type. TileError for numbers of 4 bits and for scales, which are not there in `where`."""
    if dtype not in (*HALVES, E8M0):
        return dtype
    what = "scales (e8m0)" if dtype is E8M0 else "numbers of 4 bits"
    help = "write the kernel with buffers of its own and no flags"
    help += "; here take bytes: x & 15 and x >> 4 are the numbers" if dtype is I4 else ""
    raise TileError(f"{what} are not there in {where}", span, help=help)


def _nodes(tree: Any) -> Iterator[Any]:
    if isinstance(tree, tuple):
        for part in tree:
            yield from _nodes(part)
    elif is_dataclass(tree) and not isinstance(tree, Expr | DType):
        yield tree
        for f in fields(tree):
            if f.compare:
                yield from _nodes(getattr(tree, f.name))


def _casts(body: tuple[kn.Stmt, ...]) -> bool:
    return any(isinstance(n, kn.Cast) and n.dtype in HALVES for n in _nodes(body))


def _halved(place: Any) -> Any:
    """A tensor or a buffer as the bytes that hold it."""
    if any(n and n[-1] % 2 for n in (place.shape, getattr(place, "seen", ()))):
        message = f"`{place.name}` has rows of {place.shape[-1]} numbers of 4 bits, and two share a byte"
        raise TileError(message, place.span, help="give it an even number of columns")
    sizes = {f: (*n[:-1], n[-1] // 2) for f in ("shape", "seen") if (n := getattr(place, f, ()))}
    return replace(place, dtype=I8 if place.dtype is I4 else U8, **sizes)


class _Bytes:
    """Rewrites the statements of one kernel."""

    def __init__(self, kernel: kn.Kernel) -> None:
        places: tuple[kn.Tensor | kn.Alloc, ...] = (*kernel.tensors, *kn.allocs(kernel.body))
        self.dtypes = {p.name: p.dtype for p in places if p.dtype in HALVES}
        self.tensors = {t.name for t in kernel.tensors if t.dtype is I4}
        self.buffers = {a.name: a for a in kn.allocs(kernel.body) if a.dtype is I4}
        taken = {t.name for t in kernel.tensors} | {a.name for a in kn.allocs(kernel.body)}
        self.numbers: dict[str, str] = {}
        for name in self.buffers:
            self.numbers[name] = next(n for k in range(1, len(taken) + 2) if (n := name + "_f16" * k) not in taken)
            taken.add(self.numbers[name])
        self.read = set(self._read(kernel.body))

    def _read(self, body: Iterable[kn.Stmt]) -> Iterator[str]:
        """The buffers whose numbers are read; not those of which bytes are copied alone."""
        for s in kn.assigns(body):
            if not self.is_packed(s.target):
                yield from (n.name for n in _nodes(s.value) if isinstance(n, kn.Region) and n.name in self.buffers)

    def is_packed(self, e: Any) -> bool:
        return isinstance(e, kn.Region) and e.name in self.dtypes

    def statements(self, body: Iterable[kn.Stmt]) -> Iterator[kn.Stmt]:
        for s in body:
            match s:
                case kn.Alloc() if s.dtype in HALVES:
                    yield from self.alloc(s)
                case kn.For() | kn.Parallel():
                    yield replace(s, body=tuple(self.statements(s.body)))  # type: ignore[arg-type]
                case kn.If():
                    yield replace(s, then=tuple(self.statements(s.then)), otherwise=tuple(self.statements(s.otherwise)))
                case kn.Assign() if self.is_packed(s.target):
                    yield from self.filled(s)
                case kn.Assign():
                    yield replace(s, value=self.value(s.value))
                case _:
                    yield s

    def alloc(self, s: kn.Alloc) -> Iterator[kn.Stmt]:
        if len(s.shape) > 1 and s.shape[-1] % ROW:
            message = f"`{s.name}` has rows of {s.shape[-1]} numbers of 4 bits, and a block of 32 bytes holds {ROW}"
            raise TileError(message, s.span, help=f"give it a multiple of {ROW} columns")
        yield _halved(s)
        if s.name in self.read:
            yield replace(s, name=self.numbers[s.name], dtype=F16, level="", slots=0)

    def filled(self, s: kn.Assign) -> Iterator[kn.Stmt]:
        """A load, a store, a copy or a fill of bytes, and what is read of them then."""
        dtype = self.dtypes[s.target.name]
        value = s.value.x if isinstance(s.value, kn.Cast) and s.value.dtype is dtype else s.value
        if isinstance(value, kn.Number) and (dtype is I4 or value.value == 0):
            made: kn.TileExpr = _both(value)
        elif isinstance(value, kn.Region) and self.dtypes.get(value.name) is dtype and not s.atomic:
            made = self.half(value)
        else:
            raise TileError(
                f"`{s.target.name}` holds numbers of 4 bits, which no value is rounded to yet", s.target.span or s.span,
                help=f"they are loaded from a tensor of {dtype}, copied and stored; what is computed is kept as "
                + ("i8" if dtype is I4 else "f8e4m3"),
            )  # fmt: skip
        yield replace(s, target=self.half(s.target), value=made)
        if s.target.name in self.read:
            buffer = self.buffers[s.target.name]
            if s.target.shape != buffer.shape:
                message = f"`{s.target.name}` is filled in parts, and read as numbers"
                raise TileError(message, s.span, help="fill a buffer of numbers of 4 bits as a whole, or have one for each part")
            packed = _halved(buffer)
            whole = kn.Region(packed.name, (ix.ZERO,) * len(packed.shape), packed.shape, s.span)
            numbers = kn.Region(self.numbers[buffer.name], (ix.ZERO,) * len(buffer.shape), buffer.shape, s.span)
            yield kn.Assign(numbers, kn.Bytes(F16, whole, s.span), s.span)

    def half(self, r: kn.Region) -> kn.Region:
        """A window of numbers as one of bytes."""
        start, extent = r.starts[-1], r.extents[-1]
        if extent is None or extent % 2 or (start % 2).value != 0 or r.beside or any(c is not None for c in r.counts[-1:]):
            message = f"this window of `{r.name}` begins or ends inside of a byte, which holds two numbers of 4 bits"
            raise TileError(message, r.span, help="let columns begin at even numbers, and be even in number")
        return replace(r, starts=(*r.starts[:-1], start // 2), extents=(*r.extents[:-1], extent // 2))

    def value(self, e: N) -> N:
        """An expression, with numbers of f16 for those of 4 bits."""
        if isinstance(e, kn.Scaled) and isinstance(e.x, kn.Region) and self.dtypes.get(e.x.name) in PACKED:
            return replace(e, x=self.half(e.x), packed=self.dtypes[e.x.name], scale=self.value(e.scale))  # type: ignore[return-value]
        if isinstance(e, kn.Region):
            if self.dtypes.get(e.name) in PACKED:
                help = "they are loaded into a buffer, and multiplied with their scales: " + SCALED_PRODUCT
                raise TileError(f"floats of 4 bits of `{e.name}` are operands of products alone", e.span, help=help)
            if e.name in self.tensors:
                help = "copy the tensor into a buffer of i4 first, and read that"
                raise TileError(f"numbers of 4 bits of `{e.name}` are loaded by whole bytes", e.span, help=help)
            return replace(e, name=self.numbers[e.name]) if e.name in self.buffers else e  # type: ignore[return-value]
        if isinstance(e, kn.Cast) and e.dtype in HALVES:
            raise TileError("no value is rounded to numbers of 4 bits yet", e.span, help="keep it as i8, or f8e4m3 on the 950")
        if isinstance(e, tuple):
            return tuple(map(self.value, e))  # type: ignore[return-value]
        if not is_dataclass(e) or isinstance(e, Expr | DType):
            return e
        return replace(e, **{f.name: self.value(getattr(e, f.name)) for f in fields(e) if f.compare})  # type: ignore[return-value,type-var]


def _both(n: kn.Number) -> kn.Number:
    """A byte of twice the same number."""
    if n.value != n.value // 1 or not -8 <= n.value <= 7:
        raise TileError(f"{n.value:g} is no i4, which holds whole numbers from -8 to 7", n.span, help="fill one of i8 or f16")
    bits = int(n.value) & 15
    byte = bits * 17
    return replace(n, value=float(byte - 256 if byte > 127 else byte))
