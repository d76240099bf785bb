"""A kernel whose sizes each call tells is compiled once: one text serves all of them."""

from __future__ import annotations

import re
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tile_eg
import tile_eg.language as T
from tile_eg import TileError
from tile_eg.cli.app import run
from tile_eg.emit.any_size_host import Picked, bounds
from tile_eg.emit.any_size_host import text as host_text
from tile_eg.frontend.text import load_text
from tile_eg.inputs import draw
from tile_eg.ir import index as ix
from tile_eg.ir.index import evaluate
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.sizes import size
from tile_eg.report.compare import compare
from tile_eg.search import one_text, search_options
from tile_eg.search.alike import values_of_any_size
from tile_eg.search.any_size import AnySize
from tile_eg.search.compiler import expected
from tile_eg.search.one_text import OneText
from tile_eg.transforms.any_size import NotAlike
from tile_eg.transforms.size_numbers import Numbers

EXAMPLES = Path(__file__).parent.parent / "examples"
SETTINGS = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
number = st.one_of(st.sampled_from([1, 2, 3, 16, 31, 64, 127, 128, 129, 257]), st.integers(1, 300))
few = st.integers(1, 3)
SIZES: dict[str, dict[str, Any]] = {
    "gemm": {"M": number, "N": number, "K": number},
    "vector_add": {"M": number, "N": number},
    "online_softmax": {"M": number, "N": number},
    "flash_attention_causal": {"S": number},
    "gemm_transposed": {"M": number, "N": number, "K": number},
    "matmul_add": {"M": number, "N": number, "K": number},
    "gemm_int8": {"M": number, "N": number, "K": number},
    "gelu_mul": {"M": number, "N": number},
    "softmax": {"M": number},
    "layer_norm": {"M": number},
    "flash_attention": {"B": few, "H": few, "S": number},
    "flash_attention_rows": {"B": few, "H": few, "S": number},
}
SHORT = ("gemm", "vector_add", "online_softmax")


def built(name: str, sizes: Any) -> Kernel:
    return load_text((EXAMPLES / f"{name}.tile").read_text(), f"{name}.tile").instantiate(sizes)


@cache
def texts(name: str) -> OneText:
    return OneText(lambda sizes: built(name, sizes), tuple(SIZES[name]), "910B2", search_options())


def check(name: str, data: st.DataObject) -> None:
    sizes = {n: data.draw(s, n) for n, s in SIZES[name].items()}
    kernel, one = built(name, sizes), texts(name).text({})
    assert isinstance(one, AnySize), one
    inputs = draw([t for t in kernel.tensors if not t.output], "uniform", seed=0)
    planned = one.at(kernel, sizes)
    assert planned is not None and planned.source == one.source
    assert [c for c in compare(planned.run(inputs).outputs, expected(kernel, inputs)) if not c.good] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.long] * (n == "gemm")) for n in SHORT])
@settings(SETTINGS, max_examples=6)
@given(data=st.data())
def test_the_text_computes_the_meaning_at_any_sizes(name: str, data: st.DataObject) -> None:
    check(name, data)


@pytest.mark.long
@pytest.mark.parametrize("name", SIZES)
@settings(SETTINGS, max_examples=60)
@given(data=st.data())
def test_the_text_computes_the_meaning_at_many_sizes(name: str, data: st.DataObject) -> None:
    check(name, data)


@pytest.mark.slow
def test_no_size_stands_in_the_text_as_a_number() -> None:
    def priced_at(m: int, n: int) -> AnySize:
        sizes = {"M": (m,), "N": (n,)}
        found = OneText(lambda s: built("vector_add", s), ("M", "N"), "910B2", search_options(effort="none"), sizes).text({})
        assert isinstance(found, AnySize)
        return found

    assert priced_at(4099, 4093).source == priced_at(4127, 4111).source


@pytest.mark.slow
def test_more_tiles_than_a_launch_has_blocks_are_served() -> None:
    one = texts("vector_add").text({})
    assert isinstance(one, AnySize)
    many = {"M": 64 * 70_000, "N": 128}
    assert one.at(built("vector_add", many), many) is not None


