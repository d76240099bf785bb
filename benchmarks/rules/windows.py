"""Kernels in which windows of tiles are read, and results are put into windows."""

from __future__ import annotations

IN_TILES = """
kernel windows[M=32, N=128](X: f32[M, N], Y: f32[M, N]) -> C: f32[{rows}, {cols}] {{
  grid bx = 1
  shared x: f32[M, N], y: f32[M, N], a: f32[M, 64], c: f32[{rows}, {cols}]
  x = X[0, 0]
  y = Y[0, 0]
  {value}
  C[0, 0] = c
}}
"""
LOOP, ENDS = "for s in serial(8) {", " x = c }  c = x"
UPPER, LOWER, SUM, LESS = "c[0:16, :]", "c[16:32, :]", "x[0:16, :] + y[0:16, :]", "x[0:16, :] - x[16:32, :]"
WINDOWS = {
    "columns less a tile": (32, 64, "a = Y[0, 0]  x = cumsum(x, 0)  c = x[:, 64:128] - a"),
    "a tile less columns": (32, 64, "a = Y[0, 0]  x = cumsum(x, 0)  c = a - x[:, 64:128]"),
    "rows of another length": (64, 64, "c = reshape(x, 64, 64) + reshape(y, 64, 64)"),
    "every second number": (32, 64, "c = reshape(every(x, 1, 2), 32, 64)"),
    "sums of some rows": (32, 128, "c = y  c[8:16, :] = x[0:8, :] + x[8:16, :]"),
    "sums above differences": (32, 128, f"{LOOP} {UPPER} = {SUM}  {LOWER} = {LESS} {ENDS}"),
    "sums below differences": (32, 128, f"{LOOP} {LOWER} = {SUM}  {UPPER} = {LESS} {ENDS}"),
    "sums below rows": (32, 128, f"{LOOP} {UPPER} = x[16:32, :]  {LOWER} = {SUM} {ENDS}"),
    "running sums upwards": (32, 128, "c = cumsum(x, 0, 1)"),
}
"""Rows and columns of what becomes of two tiles, and how."""


def windows() -> dict[str, str]:
    return {name: IN_TILES.format(rows=rows, cols=cols, value=value) for name, (rows, cols, value) in WINDOWS.items()}
