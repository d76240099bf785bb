"""Compiles an example again and again in one process: `python -m benchmarks.triton_ascend.ours EXAMPLE SIZES TIMES`.

Prints the processor seconds of each of so many compilations, from its text to Ascend C, as JSON. SIZES are like M=512,N=512.
"""

import json
import sys
from pathlib import Path
from time import process_time

EXAMPLES = Path(__file__).parents[2] / "examples"


def main(example: str, sizes: dict[str, int], times: int) -> None:
    print(json.dumps([_seconds(EXAMPLES / f"{example}.tile", sizes) for _ in range(times)]))


def _seconds(file: Path, sizes: dict[str, int]) -> float:
    start = process_time()
    from tile_eg.frontend.text import load_text
    from tile_eg.search.compiler import lower

    _ = lower(load_text(file.read_text(), str(file)).instantiate(sizes)).source
    return process_time() - start


if __name__ == "__main__":
    given = (part.split("=") for part in sys.argv[2].split(",") if part)
    main(sys.argv[1], {name: int(value) for name, value in given}, int(sys.argv[3]))
