"""LoadData of images: what a filter sees at each of its places, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulator.kernels import up
from tests.simulator.test_cube_ways import cube, nz, run

IMAGE = """GlobalTensor<half> gx, gb; GlobalTensor<float> gc;
gx.SetGlobalBuffer((__gm__ half*)X); gb.SetGlobalBuffer((__gm__ half*)B); gc.SetGlobalBuffer((__gm__ float*)C);
auto x = l1.GetWithOffset<half>({source}, 0), b1 = l1.GetWithOffset<half>({k} * 16, 262144);
auto a2 = l0a.Get<half>(), b2 = l0b.Get<half>(); auto c = l0c.Get<float>();
DataCopy(x, gx, {source}); DataCopy(b1, gb, {k} * 16);
ORDER(MTE2_MTE1);
const uint8_t pads[4] = {{{pads}}};
LoadData3DParamsV2<half> p(
  pads, {h}, {w}, {channels}, {k}, {m}, 0, 0, {sw}, {sh}, {fw}, {fh}, {dw}, {dh}, false, false, half({value}));
LoadData(a2, x, p);
for (int i = 0; i < {k} / 16; ++i) LoadData(b2[i * 256], b1[i * 256], LoadData2DParams(0, 1, 1, 0, 0, false, 0));
ORDER(MTE1_M);
Mmad(c, a2, b2, MmadParams({m}, 16, {k}, 0, false, true));
ORDER(M_FIX);
Fixpipe<float, float, CFG_ROW_MAJOR>(gc, c, FixpipeParamsV220(16, {m}, {m16}, 16, false));
"""


def im2col(
    x: np.ndarray,
    pads: tuple[int, ...],
    filter: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    value: float,
):
    """x: C1 x H x W x C0; a row for each place of the filter, columns by channel block, element of the filter, channel."""
    left, right, top, bottom = pads
    x = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=value)
    (fw, fh), (sw, sh), (dw, dh) = filter, stride, dilation
    down, across = (x.shape[1] - (fh - 1) * dh - 1) // sh + 1, (x.shape[2] - (fw - 1) * dw - 1) // sw + 1
    columns = [
        x[c, y * dh : y * dh + (down - 1) * sh + 1 : sh, z * dw : z * dw + (across - 1) * sw + 1 : sw].reshape(down * across, -1)
        for c in range(x.shape[0]) for y in range(fh) for z in range(fw)
    ]  # fmt: skip
    return np.concatenate(columns, axis=1)


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(
    size=st.tuples(st.integers(3, 7), st.integers(3, 7)), filter=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    stride=st.tuples(st.integers(1, 2), st.integers(1, 2)), dilation=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    pads=st.tuples(*[st.integers(0, 2)] * 4), channels=st.sampled_from([16, 32]),
)  # fmt: skip
def test_an_image_becomes_the_matrix_of_its_filter(size, filter, stride, dilation, pads, channels) -> None:  # type: ignore[no-untyped-def]
    (h, w), rng = size, np.random.default_rng(7)
    spans = [(f - 1) * d + 1 for f, d in zip(filter, dilation, strict=True)]
    if w + pads[0] + pads[1] < spans[0] or h + pads[2] + pads[3] < spans[1]:
        return
    x = rng.integers(-4, 5, (channels // 16, h, w, 16)).astype(np.float16)
    matrix = im2col(x, pads, filter, stride, dilation, 3).astype(np.float64)
    m, k = matrix.shape
    b = rng.integers(-2, 3, (16, k)).astype(np.float16)  # turned: n x k
    text = IMAGE.format(
        source=x.size, k=k, pads=", ".join(map(str, pads)), h=h, w=w, channels=channels, m=m, m16=up(m, 16), value=3,
        sw=stride[0], sh=stride[1], fw=filter[0], fh=filter[1], dw=dilation[0], dh=dilation[1],
    )  # fmt: skip
    done = run(cube("X B C", text), x, nz(b, 16), np.zeros((m, 16), np.float32))
    assert not {f.kind for f in done.findings} - {"uninitialised"}, done  # one row of a product reads A unpadded
    if m > 1:
        np.testing.assert_array_equal(done.outputs[0], matrix @ b.T.astype(np.float64))


def one_image(set_up: str, config: str, source_rows: int, m: int, *, transpose: bool = False) -> str:
    """A matrix of source_rows x 16 in L1, through LoadData into L0A, times the identity."""
    return cube(
        "X B C",
        f"""GlobalTensor<half> gx, gb; GlobalTensor<float> gc;