@pytest.mark.slow
def test_offsets_of_large_sizes_are_64_bits_wide() -> None:
    one = texts("gemm").text({})
    assert isinstance(one, AnySize)
    assert re.search(r"static_cast<int64_t>\(tile_[xy]\) \* K \* 128", one.source)


@pytest.mark.slow
def test_rows_that_lie_too_far_apart_are_copied_one_by_one() -> None:
    one = texts("gemm").text({})
    assert isinstance(one, AnySize)
    assert "if (K <= 65535)" in one.source
    assert re.search(r"A_gm\[static_cast<int64_t>\(tile_[xy]\) \* K \* 128 \+ static_cast<int64_t>\(row\) \* K", one.source)


# ---- in Python ----

ROWS, COLUMNS = T.symbolic("M"), T.symbolic("N")


@tile_eg.jit(out_idx=[-1])
@T.prim_func
def doubled(A: T.Tensor((ROWS, COLUMNS), "float32"), C: T.Tensor((ROWS, COLUMNS), "float32")):
    with T.Kernel(T.ceildiv(ROWS, 16), T.ceildiv(COLUMNS, 64)) as (bx, by):
        x = T.alloc_shared((16, 64), "float32")
        T.copy(A[bx * 16, by * 64], x)
        for i, j in T.Parallel(16, 64):
            x[i, j] = x[i, j] * 2.0
        T.copy(x, C[bx * 16, by * 64])


@pytest.mark.slow
@settings(SETTINGS, max_examples=12)
@given(st.sampled_from([0, 1, 2, 13, 16, 67]), st.sampled_from([0, 1, 7, 64, 131]))
def test_one_kernel_in_python_takes_arrays_of_any_shape(m: int, n: int) -> None:
    a = np.random.default_rng(m * n).uniform(-1, 1, (m, n)).astype(np.float32)
    np.testing.assert_array_equal(doubled(a), a * 2)


@pytest.mark.parametrize("m, n", [(0, 3), (3, 0), (0, 0)])
def test_a_dimension_of_zero_is_nothing_to_do(m: int, n: int) -> None:
    assert doubled(np.zeros((m, n), np.float32)).shape == (m, n)


@pytest.mark.slow
def test_a_kernel_is_told_which_sizes_it_is_priced_at() -> None:
    assert "kernel doubled for all sizes" in doubled.priced_at(M=(1, 4096)).get_host_source()
    with pytest.raises(TileError, match="doubled has no size called L"):
        doubled.priced_at(L=1)


# ---- in .tile ----

PRODUCT = """kernel product[M: dyn, N: dyn, K: dyn](A: f16[M, K], B: f16[K, N]) -> C: f16[M, N] {
  grid (bx, by) = (ceildiv(M, 32), ceildiv(N, 32))
  shared a: f16[32, 64], b: f16[64, 32]
  fragment c: f32[32, 32] = 0
  for k in pipelined(ceildiv(K, 64)) {
    a = A[bx*32, k*64]
    b = B[k*64, by*32]
    c += a @ b
  }
  C[bx*32, by*32] = c
}
"""


@pytest.fixture(scope="module")
def product_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("product") / "product.tile"
    file.write_text(PRODUCT)
    return file


