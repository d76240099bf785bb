"""Research on cost models: schedules of kernels, their features, labels and graphs as arrays; models held against each other.

    from tile_eg.laboratory import load_dataset

    data = load_dataset("schedules")         # of: tile-eg dataset examples/gemm.tile -o schedules -n 200
    data.features()                          # float64[N, features]: cost_models.context.FEATURES names them
    data.labels                              # float64[N]: microseconds
    data.decisions, data.options             # int64[N, decisions], and what each number stands for
    data.graphs[0].nodes, .edges, .kinds     # a program's instructions, and who reads what whom wrote
    data.programs                            # for RankModel.update and predict
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tile_eg.laboratory.data import Dataset, load_dataset
    from tile_eg.laboratory.dataset import Case, Wanted, make_dataset
    from tile_eg.laboratory.graphs import GraphArrays, graph_of
    from tile_eg.laboratory.rows import Row

__all__ = ["Case", "Dataset", "GraphArrays", "Row", "Wanted", "graph_of", "load_dataset", "make_dataset"]
_WHERE = {
    "Case": "dataset", "Dataset": "data", "GraphArrays": "graphs", "Row": "rows", "Wanted": "dataset",
    "graph_of": "graphs", "load_dataset": "data", "make_dataset": "dataset",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """What is asked for is imported then: a comparison needs nothing of datasets."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