gx.SetGlobalBuffer((__gm__ half*)X); gb.SetGlobalBuffer((__gm__ half*)B); gc.SetGlobalBuffer((__gm__ float*)C);
auto x = l1.GetWithOffset<half>({source_rows * 16}, 0), b1 = l1.GetWithOffset<half>(256, 262144);
auto a2 = l0a.Get<half>(), b2 = l0b.Get<half>(); auto c = l0c.Get<float>();
DataCopy(x, gx, {source_rows * 16}); DataCopy(b1, gb, 256);
ORDER(MTE2_MTE1);
{set_up}
{config}
LoadData(b2, b1, LoadData2DParams(0, 1, 1, 0, 0, false, 0));
ORDER(MTE1_M);
Mmad(c, a2, b2, MmadParams({m}, 16, 16, 0, false, true));
ORDER(M_FIX);
Fixpipe<float, float, CFG_ROW_MAJOR>(gc, c, FixpipeParamsV220(16, {m}, {up(m, 16)}, 16, false));
""",
    )


PRO = "LoadData3DParamsV2Pro p; p.channelSize = 16; p.extConfig = (uint64_t({m}) << 16) | 16; LoadData(a2, x, p);"


def taken(source: str, rows: np.ndarray, m: int) -> np.ndarray:
    done = run(source, rows, np.eye(16, dtype=np.float16), np.zeros((m, 16), np.float32))
    assert done.ok, done
    return done.outputs[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "described",
    [
        "SetFmatrix(32, 1, pads, FmatrixMode::FMATRIX_LEFT);",
        "SetMMLayoutTransform(true); Load3DSetFMatrixCal(32, 1, pads);",  # the order of a product's blocks changes no result
    ],
)
def test_an_image_may_be_described_by_a_register(described: str) -> None:
    rows = np.arange(32 * 16).reshape(32, 16).astype(np.float16)
    set_up = f"const uint8_t pads[4] = {{0, 0, 0, 0}}; {described}"
    np.testing.assert_array_equal(taken(one_image(set_up, PRO.format(m=32), 32, 32), rows, 32), rows)


@pytest.mark.slow
def test_a_load_repeats_down_the_image() -> None:
    rows = np.arange(64 * 16).reshape(64, 16).astype(np.float16)
    set_up = (
        "const uint8_t pads[4] = {0, 0, 0, 0}; SetFmatrix(64, 1, pads, FmatrixMode::FMATRIX_LEFT);SetLoadDataRepeat({2, 2, 0});"
    )
    expected = np.concatenate([rows[:16], rows[32:48]])
    np.testing.assert_array_equal(taken(one_image(set_up, PRO.format(m=16), 64, 32), rows, 32), expected)


@pytest.mark.slow
def test_beyond_its_boundary_an_image_starts_again() -> None:
    rows = np.arange(64 * 16).reshape(64, 16).astype(np.float16)
    image = "const uint8_t pads[4] = {0, 0, 0, 0}; SetFmatrix(64, 1, pads, FmatrixMode::FMATRIX_LEFT);"
    source = one_image(f"{image} SetLoadDataBoundary(1024);", PRO.format(m=64), 64, 64)  # 32 rows of 32 bytes
    np.testing.assert_array_equal(taken(source, rows, 64), np.concatenate([rows[:32]] * 2))