@pytest.fixture
def product(product_file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file whose kernel is compiled once for all tests that look at it."""
    monkeypatch.delenv("TILE_EG_NO_CACHE")
    return product_file


def halves(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(np.float16)


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("m, n, k", [(1, 1, 1), (33, 31, 129), (67, 2, 64), (2, 3, 0), (0, 3, 4)])
def test_a_product_of_any_shape(product: Path, m: int, n: int, k: int) -> None:
    a, b = halves(m, k), halves(k, n)
    np.testing.assert_array_equal(tile_eg.load(product)(a, b), a @ b)


@pytest.mark.long
def test_the_text_is_the_same_whatever_was_called_first(product_file: Path) -> None:
    sources = set()
    for m in (3, 100):
        kernel = tile_eg.load(product_file)
        kernel(halves(m, 8), halves(8, m))
        sources.add(kernel.with_sizes(M=m, N=m, K=8).get_kernel_source())
    assert len(sources) == 1


OPEN_SUM = """kernel sum[M: dyn, BM=auto](A: f32[M, 96], B: f32[M, 96]) -> C: f32[M, 96] {
  grid b = ceildiv(M, BM)
  shared x: f32[BM, 96], y: f32[BM, 96]
  x = A[b*BM, 0]
  y = B[b*BM, 0]
  C[b*BM, 0] = x + y
}"""


@pytest.mark.slow
def test_block_sizes_that_are_open_are_found_once(tmp_path: Path) -> None:
    (tmp_path / "sum.tile").write_text(OPEN_SUM)
    kernel = tile_eg.load(tmp_path / "sum.tile")
    for m in (1, 67, 300):
        a = np.random.default_rng(m).uniform(-1, 1, (m, 96)).astype(np.float32)
        np.testing.assert_array_equal(kernel(a, a), a + a)
    assert len({kernel.with_sizes(M=m).get_kernel_source() for m in (1, 300)}) == 1


@pytest.mark.slow
def test_kernels_for_whole_tiles_and_for_any_size_share_the_search_of_block_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILE_EG_CACHE", str(tmp_path / "cache"))
    searches, lowered = [], []
    compiled, lower = one_text.compiled, one_text.lower_for_any_size
    monkeypatch.setattr(one_text, "compiled", lambda *given: searches.append(compiled(*given)) or searches[-1])
    monkeypatch.setattr(one_text, "lower_for_any_size", lambda *given: (lowered.append(given), lower(*given))[1])
    monkeypatch.setattr(one_text, "usual_sizes", lambda *_: {"M": 6144})  # whole tiles, of whatever block size is the best
    (tmp_path / "sum.tile").write_text(OPEN_SUM)
    tile_eg.load(tmp_path / "sum.tile").with_sizes(M=67).get_kernel_source()
    assert (len(lowered), len(searches)) == (2, 1)
    tried = {t.offer.move for t in searches[0].tried}
    assert tried and all(move.any_size for move in tried), "its blocks are found by the moves that it may have"


@pytest.mark.slow
def test_the_text_is_emitted_where_no_sizes_are_given(product: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["emit", str(product)]) == 0
    emitted = capsys.readouterr().out
    assert "product(GM_ADDR A, GM_ADDR B, GM_ADDR C, GM_ADDR workspace, int32_t M, int32_t N, int32_t K)" in emitted


@pytest.mark.slow
def test_sizes_that_are_given_stay_what_they_are(product: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["emit", str(product), "--set", "N=64", "--set", "K=128"]) == 0
    assert "GM_ADDR workspace, int32_t M)" in capsys.readouterr().out


@pytest.mark.slow
def test_the_host_part_counts_blocks_by_sizes(product: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["emit", str(product), "--host"]) == 0
    host = capsys.readouterr().out
    assert "const int64_t tiles = ((M + 31) / 32) * ((N + 31) / 32);" in host
    assert re.search(r"\(K \+ \d+\) / \d+ < 1", host), "a loop without a trip leaves the sum unwritten"


@pytest.mark.slow
def test_a_size_that_shapes_tiles_has_to_be_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rows.tile"
    file.write_text("""kernel rows[M: dyn, N: dyn](A: f32[M, N]) -> C: f32[M, N] {
      grid b = ceildiv(M, 4)
      shared x: f32[4, N]
      x = A[b*4, 0]
      C[b*4, 0] = x + x
    }""")
    assert run(["emit", str(file)]) == 1
    assert "give N\nnote: N is none that one text serves: a tile has another shape at other sizes" in capsys.readouterr().err
    assert run(["emit", str(file), "--set", "N=24"]) == 0
    assert "int32_t M)" in capsys.readouterr().out


MAIN = """
#include <cstdio>
#include <vector>
#include "acl/acl.h"
#include "vector_add.asc"
#define TILE_EG_ASC
#include "vector_add_host.h"

static int wrong(int64_t m)
{
    const size_t bytes = m * 1024 * sizeof(float);
    std::vector<float> x(m * 1024, 3.0f), y(m * 1024);
    void *a, *b, *c;
    aclrtMalloc(&a, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(&b, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(&c, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(a, bytes, x.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE);
    aclrtMemcpy(b, bytes, x.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE);
    vector_add_host::launch(nullptr, a, b, c, nullptr, m);
    aclrtSynchronizeStream(nullptr);
    aclrtMemcpy(y.data(), bytes, c, bytes, ACL_MEMCPY_DEVICE_TO_HOST);
    int found = 0;
    for (float v : y)
        found += v != 6.0f;
    return found;
}

int main()
{
    aclInit(nullptr);
    aclrtSetDevice(0);
    const bool nothing = vector_add_host::blocks(0) == 0 && vector_add_host::launch(nullptr, 0, 0, 0, 0, 0) == ACL_SUCCESS;
    const bool refused = vector_add_host::launch(nullptr, 0, 0, 0, 0, int64_t(1) << 31) == ACL_ERROR_INVALID_PARAM;
    const bool chosen = vector_add_host::variant(16) != vector_add_host::variant(65536);
    return nothing && refused && chosen ? wrong(1) + wrong(67) + wrong(1100) : 1;
}
"""


@pytest.fixture(scope="module")
def emitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the texts of a kernel for few rows and for many, and its block size open."""
    folder = tmp_path_factory.mktemp("emitted")
    text = (EXAMPLES / "vector_add.tile").read_text().replace("BM=64", "BM=auto")
    (folder / "vector_add.tile").write_text(text)
    for name, more in (("vector_add.asc", []), ("vector_add_host.h", ["--host"])):
        command = ["emit", str(folder / "vector_add.tile"), "--at", "M=16,65536", "--set", "N=1024", "-o", str(folder / name)]
        assert run([*command, *more]) == 0
    return folder


@pytest.mark.slow
def test_sizes_that_want_other_schedules_have_kernels_of_their_own(emitted: Path) -> None:
    assert "vector_add_2(" in (emitted / "vector_add.asc").read_text()
    assert "(M > 1024)" in (emitted / "vector_add_host.h").read_text()


@pytest.mark.slow
def test_the_host_part_launches_the_text_at_any_sizes(emitted: Path) -> None:
    (emitted / "main.asc").write_text(MAIN)
    assert run(["simulate", str(emitted / "main.asc"), "--no-auto-sync"]) == 0


@pytest.mark.slow
def test_the_spec_launches_the_text_at_the_sizes_that_were_named(product: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--at", "M=33", "--at", "N=5", "--at", "K=70"]
    for name, more in (("product.asc", []), ("product.toml", ["--spec"])):
        assert run(["emit", str(product), *sizes, *more, "-o", str(product.parent / name)]) == 0
    assert run(["simulate", str(product.parent / "product.asc"), "--args", str(product.parent / "product.toml")]) == 0
    assert "good, 0 findings" in capsys.readouterr().out


def test_one_size_is_given_or_priced(product: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["emit", str(product), "--set", "M=3", "--at", "M=4"]) == 1
    assert "M: either one size (--set) or several to be priced at (--at)" in capsys.readouterr().err
    assert run(["emit", str(product), "--at", "L=4"]) == 1
    assert "`product` has no size `L` to be priced at" in capsys.readouterr().err


@pytest.mark.slow
def test_a_program_has_its_sizes(product: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["emit", str(product), "--program"]) == 1
    assert "--program and --schedule are of a kernel at known sizes" in capsys.readouterr().err


# ---- how it is found ----

SETS = [{"M": m, "N": n} for m, n in ((101, 307), (151, 457), (229, 691), (347, 1033), (521, 1553), (787, 2333))]


@pytest.mark.parametrize(
    "of",
    [
        lambda m, n: m,
        lambda m, n: 3 * m + 7,
        lambda m, n: -(-n // 64),
        lambda m, n: -(-n // 64) * 2 - 1,
        lambda m, n: -(-m // 16) * -(-n // 64),
        lambda m, n: n - m + 5,
        lambda m, n: 12,
    ],
)
def test_a_number_is_found_as_an_expression_of_sizes(of: Any) -> None:
    sets = [*SETS, {"M": 1009, "N": 307}]
    found = Numbers(sets, [16, 64], {"M": 4096, "N": 4096}).expr([of(s["M"], s["N"]) for s in sets])
    assert found is not None
    assert all(evaluate(found, {"M": m, "N": n}) == of(m, n) for m in (0, 1, 15, 16, 999) for n in (0, 63, 64, 65, 4097))


def test_a_number_that_follows_in_another_way_is_not_found() -> None:
    assert Numbers(SETS, [16, 64], {"M": 4096, "N": 4096}).expr([s["M"] ** 2 % 97 for s in SETS]) is None


@pytest.mark.slow
def test_a_kernel_that_is_another_one_at_small_sizes_is_not_taken_for_one() -> None:
    def build(sizes: Any) -> Kernel:
        twice = "a = a + a" if sizes["M"] < 100 else "a = a + 1"
        return load_text(f"""kernel k[M: dyn](A: f32[M]) -> C: f32[M] {{
          grid b = ceildiv(M, 16)
          shared a: f32[16]
          a = A[b*16]
          {twice}
          C[b*16] = a
        }}""").instantiate(sizes)

    assert values_of_any_size(build, {"M": 4096}) == NotAlike("at M=1 it computes something else than at large sizes")


@pytest.mark.slow
@pytest.mark.parametrize("names", [("M",), ("N",), ("K",), ("M", "N"), ("M", "K"), ("N", "K")])
def test_any_of_the_sizes_may_be_open(names: tuple[str, ...]) -> None:
    fixed = {n: 512 for n in "MNK" if n not in names}
    values = values_of_any_size(lambda sizes: built("gemm", {**fixed, **sizes}), dict.fromkeys(names, 4096))
    assert values.sizes is not None
    small = dict.fromkeys(names, 300)
    assert evaluate(values.sizes.blocks, small) == prod(e for _, e in built("gemm", {**fixed, **small}).grid)


@pytest.mark.slow
def test_a_quotient_that_is_rounded_down_is_told_from_one_that_is_rounded_up() -> None:
    text = """kernel k[M: dyn](A: f32[M]) -> C: f32[M] {
      grid b = M // 16
      shared a: f32[16]
      a = A[b*16]
      C[b*16] = a
    }"""
    values = values_of_any_size(lambda sizes: load_text(text).instantiate(sizes), {"M": 4096})
    assert values.sizes is not None
    assert [evaluate(values.sizes.blocks, {"M": m}) for m in (16, 31, 32, 33)] == [1, 1, 2, 2]


@pytest.mark.slow
def test_a_tile_that_holds_all_of_a_size_everywhere_is_none() -> None:
    text = """kernel k[N: dyn](A: f32[N]) -> C: f32[N] {
      grid b = ceildiv(N, 16384)
      shared a: f32[16384]
      a = A[b*16384]
      C[b*16384] = a
    }"""
    values = values_of_any_size(lambda sizes: load_text(text).instantiate(sizes), {"N": 4096})
    assert values.sizes is not None
    assert evaluate(values.sizes.blocks, {"N": 100_000}) == 7


# ---- the host's choice ----


def test_a_launch_takes_the_schedule_of_the_nearest_numbers() -> None:
    picked = Picked((("M", (1, 128, 4096)),), (0, 1, 2))
    assert bounds((1, 128, 4096)) == [11, 724]
    assert [picked.at({"M": m}) for m in (0, 1, 11, 12, 724, 725, 10**6)] == [0, 0, 0, 1, 1, 2, 2]


def test_sizes_are_computed_in_the_host_part_as_here() -> None:
    m, n = size("M", 8), size("N", 8)
    assert host_text(ix.minimum((m + 15) // 16 * 2, 24)) == "std::min<int64_t>(((M + 15) / 16) * 2, 24)"
    assert host_text((m + 15) // 16 * n - 1) == "(((M + 15) / 16) * N) + -1"
