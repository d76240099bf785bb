"""Which operators of a graph become one kernel.

A region is a product with what is done element by element to its result, two products of one operand that meet (a gated layer),
the two products of attention, or rows with what is reduced over them. Parts that are joined are computed where they are joined.
Views, conditions and constants are free: each of their users has its own copy. No value leaves a region and comes back to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tile_eg.torch.parts import JOINS
from tile_eg.torch.word import name_of
from tile_eg.torch.words import AXES, OVER_AXES, POINTS, PRODUCTS, is_free

MAP, ROWS, PRODUCT, SCORES, ATTENTION = "elements", "rows", "product", "scores", "attention"
Space = tuple[str, str]
"""How many elements a value has, and how many a row of it: what is done element by element joins what has as many."""


@dataclass(eq=False)
class Region:
    kind: str
    space: Space
    nodes: list[Any] = field(default_factory=list)

    @property
    def inputs(self) -> list[Any]:
        """The values that its operators take from outside, in the order in which they are met; numbers of torch's among them."""
        inside = set(self.nodes)
        return list(dict.fromkeys(a for n in sorted(self.nodes) for a in n.all_input_nodes if a not in inside))


def shape_of(node: Any) -> Sequence[Any]:
    """The dimensions of a node's value, of the first one where it has several; none where it is no tensor."""
    value = node.meta.get("val")
    value = value[0] if isinstance(value, tuple | list) and value else value
    return tuple(getattr(value, "shape", ()))


def _item_bytes(node: Any) -> int:
    """The bytes of an element of a node's value."""
    return int(node.meta["val"].element_size())


def space_of(node: Any) -> Space:
    shape, count = shape_of(node), 1
    for n in shape:
        count = count * n
    return str(count), str(shape[-1]) if shape else "1"


def _is_sized(node: Any) -> bool:
    """Whether all dimensions of a node's value are known."""
    return all(isinstance(n, int) for n in shape_of(node))


def copied_for_each_user(graph: Any) -> None:
    """Gives every user of a free value a copy of its own."""
    for node in reversed(list(graph.nodes)):
        if not is_free(node) or name_of(node) == "getitem":
            continue
        for user in list(node.users)[1:]:
            with graph.inserting_before(user):
                copy = graph.node_copy(node)
            user.replace_input_with(node, copy)


def base(node: Any) -> Any:
    """The value that a view shows."""
    while name_of(node) in AXES:
        node = node.args[0]
    return node


def regions_of(graph: Any) -> list[Region]:
    """The regions of a graph in which every free value has one user."""
    found = _Regions()
    for node in graph.nodes:
        found.take(node)
    for node in reversed(list(graph.nodes)):
        found.leave_to_users(node)
    found.join_products()
    for node in reversed(list(graph.nodes)):
        found.take_free(node)
    return found.all()


