"""Programs with a mistake in them: each way to break a text gives a text that no reading makes right, or none."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from tests.fuzz.written import Program

Break = Callable[[Program, str, Random], str | None]
WORDS = "copy|reduce_\\w+|if_then_else|abs|relu|add|sub|mul|max|min|fill|gemm|gemm_v0|serial|Parallel"
WORD = re.compile(rf"\bT\.(?:tile\.)?({WORDS})\b")
BODY = "    with T.Kernel"


def _one(
    pattern: str | re.Pattern[str], text: str, new: Callable[[re.Match[str]], str], rng: Random, body: str = BODY
) -> str | None:
    """The text with one match in the kernel's body changed."""
    found = list(re.compile(pattern).finditer(text, text.index(body)))
    if not found:
        return None
    at = rng.choice(found)
    return text[: at.start()] + new(at) + text[at.end() :]


def unknown_name(p: Program, text: str, rng: Random) -> str | None:
    return _one(r"\b([tvac]\d+|[abc])\b(?= ?[,)\[]|$)", text, lambda m: m[0] + "_q", rng)


def unknown_word(p: Program, text: str, rng: Random) -> str | None:
    return _one(WORD, text, lambda m: m[0] + "q", rng)


def index_too_few(p: Program, text: str, rng: Random) -> str | None:
    return _one(r"(?<=[\w*]), 0\]", text, lambda m: "]", rng)


def index_too_many(p: Program, text: str, rng: Random) -> str | None:
    return _one(r"(?<=[\w*]), 0\]", text, lambda m: ", 0, 0]", rng)


def axis(p: Program, text: str, rng: Random) -> str | None:
    return _one(r"dim=1", text, lambda m: "dim=2", rng)


def stages(p: Program, text: str, rng: Random) -> str | None:
    return _one(r"num_stages=2", text, lambda m: "num_stages=9", rng)


def dtype(p: Program, text: str, rng: Random) -> str | None:
    return _one(r'\), "float(16|32)"\)', text, lambda m: m[0].replace("float", "flot"), rng)


def float_index(p: Program, text: str, rng: Random) -> str | None:
    return _one(r"\[b \* \d+", text, lambda m: m[0] + ".5", rng)


def bound_anew(p: Program, text: str, rng: Random) -> str | None:
    return _one(r"\b(t\d+)\[:, :\] =", text, lambda m: f"{m[1]} =", rng)


def another_shape(p: Program, text: str, rng: Random) -> str | None:
    """A buffer beside others of the shape that it had."""
    if not p.used_in_pairs:
        return None
    name = rng.choice(sorted(p.used_in_pairs))
    return re.sub(rf"( {name} = T\.\w+\(\(\d+), (\d+)\)", lambda m: f"{m[1]}, {int(m[2]) + 16})", text)


def blocks_outside(p: Program, text: str, rng: Random) -> str | None:
    return text.replace(BODY + "(T.ceildiv(", BODY + "(2 + T.ceildiv(") if "T.ceildiv(" in text else None


def branch_on_tile(p: Program, text: str, rng: Random) -> str | None:
    if " t0 = T.alloc_s" not in text and " t0 = T.alloc_f" not in text:
        return None
    lines = text.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("        T.copy("))
    return "\n".join([*lines[: at + 1], "        if t0 > 0:", "            T.clear(t0)", *lines[at + 1 :]]) + "\n"


def output_left(p: Program, text: str, rng: Random) -> str | None:
    """No store to one of the outputs."""
    name = rng.choice(p.outputs)
    kept = [line for line in text.splitlines() if f", {name}[" not in line]
    return "\n".join(kept) + "\n"


def read_first(p: Program, text: str, rng: Random) -> str | None:
    """The first load away, where what it loads is used next."""
    lines = text.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("        T.copy("))
    name = lines[at].rstrip(")").rsplit(", ", 1)[1]
    for line in lines[at + 1 :]:
        if re.search(rf"= .*\b{name}\b|(copy|reduce_\w+)\({name}\b|T\.tile\.\w+\(\w+, .*\b{name}\b", line):
            return "\n".join([*lines[:at], *lines[at + 1 :]]) + "\n"
        if name in line or line.endswith(":"):
            return None
    return None


