"""`einsum`: sums of products by the letters of axes, as products of matrices where two operands share what is summed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod

from tile_eg.errors import Span, TileError
from tile_eg.frontend.tensor import values as v
from tile_eg.frontend.tensor.gathers import part
from tile_eg.frontend.tensor.values import Slice, Value

Letters = str


def einsum(subscripts: str, *operands: Value, span: Span | None = None) -> Value:
    """As NumPy's, without the dots. TileError where letters and axes do not fit."""
    if not isinstance(subscripts, str):
        help = "in Python, einsum('bij,bjk->bik', x, y); in .tile write a @ b, or sum(x * y, axis=-1)"
        raise TileError("`einsum` takes the letters of axes first", span, help=help)
    inputs, out = _parsed(subscripts, operands, span)
    sizes = _sizes(subscripts, inputs, operands, span)
    terms = [_once(letters, x, span) for letters, x in zip(inputs, operands, strict=True)]
    while len(terms) > 1:
        (left, a), (right, b), *rest = terms
        kept = set(out).union(*(letters for letters, _ in rest))
        pair = _summed(left, a, kept | set(right), span), _summed(right, b, kept | set(left), span)
        terms = [_product(*pair, kept, sizes, span), *rest]
    letters, x = _summed(*terms[0], set(out), span)
    return v.permute(x, [letters.index(c) for c in out], span) if out else x


def _parsed(subscripts: str, operands: Sequence[Value], span: Span | None) -> tuple[list[Letters], Letters]:
    text = subscripts.replace(" ", "")
    given, arrow, out = text.partition("->")
    inputs = given.split(",")
    if not arrow:
        counted = Counter(given.replace(",", ""))
        out = "".join(sorted(c for c, n in counted.items() if n == 1))
    fault = ""
    if not (given.replace(",", "") + out).isalpha():
        fault = "has letters for axes, commas and one arrow"
    elif len(inputs) != len(operands):
        fault = f"names {len(inputs)} operand{'s' * (len(inputs) != 1)}, and there are {len(operands)}"
    elif len(set(out)) < len(out) or not set(out) <= set(given):
        fault = "names each axis of the result once, and one that an operand has"
    if fault:
        raise TileError(f"`einsum` '{subscripts}' {fault}", span, help="einsum('bij,bjk->bik', x, y)")
    return inputs, out


def _sizes(subscripts: str, inputs: Sequence[Letters], operands: Sequence[Value], span: Span | None) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for letters, x in zip(inputs, operands, strict=True):
        if len(letters) != len(x.shape):
            raise TileError(f"`einsum` '{subscripts}': {letters} has {len(letters)} axes, {x} has {len(x.shape)}", span)
        for c, n in zip(letters, x.shape, strict=True):
            if sizes.setdefault(c, n) != n:
                raise TileError(f"`einsum` '{subscripts}': `{c}` is {sizes[c]} and {n}", span)
    return sizes


def _once(letters: Letters, x: Value, span: Span | None) -> tuple[Letters, Value]:
    """An operand that has each letter once: of one that it has twice, the diagonal."""
    for c in dict.fromkeys(letters):
        while letters.count(c) > 1:
            at = letters.index(c), letters.rindex(c)
            places = v.arange(x.shape[at[0]], span)
            x = part(x, [places if a in at else Slice() for a in range(len(letters))], span)
            rest = [d for a, d in enumerate(letters) if a not in at]
            beside = at[1] == at[0] + 1
            rest.insert(at[0] if beside else 0, c)
            letters = "".join(rest)
    return letters, x


def _summed(letters: Letters, x: Value, kept: set[str], span: Span | None) -> tuple[Letters, Value]:
    """Without the axes that nothing else has."""
    gone = [a for a, c in enumerate(letters) if c not in kept]
    if not gone:
        return letters, x
    return "".join(c for c in letters if c in kept), v.reduce("sum", x, gone, False, span)


def _product(
    left: tuple[Letters, Value], right: tuple[Letters, Value], kept: set[str], sizes: dict[str, int], span: Span | None
) -> tuple[Letters, Value]:
    """Two operands over the axes that both have and nothing else needs."""
    (a, x), (b, y) = left, right
    batch = [c for c in a if c in b and c in kept]
    deep = [c for c in a if c in b and c not in kept]
    rows, columns = [c for c in a if c not in b], [c for c in b if c not in a]
    letters = "".join((*batch, *rows, *columns))
    if not deep:
        x, y = _spread(a, x, letters, span), _spread(b, y, letters, span)
        return letters, v.binary("mul", x, y, span)
    shape = [sizes[c] for c in batch]
    n, k, m = (prod(sizes[c] for c in cs) for cs in (rows, deep, columns))
    x = v.permute(x, [a.index(c) for c in (*batch, *rows, *deep)], span)
    y = v.permute(y, [b.index(c) for c in (*batch, *deep, *columns)], span)
    found = v.matmul(v.reshape(x, (*shape, n, k), span), v.reshape(y, (*shape, k, m), span), span)
    return letters, v.reshape(found, [sizes[c] for c in letters], span)


def _spread(own: Letters, x: Value, letters: Letters, span: Span | None) -> Value:
    """With an axis for each letter, in their order."""
    x = v.permute(x, [own.index(c) for c in letters if c in own], span)
    return v.window(x, [Slice() if c in own else v.NEW_AXIS for c in letters], span)