class _Regions:
    def __init__(self) -> None:
        self.of: dict[Any, Region] = {}

    def all(self) -> list[Region]:
        return list(dict.fromkeys(self.of.values()))

    def take(self, node: Any) -> None:
        name = name_of(node)
        if name == "getitem":
            if (region := self.of.get(node.args[0])) is not None:
                self._add(node, region)
        elif not is_free(node) and (name in POINTS or name in OVER_AXES or name in PRODUCTS):
            kind = MAP if name in POINTS else ROWS if name in OVER_AXES else PRODUCT
            self._add(node, Region(kind, space_of(node.args[0] if kind == ROWS else node)))
            for operand in self._operands(node):
                self._meet(node, operand)

    def take_free(self, node: Any) -> None:
        users = list(node.users)
        if is_free(node) and name_of(node) != "getitem" and node not in self.of and len(users) == 1 and users[0] in self.of:
            self._add(node, self.of[users[0]])

    def leave_to_users(self, node: Any) -> None:
        """Lets the region that uses a value compute it, where fewer bytes go from region to region then: casts, and squares for a
        norm, of a value that is handed over anyway."""
        regions = {self.of.get(u) for u in _users(node)}
        ours, theirs = self.of.get(node), regions.pop() if len(regions) == 1 else None
        if name_of(node) not in POINTS or ours is None or theirs is None or ours is theirs:
            return
        if theirs.kind in (MAP, ROWS) and theirs.space == ours.space:
            for moved in self._left_with(node, ours):
                ours.nodes.remove(moved)
                self._add(moved, theirs)

    def join_products(self) -> None:
        """Makes one region of those whose products multiply the same value from the left, as queries, keys and values do: each
        has tiles of its own in one launch. Of sizes that are known alone."""
        last: dict[Any, Region] = {}
        for region in self.all():
            firsts = _first_operands(region) if region.kind == PRODUCT and all(map(_is_sized, region.nodes)) else set()
            if len(firsts) != 1:
                continue
            (first,) = firsts
            before = last.get(first)
            if before is not None and not self._cyclic(before, region) and not self._directly(before, region):
                region = self._joined(PRODUCT, before.space, before, region)
            last[first] = region

    def _directly(self, a: Region, b: Region) -> bool:
        """Whether a value goes from one region to the other."""
        return any(self.of.get(u) in (a, b) and self.of.get(u) is not self.of[n] for n in (*a.nodes, *b.nodes) for u in _users(n))

    def _joined(self, kind: str, space: Space, first: Region, second: Region) -> Region:
        one = Region(kind, space, [*first.nodes, *second.nodes])
        self.of.update(dict.fromkeys(one.nodes, one))
        return one

    def _left_with(self, node: Any, region: Region) -> list[Any]:
        """A node and those before it that leave its region together, so that what the region hands over instead has fewer bytes;
        none where there are no such."""
        found = [node]
        while True:
            inside = {b for a in found[-1].all_input_nodes if self.of.get(b := base(a)) is region}
            behind = [b for b in inside if all(self.of.get(u) is region for u in _users(b))]
            if sum(map(_item_bytes, behind)) < _item_bytes(node):
                return found
            if len(behind) != 1 or name_of(behind[0]) not in POINTS or any(u not in found for u in _users(behind[0])):
                return []
            found.append(behind[0])

    def _add(self, node: Any, region: Region) -> None:
        region.nodes.append(node)
        self.of[node] = region

    def _operands(self, node: Any) -> list[Any]:
        """The values behind a node's operands that are in regions, those of products first."""
        bases = dict.fromkeys(base(a) for a in node.all_input_nodes)
        kept = [b for b in bases if b in self.of]
        return sorted(kept, key=lambda b: self.of[b].kind not in (PRODUCT, SCORES))

    def _meet(self, node: Any, operand: Any) -> None:
        """Makes the regions of a node and of its operand one, where they may be."""
        ours, theirs = self.of[node], self.of[operand]
        if ours is theirs or (kind := self._joint(node, ours, theirs)) is None or self._cyclic(ours, theirs):
            return
        other = kind == ATTENTION or name_of(node) in JOINS
        space = space_of(node) if other else theirs.space if ours.kind == MAP else ours.space
        self._joined(kind, space, theirs, ours)

    def _joint(self, node: Any, ours: Region, theirs: Region) -> str | None:
        """What the two regions would be together; None where they stay apart."""
        name, same = name_of(node), ours.space == theirs.space
        if name in PRODUCTS:
            alone = theirs.kind == SCORES and base(node.args[0]) in theirs.nodes and _used_by(theirs.nodes, node)
            return ATTENTION if alone and len(ours.nodes) == 1 else None
        if name in JOINS:
            return MAP if theirs.kind == MAP and _used_by(theirs.nodes, node) else None
        if name in OVER_AXES:
            if theirs.kind in (MAP, ROWS):
                return ROWS if same else None
            return SCORES if same and theirs.kind == PRODUCT and _feeds_product(node) else None
        if ours.kind == PRODUCT and theirs.kind == PRODUCT:
            return PRODUCT if same and _first_operands(ours) & _first_operands(theirs) else None
        if theirs.kind == ROWS and ours.kind in (MAP, ROWS):
            return ROWS
        return (theirs.kind if ours.kind == MAP else ours.kind) if same and MAP in (ours.kind, theirs.kind) else None

    def _cyclic(self, a: Region, b: Region) -> bool:
        return self._leads(a, b) or self._leads(b, a)

    def _leads(self, start: Region, end: Region) -> bool:
        """Whether values go from one region to the other by way of a third node."""
        last = max(end.nodes)
        waiting = [u for n in start.nodes for u in _users(n) if self.of.get(u) not in (start, end)]
        seen = set(waiting)
        while waiting:
            node = waiting.pop()
            beside = self.of[node].nodes if node in self.of else [node]
            for user in (u for n in beside for u in _users(n)):
                if self.of.get(user) is end:
                    return True
                if user not in seen and self.of.get(user) is not start and user < last:
                    seen.add(user)
                    waiting.append(user)
        return False


def _users(node: Any) -> Iterator[Any]:
    """What computes with a value; what is free goes where its user goes."""
    for user in node.users:
        if is_free(user) and name_of(user) != "getitem":
            yield from _users(user)
        else:
            yield user


def _first_operands(region: Region) -> set[Any]:
    """What the products of a region multiply from the left."""
    return {base(n.args[1 if name_of(n) in ("addmm", "baddbmm") else 0]) for n in region.nodes if name_of(n) in PRODUCTS}


def _used_by(nodes: Sequence[Any], last: Any) -> bool:
    """Whether values of a region go into it and into `last` alone."""
    inside = {*nodes, last}
    return all(u in inside or base(u) in inside and set(_through_views(u)) <= inside for n in nodes for u in n.users)


def _through_views(node: Any) -> Iterator[Any]:
    """The users of a value, views of it left out."""
    if name_of(node) not in AXES:
        yield node
        return
    for user in node.users:
        yield from _through_views(user)


def _feeds_product(node: Any) -> bool:
    """Whether a value goes into one product, from the left, by way of views and casts alone."""
    users = [u for user in node.users for u in _through_views(user)]
    if len(users) != 1:
        return False
    name = name_of(users[0])
    if name in ("_to_copy", "convert_element_type"):
        return _feeds_product(users[0])
    return name in ("mm", "bmm") and base(users[0].args[0]) in (node, *node.users)