def pipe(p: Program, text: str, rng: Random) -> str | None:
    return _one(r'_flag\("(\w+)"', text, lambda m: m[0].replace(m[1], m[1] + "7"), rng)


def no_wait(p: Program, text: str, rng: Random) -> str | None:
    return _one(r' +T\.wait_flag\(.*\n', text, lambda m: "", rng)


def no_set(p: Program, text: str, rng: Random) -> str | None:
    return _one(r' +T\.set_flag\(.*\n', text, lambda m: "", rng)


def another_memory(p: Program, text: str, rng: Random) -> str | None:
    return _one(r"alloc_(ub|L1|L0C)", text, lambda m: "alloc_L0A" if m[1] != "L0A" else "alloc_ub", rng)


def too_large(p: Program, text: str, rng: Random) -> str | None:
    return _one(r"alloc_(ub|L1|L0C)\(\((\d+), ", text, lambda m: f"alloc_{m[1]}((65536, ", rng)


HEAD = "def made("


def wrong_axis(p: Program, text: str, rng: Random) -> str | None:
    return _one(r"axis=-?\d", text, lambda m: "axis=7", rng, HEAD)


def option(p: Program, text: str, rng: Random) -> str | None:
    return _one(r"keepdims=", text, lambda m: "keepdimensions=", rng, HEAD)


def function(p: Program, text: str, rng: Random) -> str | None:
    return _one(r"\bT\.(sum|amax|amin|where|maximum|minimum|arange)\b", text, lambda m: m[0] + "q", rng, HEAD)


def method(p: Program, text: str, rng: Random) -> str | None:
    return _one(r"\.astype\(", text, lambda m: ".as_type(", rng, HEAD)


def type_name(p: Program, text: str, rng: Random) -> str | None:
    return _one(r'astype\("float(16|32)"', text, lambda m: m[0].replace("float", "flot"), rng, HEAD)


def stepped(p: Program, text: str, rng: Random) -> str | None:
    return _one(r"\[\.\.\., \d:\]", text, lambda m: m[0].replace(":]", "::2]"), rng, HEAD)


def branch_on_tensor(p: Program, text: str, rng: Random) -> str | None:
    return _one(r"(?m)^    (v\d+) = .*$", text, lambda m: f"{m[0]}\n    if {m[1]} > 0: {m[1]} = -{m[1]}", rng, HEAD)


def condition_of_two(p: Program, text: str, rng: Random) -> str | None:
    return _one(r"T\.where\(v\d+ \S+ 1", text, lambda m: m[0].replace("T.where(", "T.where(0 < "), rng, HEAD)


def gathered(p: Program, text: str, rng: Random) -> str | None:
    return _one(r"(?m)^    (v\d+) = .*$", text, lambda m: f"{m[0]}\n    {m[1]} = {m[1]}[{m[1]} * 0.5]", rng, HEAD)


def another_tensor(p: Program, text: str, rng: Random) -> str | None:
    more = "T.arange(997) * T.arange(991)"
    return _one(r"(?m)^    (v\d+) = .*$", text, lambda m: f"{m[0]}\n    {m[1]} = {m[1]} + {more}", rng, HEAD)


BEGINNER: tuple[Break, ...] = (
    wrong_axis, option, function, method, type_name, stepped, branch_on_tensor, condition_of_two, gathered, another_tensor,
)  # fmt: skip
BOTH: tuple[Break, ...] = (unknown_name, unknown_word, index_too_few, index_too_many, dtype)
DEVELOPER: tuple[Break, ...] = (
    *BOTH, axis, stages, float_index, bound_anew, another_shape, blocks_outside, branch_on_tile, output_left, read_first,
)  # fmt: skip
EXPERT: tuple[Break, ...] = (*BOTH, pipe, no_wait, no_set, another_memory, too_large)


def broken(p: Program, ways: tuple[Break, ...], seed: int) -> tuple[str, str]:
    """The text with a mistake, and what was done to it."""
    rng = Random(seed)
    for way in rng.sample(ways, len(ways)):
        text = p.text()
        made = way(p, text, rng)
        if made is not None and made != text:
            return made, way.__name__
    raise AssertionError("no way to break it")
