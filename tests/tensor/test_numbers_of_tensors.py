"""A number that a function of whole tensors takes or returns is an array without dimensions, as NumPy and torch have it."""

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T

X = np.random.default_rng(3).uniform(-1, 1, (9, 40)).astype(np.float32)


@pytest.fixture(scope="module")
def loss():
    @tile_eg.jit
    def loss(X: T.Tensor((9, 40), "float32"), scale: T.Tensor((), "float32")):
        y = X * scale
        return T.sum(y * y), T.amax(y) > 1, y[0]

    return loss


def test_a_sum_of_all_elements_has_no_dimensions(loss):
    total, large, row = loss(X, np.array(3, np.float32))
    assert (total.shape, total.dtype, large.shape, large.dtype) == ((), np.float32, (), np.bool_)
    np.testing.assert_allclose(total, np.sum(9 * X * X), rtol=1e-5)
    assert large == (3 * X.max() > 1)
    np.testing.assert_array_equal(row, 3 * X[0])


def test_an_array_of_one_element_is_taken_as_a_number(loss):
    np.testing.assert_allclose(loss(X, np.array([3], np.float32))[0], np.sum(9 * X * X), rtol=1e-5)


def test_one_that_is_declared_with_a_dimension_has_it():
    @tile_eg.jit
    def total(X: T.Tensor((9, 40), "float32")) -> T.Tensor((1,), "float32"):
        return T.sum(X)

    assert total(X).shape == (1,)
