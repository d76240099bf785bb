"""A kernel as values: buffers that are written in place become single-assignment terms, loops become folds.

The kernel has to have passed `check`. What has a meaning but no term yet raises a TileError that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import prod
from typing import Any

from tile_eg.errors import FollowUp, TileError, attempted, no_form, together
from tile_eg.frontend.checks.parts import check_parts
from tile_eg.frontend.liveness import Kept, Liveness, Names, assigned, buffer_shapes, mentioned
from tile_eg.frontend.ranges import extremes
from tile_eg.frontend.ssa import elements, fold, joined_ends, no_trips
from tile_eg.frontend.ssa.dependence import is_row_loop
from tile_eg.frontend.ssa.expressions import Expressions
from tile_eg.frontend.ssa.fold import Varying
from tile_eg.frontend.ssa.narrowed_loops import NarrowedLoops
from tile_eg.frontend.ssa.regions import EndedByBranch, Env
from tile_eg.frontend.ssa.tiles import tile_shape
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.index import BLOCK, Expr
from tile_eg.ir.passed import Passed
from tile_eg.ir.strided import in_memory
from tile_eg.ir.values import VERSIONS, Place, Term, Values, loops_in

MOST_ELEMENTS = 1 << 13
"""Elements of a loop that may be done one after the other, each by instructions on whole tiles."""


class Converter(Expressions):
    """Converts one kernel."""

    def __init__(self, kernel: kn.Kernel, kept: frozenset[Kept] = frozenset(), rows_alone: bool = False) -> None:
        super().__init__(kernel)
        self.rows_alone = rows_alone
        self.ids: dict[int, int] = {}
        self.parents: dict[int, int] = {}
        self.trips: dict[int, int] = {}
        self.counts: dict[int, Expr] = {}
        self.fewest: dict[int, int] = {}
        self.apart: list[kn.For] = []
        self.others: list[object] = []
        self.parts_checked = False
        self.variables: dict[int, str] = {}
        self.inside = [0]
        self.written: dict[int, tuple[str, Names]] = {}
        self.liveness = Liveness(buffer_shapes(kernel.body), kept)
        self.left, self.ending = no_trips.Left(), no_trips.Left()
        self.told: list[TileError] = []
        self.failed: set[str] = set()
        self.stored_from: dict[str, set[str]] = {}
        self.tiles.narrowed_result = no_trips.noting(self.left, NarrowedLoops(self.tiles, self.another_loop).result)

    def values(self) -> Values:
        env: Env = {t.name: self.tiles.make(t.span, "given", in_memory(t)) for t in self.kernel.tensors}
        outputs = frozenset(t.name for t in self.kernel.tensors if t.output)
        env = self.run(self.kernel.body, env, outputs)
        if self.told:
            raise together(self.told)
        no_trips.refuse_seen(tuple(env[n] for n in sorted(outputs)), self.left, self.short)
        k, results = self.kernel, tuple(env[t.name] for t in self.kernel.tensors if t.output)
        used = loops_in(results)
        keep = lambda d: {i: d[i] for i in sorted(used & d.keys())}  # noqa: E731
        tensors = tuple(map(in_memory, k.tensors))
        return Values(
            k.name, tensors, self.blocks, results, keep(self.parents), keep(self.trips), keep(self.variables),
            self.tiles.spans, self.named, tuple(e for _, e in k.grid), counts=keep(self.counts), fewest=keep(self.fewest),
            places=self.places(), numbers=k.numbers, wholes=k.wholes, borders=self.tiles.borders,
        )  # fmt: skip

    def run(self, body: tuple[kn.Stmt, ...], env: Env, after: Names) -> Env:
        """The environment behind a body; `after` are the names that matter there. Raises FollowUp where a statement inside of
        another one is wrong, once all of them were looked at."""
        told = len(self.told)
        for n, s in enumerate(body):
            if self.failed and self.failed & mentioned((s,)):
                self.failed |= assigned((s,))
                continue
            with self.telling(s):
                env = self.statement(s, env, self.liveness.before(body[n + 1 :], after))
        if len(self.told) > told and body is not self.kernel.body:
            raise FollowUp
        return env

    @contextmanager
    def telling(self, s: kn.Stmt) -> Iterator[None]:
        """Keeps what is wrong with a statement, and goes on behind it: what it assigns has no value there."""
        inside, within = list(self.inside), self.tiles.within
        ranges, indices, facts = dict(self.tiles.ranges), dict(self.indices), dict(self.facts)
        try:
            yield
        except TileError as e:
            self.told.append(e)
            self.failed |= assigned((s,))
            self.inside, self.tiles.within = inside, within
            self.tiles.ranges, self.indices, self.facts = ranges, indices, facts

    def statement(self, s: kn.Stmt, env: Env, after: Names) -> Env:
        self.env = env
        match s:
            case kn.Alloc():
                self.buffers[s.name] = s
                return env
            case kn.Assign():
                return env | {s.target.name: self.assign(s, env)}
            case kn.For():
                return self.loop(s, env, after)
            case kn.If():
                choices = self.chosen(s)
                if choices is None:
                    choices = s.then if self.decide(s.condition, s.span) else s.otherwise
                return self.run(choices, env, after)
            case kn.Parallel():
                return self.elements(s, env, after)

    # assignments

    def assign(self, s: kn.Assign, env: Env) -> Term:
        self.ended = []
        if s.target.name in self.tensors:
            value = self.value(s.value, env, tile_shape(s.target.shape), self.tensors[s.target.name].dtype)
            source = self.buffers.get(s.value.name) if isinstance(s.value, kn.Region) else None
            self.stored_from.setdefault(s.target.name, set()).add(source.level if source else "")
            self.refuse_ended(s.target)
            return self.store(s, self.spread(value, tile_shape(s.target.shape), s.span), env)
        buffer = self.buffers[s.target.name]
        whole = self.is_whole(s.target)
        shape = tile_shape(buffer.shape if whole else s.target.shape)
        value = self.value(s.value, env, shape, buffer.dtype)
        value = self.where_there(self.tiles.cast(self.spread(value, shape, s.span), buffer.dtype, s.span), s.target, env)
        if not whole:
            return self.filled(s.target, value, env)
        self.name(value, buffer)
        if s.span is not None and value.op == "load":
            self.tiles.spans[value] = s.span
        return value

    def name(self, value: Term, buffer: kn.Alloc) -> None:
        """Notes the first buffer that holds a value. Where another memory holds it as well, neither is its only place."""
        first = self.buffers.get(self.named.setdefault(value, (buffer.name, buffer.scope))[0], buffer)
        if first.level != buffer.level:
            self.elsewhere |= {first.name, buffer.name}

    def places(self) -> dict[str, Place]:
        """What the author says of his buffers, where he says something; and that what is stored to a tensor comes from UB."""
        found = ((b, "" if b.name in self.elsewhere else b.level) for b in self.buffers.values())
        stored = {name: Place("UB", 0) for name, levels in self.stored_from.items() if levels == {"UB"}}
        return {b.name: Place(level, b.slots, b.span) for b, level in found if level or b.slots} | stored

    # loops

    def loop(self, s: kn.For, env: Env, after: Names) -> Env:
        if s.extent == 0:
            return env
        rows = is_row_loop(s, {n: b.shape for n, b in self.buffers.items()})
        if not rows and s.extent == 1 and s.count is None:
            return self.with_index(s, ix.const(s.start), lambda: self.run(s.body, env, after))
        done = self.attempt(lambda: elements.convert(self, s, env, after) if rows else self.fold(s, env, after, False))
        return self.one_by_one(s, env, after, done) if isinstance(done, TileError) else done

    def elements(self, s: kn.Parallel, env: Env, after: Names) -> Env:
        """An element loop. What is not done for all elements together is done for rows or columns, one after the other, as its
        iterations do not depend on one another."""
        at_once = self.attempt(lambda: elements.convert(self, s, env, after))
        if not isinstance(at_once, TileError):
            return at_once
        if any(isinstance(e, EndedByBranch) for e in (at_once, *at_once.others)):
            raise at_once
        apart = elements.independent(self, s, after) and prod(s.extents) <= MOST_ELEMENTS
        for n, variable in enumerate(s.vars if apart else ()):
            rest = replace(s, vars=(*s.vars[:n], *s.vars[n + 1 :]), extents=(*s.extents[:n], *s.extents[n + 1 :]))
            body = (rest,) if rest.vars else s.body
            loop = kn.For(variable, 0, s.extents[n], "serial", 0, body, s.span)
            self.apart.append(loop)  # a loop is known by its identity
            done = self.attempt(lambda: self.one_by_one(loop, env, after, at_once))  # noqa: B023
            if not isinstance(done, TileError):
                return done
        raise at_once

    def one_by_one(self, s: kn.For, env: Env, after: Names, why: TileError) -> Env:
        """A loop whose trips are alike, but for choices by their number, on whole tiles: of a loop over rows or elements that are
        not done together, or one whose first trip is no other. Where that is not supported either, `why` is told: of a loop of
        the author's, whose trips have an order, as a reason not to search it."""
        if any(n in self.buffers and n not in env for n in assigned(s.body)):
            self.check_parts()
        once = s.extent == 1 and s.count is None
        one = lambda: self.with_index(s, ix.const(s.start), lambda: self.run(s.body, env, after))  # noqa: E731
        done = self.attempt(one if once else lambda: self.fold(s, env, after, True))
        if isinstance(done, TileError):
            raise (why if any(s is a for a in self.apart) else no_form(why)) from None
        return done

    def check_parts(self) -> None:
        """TileError where a part of a buffer is read that nothing was written to. All loops have one answer."""
        if not self.parts_checked:
            check_parts(self.kernel)
        self.parts_checked = True

    def attempt(self, way: Callable[[], Env]) -> Env | TileError:
        """What one way to convert a loop gives; or what is wrong with it, with all that is known as it was before."""
        before = self.open_loops()
        done = attempted(way)
        return self.close_loops(before, done) if isinstance(done, TileError) else done

    def open_loops(self) -> tuple[Any, ...]:
        """What is known of the loops that are being built, and the faults that were found."""
        known = [*self.inside], self.tiles.within, {**self.tiles.ranges}, {**self.indices}, {**self.facts}, {*self.keeping}
        return *known, len(self.told), {*self.failed}

    def close_loops(self, before: tuple[Any, ...], error: TileError) -> TileError:
        """Forgets what was built since, as it is built another way; what was wrong with it."""
        *known, told, self.failed = before
        self.inside, self.tiles.within, self.tiles.ranges, self.indices, self.facts, self.keeping = known
        found, self.told = [*self.told[told:], error], self.told[:told]
        return together(found) if any(not isinstance(e, FollowUp) for e in found) else error

    def with_index(self, s: kn.For, value: Expr, action):  # noqa: ANN001, ANN202
        self.indices[s.var] = value
        result = action()
        del self.indices[s.var]
        return result

    def fold(self, s: kn.For, env: Env, after: Names, alike: bool) -> Env:
        """A loop of two or more trips as one fold over its states. What turns out not to be a state is taken for what it is."""
        around = self.tiles.within
        loop, variable = self.enter(s)
        exposed = self.liveness.before(s.body, after)
        names = sorted(n for n in assigned(s.body) if n in self.tensors or n in exposed | after)
        settled: Env = {}
        while True:
            states = [n for n in names if n not in settled]
            found = self.alike_states if alike else self.states
            args, inits, later = found(s, states, env | settled, after | exposed)
            if not self.fewest[loop]:
                left = {n: (env[n], later[n]) for n in states if n in env and n in after and n in self.buffers}
                no_trips.check_left(left, variable, self.tiles.ranges, s)
            new = fold.frozen(self.scope(loop), args, inits, later)
            if not self.fewest[loop]:  # what no trip made is what it was before the loop
                new = {n: t for n, t in new.items() if n not in after or t is inits[n]}
            new = new or {n: inits[n] for n in fold.unread(args, later) if n in self.buffers and n not in after}
            if not new:
                break
            settled |= new
        later = {n: self.tiles.as_laid(t) for n, t in later.items()}  # where the loop's variable is known
        self.inside.pop()
        self.tiles.within = around
        del self.tiles.ranges[variable]
        if not states:
            return env | settled
        term = self.tiles.make(s.span, "loop", loop, self.trips[loop], tuple((inits[n], later[n]) for n in states), s.stages)
        results = {n: self.result(term, k, later[n]) for k, n in enumerate(states)}
        if not self.fewest[loop]:
            both = {n: (env[n], results[n]) for n in states if n in env and n in self.buffers}
            self.left |= no_trips.left(both, self.tiles.ranges, s)
        self.left |= {(results[n], a): e for n in states for (arg, a), e in self.ending.items() if arg is args[n]}
        return env | settled | results

    def states(self, s: kn.For, names: list[str], env: Env, after: Names) -> tuple[Env, Env, Env]:
        """Each state as the loop's trips read it, its initial value, and its next one."""
        loop, variable = self.inside[-1], self.variables[self.inside[-1]]
        first, longer = self.shortened(s, self.trip(s, (0, 0), env, after, variable), names)
        args = {n: self.state(loop, k, first[n]) for k, n in enumerate(names)}
        self.named |= {a: (n, self.buffers[n].scope) for n, a in args.items() if n in self.buffers}
        later = self.trip(s, (1, max(1, s.extent - 1)), env | args, after, variable)
        self.check_joined(args, {n: later[n] for n in names}, longer, s)
        for n in names:
            self.check_invariant(n, first[n], later[n], variable, s)
        later = {n: later[n] for n in names}
        found = fold.initial_values(self.scope(loop), later, first, s.span)
        inits = {n: self.initial(args[n], found.get(args[n]), env.get(n)) for n in names}
        if not self.fewest[loop]:
            inits |= {n: self.untouched(n, args[n], found.get(args[n], env[n]), env[n], s) for n in names if n in env}
        return args, inits, later

    def alike_states(self, s: kn.For, names: list[str], env: Env, after: Names) -> tuple[Env, Env, Env]:
        """The same where every trip does the same, and the first one begins with what stands before the loop."""
        loop, variable = self.inside[-1], self.variables[self.inside[-1]]
        every = (0, s.extent - 1)
        first, longer = self.shortened(s, self.trip(s, every, env, after, variable), names)
        args = {n: self.state(loop, k, first[n]) for k, n in enumerate(names)}
        self.named |= {a: (n, self.buffers[n].scope) for n, a in args.items() if n in self.buffers}
        later = self.trip(s, every, env | args, after, variable)
        self.check_joined(args, {n: later[n] for n in names}, longer, s)
        inits = {n: env[n] if n in self.tensors else self.held(n, env, s.span) for n in names}
        ends = {t: (t.vrows, t.vcols) for t in (*inits.values(), *args.values())}
        ending = [n for n in names if inits[n].op == "fill" and ends[inits[n]] != ends[args[n]]]
        if ending:  # what a state begins with ends where the state does, if no trip sees more of it
            others = {n: t for n, t in args.items() if n not in ending}
            first = self.trip(s, every, env | others, after, variable)
            found = fold.initial_values(self.scope(loop), {n: later[n] for n in names}, first, s.span)
            inits |= {n: self.initial(args[n], found.get(args[n]), inits[n]) for n in ending}
        for n in names:
            self.check_invariant(n, inits[n], later[n], variable, s)
        return args, inits, {n: later[n] for n in names}

    def shortened(self, s: kn.For, first: Env, names: list[str]) -> tuple[Env, Env]:
        """What the first trip makes, states no longer than the shortest trip leaves them; and those that were longer."""
        found = joined_ends.shortened(self.tiles, first, names, self.variables[self.inside[-1]], s) if s.count is None else {}
        return first | found, {n: first[n] for n in found}

    def check_joined(self, args: Env, later: Env, longer: Env, s: kn.For) -> None:
        """TileError where a state that is longer in some trips is not only joined with something in each of them. It may not be
        seen behind the loop, either."""
        for n, t in longer.items():
            check = lambda: self.check_invariant(n, t, t, self.variables[self.inside[-1]], s)  # noqa: B023, E731
            if isinstance(changes := attempted(check), TileError):
                self.ending |= {(args[n], axis): no_form(changes) for axis in joined_ends.axes(t, args[n])}
                if not joined_ends.only_joined(args, later, longer):
                    raise changes

    def untouched(self, name: str, arg: Term, begins: Term | float, before: Term, s: kn.For) -> Term:
        """The initial value of a state of a loop that takes no trip in some blocks: what the name was before. TileError where the
        first trip begins with something else."""
        known = before.args[0] if before.op == "fill" else before
        if begins is not before and begins != known:
            raise TileError(
                f"this loop takes no trip in some blocks, and its first trip begins with another `{name}` than stands before it",
                s.span, help=f"give `{name}` its first value before the loop",
            )  # fmt: skip
        return self.initial(arg, known, before)

    def scope(self, loop: int) -> Varying:
        return fold.varying(loop, self.variables[loop], self.parents)

    def enter(self, s: kn.For) -> tuple[int, str]:
        loop = self.ids.setdefault(id(s), len(self.ids) + 1)
        variable = self.variables.setdefault(loop, self.variable_name(s.var))
        self.parents[loop], self.trips[loop] = self.inside[-1], max(2, s.extent)
        self.fewest[loop] = self.trips[loop]
        if s.count is not None:
            self.counts[loop] = ix.simplified(self.index(s.count), self.tiles.ranges)
            self.fewest[loop] = extremes(self.counts[loop], self.tiles.ranges)[0]
            self.tiles.within = ix.both(self.tiles.within, ix.less(ix.var(variable), self.counts[loop]))
        self.inside.append(loop)
        self.written[loop] = s.var, assigned(s.body)
        self.tiles.ranges[variable] = (0, s.extent - 1)
        return loop, variable

    def stands(self, r: kn.Region) -> bool:
        open_loops = (self.written[loop] for loop in self.inside[1:])
        return any(r.name not in names and any(v in ix.variables(e) for e in r.starts) for v, names in open_loops)

    def another_loop(self, like: int) -> tuple[int, str, str]:
        """A loop beside one that has the same trips, which it stands for, and the names of both loops' variables."""
        self.others.append(object())
        loop = self.ids.setdefault(id(self.others[-1]), len(self.ids) + 1)
        tables: tuple[dict[int, Any], ...] = (self.parents, self.trips, self.counts, self.fewest)
        for table in tables:
            table |= {loop: table[like]} if like in table else {}
        self.variables[loop] = self.variable_name(self.variables[like])
        return loop, self.variables[like], self.variables[loop]

    def variable_name(self, wish: str) -> str:
        taken = {BLOCK, ix.SUB, ix.EACH, *self.variables.values()}
        return next(n for n in (wish, *(f"{wish}_{i}" for i in range(1, len(taken) + 2))) if n not in taken)

    def trip(self, s: kn.For, which: ix.Interval, env: Env, after: Names, variable: str) -> Env:
        """The environment behind one trip, with only the trips in `which` in mind."""
        self.facts[variable] = which
        env = self.with_index(s, ix.var(variable) + s.start, lambda: self.run(s.body, env, after))
        del self.facts[variable]
        return env

    def state(self, loop: int, k: int, like: Term) -> Term:
        if like.op in VERSIONS:
            return self.tiles.make(None, "targ", loop, k)
        return self.tiles.make(None, "arg", loop, k, like=like)

    def result(self, loop: Term, k: int, like: Term) -> Term:
        if like.op in VERSIONS:
            return self.tiles.make(None, "tproj", loop, k)
        t = self.tiles.make(None, "proj", loop, k, like=like)
        if like in self.named:
            self.named.setdefault(t, self.named[like])
        return t

    def check_invariant(self, name: str, first: Term, later: Term, variable: str, s: kn.For) -> None:
        if name not in self.tensors:
            fold.check_invariant(name, (first, later), variable, self.tiles.ranges, s)

    def initial(self, arg: Term, bound: Term | float | Passed | None, before: Term | None) -> Term:
        """The initial value of a state: what matching found, narrowed to what the state holds."""
        if isinstance(bound, float | Passed) or (bound is None and arg.op == "arg"):
            return self.named_like(arg, self.tiles.make(None, "fill", 0.0 if bound is None else bound, like=arg))
        value = bound if isinstance(bound, Term) else before
        assert value is not None
        if value.op != "fill":
            return value
        return self.named_like(arg, self.tiles.narrowed(value, arg.vrows, arg.vcols, None))

    def named_like(self, arg: Term, value: Term) -> Term:
        if arg in self.named:
            self.named.setdefault(value, self.named[arg])
        return value
