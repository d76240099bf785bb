"""Random Developer kernels of several element types: casts, whole numbers, masks, rows one by one, numbers of one row for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.fuzz.two_ways import BM, BN, COLS, EVERY, ROWS, TILES, Maker, Program, Typed

WHOLE, HALF = ("q", "qq"), ("p",)
ALL_ROWS = f"for row in T.serial({BM}):\n    "


@dataclass(frozen=True)
class ManyKinds(Program):
    """It stores `P` [M, N], of f16, and `Z` [M, N], of int32, too."""

    def outputs(self, m: object, n: object) -> Typed:
        return super().outputs(m, n) | {"P": ((m, n), "float16"), "Z": ((m, n), "int32")}

    def buffers(self) -> Typed:
        whole: Typed = dict.fromkeys(WHOLE, ((BM, BN), "int32"))
        return super().buffers() | whole | {"p": ((BM, BN), "float16"), "mask": ((BM, BN // 8), "uint8")}


class ManyKindsMaker(Maker):
    def to_whole(self) -> str | None:
        if (a := self.one(TILES)) is None:
            return None
        o, mode = self.into(WHOLE), self.pick("RINT", "FLOOR", "CEIL", "TRUNC", "ROUND")
        return self.pick(
            f'T.tile.cast({o}, {a}, "CAST_{mode}", {BM * BN})', EVERY + f'{o}[i, k] = T.cast(T.floor({a}[i, k]), "int32")'
        )

    def from_whole(self) -> str | None:
        if (q := self.one(WHOLE)) is None:
            return None
        o = self.into(TILES)
        return self.pick(
            f'T.tile.cast({o}, {q}, "CAST_NONE", {BM * BN})', EVERY + f'{o}[i, k] = T.cast({q}[i, k], "float32")',
            EVERY + f'{o}[i, k] = T.cast({q}[i, k] % 8, "float32") * 0.5',
        )  # fmt: skip

    def whole(self) -> str | None:
        a, b = self.one(WHOLE), self.one(WHOLE)
        if a is None:
            return None
        made = self.pick(
            "({a} * 3 + {b}) & 1023", "{a} & 7", "{a} >> 1", "T.max({a}, {b})", "{a} - {b}", "({a} + i) & 255", "{a} | 4",
            "T.if_then_else({a} > 0, {b} & 15, -1)", "{a} ^ {b}", "{a} // 3", "{a} % 5", "T.abs({a})",
            f"T.if_then_else({self.at} + k < cid * {BM} + i, {{a}}, 0)",
        )  # fmt: skip
        return EVERY + f"{self.into(WHOLE)}[i, k] = " + made.format(a=f"{a}[i, k]", b=f"{b}[i, k]")

    def half(self) -> str | None:
        if (a := self.one(TILES + HALF)) is None:
            return None
        if a == "p":
            if self.rng.random() < 0.2:
                return f"T.copy(p, {self.into(TILES)})"
            return self.pick(
                "T.tile.max(p, p, -1.5)", "T.tile.add(p, p, p)", "T.tile.mul(p, p, 0.5)",
                "T.tile.abs(p, p)", "T.tile.relu(p, p)", EVERY + "p[i, k] = T.if_then_else(p[i, k] > 0, p[i, k], -p[i, k] * 0.5)",
            )  # fmt: skip
        self.held.add("p")
        return self.pick(
            f"T.copy({a}, p)", EVERY + f'p[i, k] = T.cast({a}[i, k], "float16")', f'T.tile.cast(p, {a}, "CAST_RINT", {BM * BN})'
        )

    def masked(self) -> str | None:
        a, b = self.one(TILES), self.one(TILES)
        if a is None:
            return None
        compared = f'T.tile.compare(mask, {a}, {self.pick(b, "0.25", "-1.0")}, "{self.pick("GT", "LT", "GE", "LE", "EQ", "NE")}")'
        return compared + f'\nT.tile.select({self.into(TILES)}, mask, {a}, {self.pick(b, "0.5")}, "VSEL_TENSOR_TENSOR_MODE")'

    def of_one_row(self) -> str | None:
        """With the number of one row for all of them."""
        a, u = self.one(TILES), self.one(ROWS)
        if a is None or u is None:
            return None
        made = self.pick(f"* {u}[{self.pick(0, 3)}]", f"+ T.min({u}[i], {u}[2])")
        return EVERY + f"{self.into(TILES)}[i, k] = {a}[i, k] {made}"

    def row_by_row(self) -> str | None:
        a, b, u = self.one(TILES), self.one(TILES), self.one(ROWS)
        if a is None:
            return None
        one = f"{a}[row, :], {b}[row, :]"
        if self.m % BM == 0 and self.rng.random() < 0.3:
            return ALL_ROWS + f"T.copy({b}[{BM - 1} - row, :], {self.into(tuple(t for t in TILES if t != b))}[row, :])"
        return ALL_ROWS + self.pick(
            f"T.tile.{self.pick('add', 'mul', 'max')}({a}[row, :], {one})", f"T.tile.abs({one})",
            f"T.tile.mul({one}, {u}[row])" if u else f"T.tile.add({one}, 1.0)",
        )  # fmt: skip

    def onto(self) -> str | None:
        a, b = self.one(TILES), self.one(TILES)
        if a is None:
            return None
        return self.pick(
            f"T.tile.axpy({a}, {b}, 0.5)", EVERY + f"{a}[i, k] += {b}[i, k] * 0.5", f"T.tile.leaky_relu({a}, {b}, 0.25)",
            EVERY + f"{a}[i, k] = T.max({a}[i, k], {b}[i, k]) - T.min({b}[i, k], 0.5)",
            f"T.tile.clamp({a}, {b}, -2.0, 1.5, {BM * BN})",
        )  # fmt: skip

    def columns(self) -> str | None:
        if (r := self.one(COLS)) is None:
            return None
        made = self.pick(
            "{r} * 0.5 + 1.0", "T.max({r}, 0.0)", "T.if_then_else(i < 5, {r}, 0.25)",
            f"T.if_then_else({self.at} + i < {self.n - 3}, {{r}}, 0.25)",
        )  # fmt: skip
        return f"for i in T.Parallel({BN}): {self.into(COLS)}[i] = " + made.format(r=f"{r}[i]")

    def position(self) -> str:
        return EVERY + f"{self.into(TILES)}[i, k] = " + self.pick(
            f'T.cast({self.at} + k, "float32")', f'T.cast((cid * {BM} + i) % 5, "float32") * 0.25',
            f'T.cast(({self.at} + k) // 3, "float32") - T.cast(i, "float32")',
        )  # fmt: skip

    def kinds(self) -> list[Callable[[], str | None]]:
        return [
            *super().kinds(), self.to_whole, self.from_whole, self.whole, self.whole, self.half, self.half, self.masked,
            self.of_one_row, self.row_by_row, self.onto, self.onto, self.columns, self.position,
        ]  # fmt: skip

    def loop(self, multiplies: bool) -> list[str]:
        made = super().loop(multiplies)
        for tensor, kinds in (("P", HALF), ("Z", WHOLE)):
            if (held := self.one(kinds)) and self.rng.random() < 0.7:
                made.append(f"    T.copy({held}, {tensor}[cid * {BM}, j * {BN}])")
        return made

    def program(self) -> ManyKinds:
        """What the loop has not stored is zero."""
        program = super().program()
        lines = [line for text in program.lines for line in text.split("\n")]
        for tensor, buffer in (("P", "p"), ("Z", "q")):
            if not any(f" {tensor}[" in line for line in lines):
                lines += [
                    f"for j in T.serial({-(-self.n // BN)}):", f"    T.fill({buffer}, 0)",
                    f"    T.copy({buffer}, {tensor}[cid * {BM}, j * {BN}])",
                ]  # fmt: skip
        return ManyKinds(program.sizes, tuple(lines))


def drawn(seed: int) -> ManyKinds:
    return ManyKindsMaker(seed).program()
