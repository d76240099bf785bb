"""Measures, prints a table, and keeps the results for the next run to compare with. Exit code 1 if a limit is passed.

Then, in processor seconds, ours beside Triton's, where the interpreter that `TILE_EG_TRITON` names has it (`triton_ascend`).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.measures import measures
from benchmarks.triton_ascend.__main__ import compared
from tile_eg.report.text import duration, table

KEPT = Path(__file__).parent / "results" / "latest.json"


def main() -> int:
    before = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    now: dict[str, float] = {}
    rows, late = [], 0
    for m in measures():
        seconds = now[m.name] = m.median()
        over = m.limit is not None and seconds > m.limit
        late += over
        ratio = f"{seconds / before[m.name]:.2f}x" if m.name in before else "-"
        rows.append((m.name, duration(seconds), f"{m.limit:g} s" if m.limit else "-", ratio, "OVER" if over else ""))
    print(table(rows, ("what", "time", "limit", "to previous", ""), right=(1, 2, 3)))
    print(f"\n{compared()}")
    KEPT.parent.mkdir(exist_ok=True)
    KEPT.write_text(json.dumps(now, indent=1))
    return 1 if late else 0


sys.exit(main())
