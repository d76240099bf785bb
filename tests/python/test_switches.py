"""Every keyword of the Python API is honoured or refused: none is accepted and ignored."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tests.python.written import prim_func
from tile_eg import language
from tile_eg.errors import TileError, TileWarning
from tile_eg.frontend.python.refused import REFUSED
from tile_eg.jit import KNOWN, CompiledKernel, switches
from tile_eg.jit.arrays import to_numpy
from tile_eg.search.compiler import check_kernel


@T.prim_func
def fill(A: T.Tensor((16, 16), "float32")):
    with T.Kernel(1):
        T.fill(A[0:16, 0:16], 1.0)


def jitted(**options: Any) -> CompiledKernel:
    return tile_eg.jit(fill, **options)


# jit


@pytest.mark.parametrize(
    ("options", "chip"),
    [
        ({}, "910B2"),
        ({"target": "auto"}, "910B2"),
        ({"target": "ascendc"}, "910B2"),
        ({"target": "npuir", "chip": "910B4"}, "910B4"),
        ({"target": "950"}, "950"),
        ({"target": "Ascend910B3"}, "910B3"),
        ({"platform": "A3"}, "910C"),
        ({"platform": "A5"}, "950"),
        ({"platform": "A2", "chip": "910B4"}, "910B4"),
        ({"platform": "A5", "target": "ascendc"}, "950"),
    ],
)
def test_target_and_platform_name_the_chip(options: dict[str, Any], chip: str) -> None:
    assert jitted(**options).chip == chip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "nonsense"}, "target='nonsense' is nothing that kernels are compiled for"),
        ({"target": "cuda"}, "target='cuda' is nothing"),
        ({"target": ["ascendc"]}, "is nothing that kernels"),
        ({"target": "950", "chip": "910B2"}, "chip='910B2' and target='950' name different machines"),
        ({"platform": "A5", "chip": "910B2"}, "chip='910B2' and platform='A5' name different machines"),
        ({"platform": "A9"}, "platform='A9' is unknown"),
        ({"execution_backend": "torch"}, "jit: execution_backend is "),
        ({"target_host": "llvm"}, "jit: target_host is None here, not 'llvm'"),
        ({"verbose": True}, "tile-eg explain shows what was decided"),
        ({"debug_root_path": "out"}, "jit: debug_root_path"),
        ({"compile_flags": ["-DX=1"]}, "jit: compile_flags has no '-DX=1' here"),
        ({"out_index": [0]}, "jit has no option 'out_index'"),
        ({"out_idx": "0"}, "out_idx is a position, or a list of them, not '0'"),
        ({"workspace_idx": 1.5}, "workspace_idx is a position, or a list"),
        ({"exact_math": "no"}, "exact_math is True or False, not 'no'"),
        ({"effort": ["full"]}, "unknown effort"),
        ({"pass_configs": [1]}, "pass_configs is a dictionary of switches, not list"),
        ({"pass_configs": {"tl.ascend_auto_snyc": True}}, "there is no switch 'tl.ascend_auto_snyc'"),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TileError) as error:
        jitted(**options)
    assert message in error.value.message


def test_a_refusal_offers_the_nearest_name() -> None:
    with pytest.raises(TileError, match="out_idx"):
        jitted(out_index=[0])


TAKEN: dict[str, Any] = {
    "target_host": None, "execution_backend": "cython", "verbose": False, "debug_root_path": None,
}  # fmt: skip


def test_tilelangs_own_defaults_are_taken() -> None:
    assert TAKEN.keys() == switches._OTHERS.keys()
    assert jitted(**TAKEN).chip == "910B2"


def test_no_option_of_jit_goes_unheard() -> None:
    """Each is one of ours, which the search or the kernel checks, or is checked by `switches`."""
    searched = {"effort", "exact_math", "rules", "without", "cost_model", "deterministic", "untuned"}
    of_the_kernel = {"out_idx", "workspace_idx", "chip", "seconds", "memory", "schedule"}
    assert set(KNOWN) == searched | of_the_kernel | {"target", "platform", "pass_configs"}


FALSE_IS_REFUSED = ("TL_ASCEND_AUTO_SYNC", "TL_ASCEND_AUTO_CV_COMBINE", "TL_ASCEND_AUTO_CV_SYNC")


@pytest.mark.parametrize("name", FALSE_IS_REFUSED)
def test_what_is_always_found_cannot_be_switched_off(name: str) -> None:
    key = tile_eg.PassConfigKey[name]
    jitted(pass_configs={key: True, str(key.value): True})
    with pytest.raises(TileError, match="no flags, barriers, addresses or scopes of its own"):
        jitted(pass_configs={key: False})


def test_places_are_found_also_where_their_planning_is_switched_off() -> None:
    with pytest.warns(TileWarning, match="gives its buffers no addresses: they are found"):
        jitted(pass_configs={tile_eg.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: False})


@pytest.mark.parametrize("key", tile_eg.PassConfigKey, ids=str)
def test_every_pass_switch_has_values_that_are_so_and_refuses_all_others(key: Any) -> None:
    allowed, why = switches._PASSES[key]
    for value in allowed:
        jitted(pass_configs={key: value})
    told = True in allowed or str(key.value) in switches._BY_AUTHOR
    for value in {True, False, 32, "yes", None} - set(allowed) if not told else {32, "yes", None}:
        with pytest.raises(TileError) as error:
            jitted(pass_configs={key: value})
        assert why in error.value.message


# load and its search


def test_an_unknown_option_of_load_is_refused() -> None:
    with pytest.raises(TileError, match="the search has no option 'efort'"):
        tile_eg.load("examples/gemm.tile", efort="full")


@pytest.mark.parametrize("options", [{"fuel": "many"}, {"k": 1.5}, {"fuel": True}, {"k": 0}])
def test_numbers_of_the_search_are_whole(options: dict[str, Any]) -> None:
    with pytest.raises(TileError):
        tile_eg.load("examples/gemm.tile", **options)


# words


WORDS = {
    "Kernel": "with T.Kernel(1, {}): T.fill(A, 1.0)",
    "use_swizzle": "with T.Kernel(1):\n        T.use_swizzle(2, {}); T.fill(A, 1.0)",
    "serial": "with T.Kernel(1):\n        for i in T.serial(1, {}): T.fill(A, 1.0)",
    "unroll": "with T.Kernel(1):\n        for i in T.unroll(1, {}): T.fill(A, 1.0)",
    "Pipelined": "with T.Kernel(1):\n        for i in T.Pipelined(1, {}): T.fill(A, 1.0)",
    "Parallel": "with T.Kernel(1):\n        for i, j in T.Parallel(16, 16, {}): A[i, j] = 1.0",
    "copy": "with T.Kernel(1):\n        a = T.alloc_shared((16, 16), 'float32'); T.fill(a, 1.0); T.copy(a, A, {})",
    "gemm": "with T.Kernel(1):\n        a = T.alloc_shared((16, 16), 'float16'); c = T.alloc_fragment((16, 16), 'float32')\n"
            "        T.fill(a, 1.0); T.gemm(a, a, c, init=True, {}); T.copy(c, A)",
}  # fmt: skip


def with_statement(statement: str) -> CompiledKernel:
    head = "@T.prim_func\ndef f(A: T.Tensor((16, 16), 'float32')):\n    with T.Kernel(1):\n"
    return tile_eg.jit(prim_func(f"{head}        {statement}\n        T.fill(A, 1.0)\n"))


def with_argument(word: str, argument: str) -> CompiledKernel:
    text = f"@T.prim_func\ndef f(A: T.Tensor((16, 16), 'float32')):\n    {WORDS[word].format(argument)}\n"
    return tile_eg.jit(prim_func(text))


@pytest.mark.parametrize(("word", "name"), [(w, n) for w, names in REFUSED.items() for n in names])
def test_an_argument_that_cannot_be_kept_is_refused_at_its_line(word: str, name: str) -> None:
    default, why = REFUSED[word][name]
    with_argument(word, f"{name}={default!r}")
    with pytest.raises(TileError) as error:
        with_argument(word, f"{name}={'col' if default == 'row' else 3!r}")
    assert error.value.message == f"T.{word} takes no {name}: {why}" and error.value.span is not None


HEARD = {
    "Kernel": {"threads", "is_npu"},
    "use_swizzle": {"panel_size", "index", "M", "N", "K", "block_M", "block_N", "off", "dir", "in_loop"},
    "serial": {"stop", "step"},
    "unroll": {"stop", "step"},
    "Pipelined": {"stop", "num_stages"},
    "copy": {"size", "enable_relu", "transpose", "pad_value", "disable_tma"},
    "gemm": {"size", "transpose_A", "transpose_B", "a_transpose", "b_transpose", "init", "initC", "clear_accum", "policy"},
}
"""Arguments with a default that have a meaning, or an error of their own, in `test_python_words` and `test_python_errors`."""


@pytest.mark.parametrize("word", WORDS)
def test_no_argument_of_these_words_goes_unheard(word: str) -> None:
    parameters = getattr(language, word).signature.parameters
    optional = {n for n, p in parameters.items() if p.default is not p.empty}
    assert optional == HEARD.get(word, set()) | REFUSED.get(word, {}).keys()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("T.func_attr({'enable_auto_sync': False})", "'enable_auto_sync' is True here, not False"),
        ("T.func_attr({'global_symbol': 'main'})", "the attribute 'global_symbol' has no meaning here"),
        ("T.func_attr(3)", "T.func_attr takes a dictionary"),
        ("a = T.alloc_shared((16, 16), 'float32', 'wmma.accumulator')", "a buffer has no scope 'wmma.accumulator' here"),
        ("a = T.alloc_shared((16, 16), 'float32', scope=3)", "a buffer has no scope int 3 here"),
        ("T.vcast(A, A, size=[3, 3, 3])", "an extent of [3, 3, 3] does not fit A"),
    ],
)
def test_other_arguments_are_checked(statement: str, message: str) -> None:
    with pytest.raises(TileError) as error:
        with_statement(statement)
    assert message in error.value.message


@pytest.mark.parametrize("argument", ["threads=0", "threads='two'", "is_npu='yes'"])
def test_a_launch_has_whole_numbers_of_threads(argument: str) -> None:
    with pytest.raises(TileError):
        with_argument("Kernel", argument)


def test_a_hint_on_the_order_of_blocks_gets_a_note() -> None:
    (note,) = check_kernel(with_statement("T.use_swizzle(10)").kernel)
    assert note.text == "the order of blocks is found: T.use_swizzle changes nothing"


def test_a_policy_of_warps_is_taken_and_anything_else_is_refused() -> None:
    assert with_argument("gemm", "policy=T.GemmWarpPolicy.FullRow").kernel.body == with_argument("gemm", "").kernel.body
    with pytest.raises(TileError, match="a policy is one of T.GemmWarpPolicy.Square"):
        with_argument("gemm", "policy=3")


# arrays


def test_a_masked_array_is_refused() -> None:
    with pytest.raises(TileError, match="argument A is a masked array"):
        to_numpy(np.ma.masked_array(np.zeros(3), [True, False, False]), "A")


class Tensor:
    """A torch tensor as far as `to_numpy` looks at it: torch itself is not installed."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__ |= {"device": SimpleNamespace(type="cpu"), "dtype": "float32", "layout": "strided", "requires_grad": False}
        self.__dict__ |= {"is_nested": False, "is_quantized": False} | fields

    def is_neg(self) -> bool:
        return False

    def detach(self) -> Tensor:
        return self

    def numpy(self) -> np.ndarray:
        return np.ones(3)


def stand_in(monkeypatch: pytest.MonkeyPatch, gradients: bool) -> None:
    torch = SimpleNamespace(Tensor=Tensor, bfloat16="bfloat16", strided="strided", is_grad_enabled=lambda: gradients)
    monkeypatch.setitem(sys.modules, "torch", torch)


def test_a_tensor_that_requires_a_gradient_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, gradients=True)
    with pytest.raises(TileError, match="argument A requires a gradient, and a kernel has none") as error:
        to_numpy(Tensor(requires_grad=True), "A")
    assert error.value.help == "pass A.detach(), or call the kernel under torch.no_grad()"
    assert to_numpy(Tensor(), "A").shape == (3,)


def test_under_no_grad_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, gradients=False)
    assert to_numpy(Tensor(requires_grad=True), "A").shape == (3,)


def test_a_sparse_tensor_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, gradients=False)
    with pytest.raises(TileError, match="argument A is sparse_coo, and a kernel takes dense tensors"):
        to_numpy(Tensor(layout="sparse_coo"), "A")
