"""Produces every command's output and every number of docs/cost_models.md: `python docs/course.py` rewrites its blocks.

    <!-- course: dataset -->
    ```text
    $ tile-eg dataset ...       the commands of a step, and what they print
    ```

It takes some minutes. Seconds, and the last digits of what is learnt, are those of the machine that it ran on. The step `graphs`
needs torch, and is left as it stands without. A test runs all steps at small size (`small=True`).
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "cost_models.md"
BLOCK = re.compile(r"<!-- course: (?P<name>\w+) -->\n```text\n.*?^```$", re.M | re.S)
TAUGHT = ("gemm", "gemm_exp", "softmax", "flash_attention")
JUDGED = ("layer_norm", "flash_attention_causal")
ALSO_DECIDED = ("rms_norm", "gelu_mul")
SMALL_TAUGHT, SMALL_JUDGED = ("softmax",), ("rms_norm",)
CONSTANTS = "launch.prologue_us,launch.core_us,shared.hbm_write,path.gm_to_ub.issue"
TRUE = {"launch.prologue_us": 3.5, "launch.core_us": 0.25, "shared.hbm_write": 0.6e12}
"""What the chip has on which the rows of the step `calibrate` were "measured"."""


class Course:
    """The steps, in a folder of their own; a small run gives the commands other kernels and counts."""

    def __init__(self, small: bool) -> None:
        self.small = small
        self.taught, self.judged = (SMALL_TAUGHT, SMALL_JUDGED) if small else (TAUGHT, JUDGED)
        self.count = 16 if small else 360
        self.steps: dict[str, Callable[[], str]] = {
            "look": self.look, "crowded": self.crowded, "dataset": self.dataset, "card": self.card, "arrays": self.arrays,
            "compare": self.compare, "graphs": self.graphs, "teach": self.teach, "plug": self.plug, "decide": self.decide,
            "faults": self.faults, "calibrate": self.calibrate,
        }  # fmt: skip

    def look(self) -> str:
        kernels = self.judged[0] if self.small else "gemm.tile examples/softmax"
        return shown(f"tile-eg compare-models examples/{kernels}.tile --models roofline,analytic,timeline")

    def crowded(self) -> str:
        given = "-k 2 --random 1" if self.small else ""
        return shown(f"tile-eg compare-models examples/softmax.tile {given} --models crowded:Crowded,timeline")

    def dataset(self) -> str:
        files = " ".join(f"examples/{name}.tile" for name in (*self.taught, *self.judged))
        return shown(f"tile-eg dataset {files} -o schedules -n {self.count} --format jsonl", "--workers 1" if self.small else "")

    def card(self) -> str:
        text = Path("schedules/_card.md").read_text(encoding="utf-8")
        return "$ head schedules/_card.md\n" + text.partition("\n## ")[0].strip()

    def arrays(self) -> str:
        lines = [
            "from tile_eg.laboratory import load_dataset", "data = load_dataset('schedules')",
            "print(data.features().shape, data.labels.shape, data.decisions.shape)",
            "g = data.graphs[0]", "print(g.nodes.shape, g.edges.shape, data.rows[0].decisions)",
        ]  # fmt: skip
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec("\n".join(lines), {})
        return "\n".join([*(f">>> {line}" for line in lines), out.getvalue().rstrip()])

    def compare(self) -> str:
        return shown(f"{self._judge} --models ridge:Ridge,trees:Trees,roofline,analytic,timeline")

    def graphs(self) -> str:
        return shown(f"{self._judge} --models graph_net:GraphNet") if find_spec("torch") else ""

    @property
    def _judge(self) -> str:
        return f"tile-eg compare-models --data schedules --judge {','.join(self.judged)}"

    def teach(self) -> str:
        without = ",".join(self.judged)
        return shown(f"tile-eg teach ridge:Order --data schedules --without {without} -o order.json")

    def plug(self) -> str:
        text = shown(f"tile-eg explain examples/{self.judged[-1]}.tile --cost-model ridge:Order@order.json")
        told = ("$", "predicted"), ("decided", "margin")
        lines = (line for line in text.splitlines() if line.startswith(told[0]) or any(word in line for word in told[1]))
        return "\n".join(re.sub(r"(?<=\S) {4,}", "   ", line) for line in lines)

    def decide(self) -> str:
        return "\n".join(_decided(self.judged if self.small else (*self.judged, *ALSO_DECIDED)))

    def faults(self) -> str:
        command = "tile-eg emit examples/softmax.tile --cost-model broken:Broken"
        both = [shown(command, of_errors=True), shown(f"{command} --model-faults default", of_errors=True)]
        return "\n\n".join(both)

    def calibrate(self) -> str:
        _measure(("vector_add", "softmax") if self.small else ("vector_add", "softmax", "gemm"))
        return shown(f"tile-eg calibrate rows.csv --constants {CONSTANTS} -o mine.toml")


def _decided(kernels: tuple[str, ...]) -> Iterator[str]:
    """What the search finds by itself and under the context model, by the timeline, where it keeps one schedule of an e-graph or
    four; and how many programs it planned in all."""
    import tile_eg
    from tile_eg.report.text import duration, table
    from tile_eg.search import search_options
    from tile_eg.search.compiler import lower

    rows = []
    for name in kernels:
        kernel = tile_eg.load(ROOT / "examples" / f"{name}.tile").with_sizes().kernel
        for kept, model in ((k, m) for k in (1, 4) for m in (None, "ridge:Order@order.json")):
            found = lower(kernel, search=search_options(cost_model=model, k=kept))
            planned = len(found.candidates) + len(found.dropped)
            time, took = duration(found.timeline.microseconds * 1e-6), duration(found.seconds)
            rows.append((name, kept, model or "analytic", time, planned, took))
    yield table(rows, ("kernel", "kept", "guided by", "predicted", "planned", "takes"), right=(1, 3, 4, 5))


def _measure(kernels: tuple[str, ...]) -> None:
    """Writes rows.csv: kernels at some sizes, timed on a chip whose constants are known."""
    import csv

    import tile_eg
    from tile_eg.chips import chip_of, tables_of
    from tile_eg.search.compiler import lower
    from tile_eg.timeline import engine

    tables = tables_of("910B2")
    for name, value in TRUE.items():
        table, _, key = name.partition(".")
        tables[table][key] = value
    chip, out = chip_of(tables), [("file", "shape", "chip", "value", "unit")]
    for name, size in (*((k, s) for k in kernels for s in (128, 512, 2048)), ("vector_add", 1 << 18)):
        which = "N" if name == "vector_add" else "M"
        program = lower(tile_eg.load(ROOT / "examples" / f"{name}.tile").with_sizes(**{which: size}).kernel).program
        us = engine.run(program, chip).microseconds
        out.append((str(ROOT / "examples" / f"{name}.tile"), f"{which}={size}", "910B2", f"{us:.6g}", "us"))
    with open("rows.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(out)


def shown(command: str, hidden: str = "", of_errors: bool = False) -> str:
    """A command and what it prints; `hidden` is given to it as well. With `of_errors`, what it complains of alone."""
    from tile_eg.cli.app import run

    out, wrong = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(wrong):
        code = run(shlex.split(f"{command} {hidden}")[1:])
    if code and not of_errors:
        raise SystemExit(f"{command}: exit code {code}\n{wrong.getvalue()}")
    text = wrong.getvalue() if of_errors else out.getvalue()
    return f"$ {' '.join(command.split())}\n{text}".rstrip()


@contextlib.contextmanager
def folder() -> Iterator[None]:
    """A folder with the examples in it and the models of the page, from which modules are found."""
    with tempfile.TemporaryDirectory() as made, contextlib.chdir(made):
        Path("examples").symlink_to(ROOT / "examples")
        for name, body in modules().items():
            Path(name).write_text(body, encoding="utf-8")
        sys.path.append(str(ROOT / "examples" / "models"))
        try:
            yield
        finally:
            sys.path.remove(str(ROOT / "examples" / "models"))


def modules() -> dict[str, str]:
    """The modules that the page shows whole: each begins with its name."""
    text = PAGE.read_text(encoding="utf-8")
    return dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)^```$", text, re.M | re.S))


def run_course(small: bool = False) -> Mapping[str, str]:
    """What each step gives; empty where it cannot be done here."""
    with folder():
        return {name: step() for name, step in Course(small).steps.items()}


def filled(text: str, blocks: Mapping[str, str]) -> str:
    def block(mark: re.Match[str]) -> str:
        found = blocks.get(mark["name"])
        return f"<!-- course: {mark['name']} -->\n```text\n{found}\n```" if found else mark.group(0)

    return BLOCK.sub(block, text)


if __name__ == "__main__":
    os.environ["TILE_EG_NO_CACHE"] = "1"
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), run_course()), encoding="utf-8")
