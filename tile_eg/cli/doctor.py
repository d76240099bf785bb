"""`tile-eg doctor`: what of this machine kernels run on, what is missing, and how to get it."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from tile_eg.cli.console import show


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> int:
    """Says what is here to run kernels, and what is missing.

    Compilers, CANN, driver, chip, torch: what is missing comes with how to get it. The exit code is 0 where kernels run, in the
    simulator or on an NPU; else 1.
    """
    from tile_eg.npu.doctor import can_run, data, findings, text

    found = findings()
    show(json.dumps(data(found), indent=2) if as_json else text(found))
    return 0 if can_run(found, "simulator") or can_run(found, "npu") else 1
