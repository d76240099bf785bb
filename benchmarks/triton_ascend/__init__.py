"""Our compile times beside those of Triton for Ascend (`triton-ascend`, `ascendnpu-ir`), where an interpreter has these packages.

`python -m benchmarks.triton_ascend` prints the table. Neither package needs an NPU to compile:
`python -m venv DIR && DIR/bin/pip install triton-ascend ascendnpu-ir numpy pybind11`, and then `--python DIR/bin/python`.
"""
