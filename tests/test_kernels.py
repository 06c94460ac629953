"""Compiled kernels and their NumPy twins: the same results, to the last bit."""

import os
import subprocess
import sys

import numpy as np
import pytest

from sklearn_rankcal.decoders import KERNELS, _kernels_numpy, decode_preferences

from . import matrices

compiled = pytest.importorskip(
    "sklearn_rankcal.decoders._kernels", reason="built without a C compiler"
)
SIZES = (1, 2, 3, 5, 8, 13)


def same(name, *args):
    """The result of a kernel, equal in both modules."""
    first, second = getattr(compiled, name)(*args), getattr(_kernels_numpy, name)(*args)
    parts = zip(first, second, strict=True) if isinstance(first, tuple) else [(first, second)]
    for one, other in parts:
        np.testing.assert_array_equal(one, other)
        assert np.asarray(one).dtype == np.asarray(other).dtype
    return first


def stacks(family, sizes=SIZES, m=3):
    rng = np.random.default_rng(len(family))
    for r in sizes:
        yield np.stack([matrices.FAMILIES[family](r, rng) for _ in range(m)])


@pytest.mark.parametrize("family", matrices.FAMILIES)
@pytest.mark.parametrize("seed", range(3))
def test_of_stacks(family, seed):
    for u in stacks(family, sizes=(*SIZES, 70) if seed == 0 else SIZES):
        r = u.shape[1]
        d, _ = same("differences", u)
        rows, columns = np.triu_indices(r, 1)
        same("antisymmetric", np.ascontiguousarray(d[:, rows, columns]), r)
        same("components", d)
        same("binary_insertion", d)
        for ranked_pairs in (True, False):
            order, _ = same("greedy_dag", d, ranked_pairs)
            same("lost_weight", d, order)


@pytest.mark.parametrize("family", matrices.FAMILIES)
def test_of_one_matrix(family):
    rng = np.random.default_rng(1)
    for u in stacks(family, sizes=(2, 6, 11, 40), m=1):
        d, symmetric = u[0] - u[0].T, u[0] + u[0].T
        r = len(d)
        same("triangle_bound", d)
        start = rng.permutation(r)
        kicks = rng.random((8, 6))
        for max_sweeps in (1, 1000):
            for kernel, matrix in (
                ("preference_search", d), ("average_precision_search", symmetric)
            ):  # fmt: skip
                tolerance = 1e-12 * np.abs(matrix).sum()
                same(kernel, matrix, start, kicks, tolerance, max_sweeps)
        if r < 12:
            lost, none, one = np.maximum(d, 0.0), np.zeros(r), np.ones(r)
            _, least = same("subset_dp", lost, none, one, np.inf, False)
            won = np.ascontiguousarray(lost.T)
            order, same_least = same("subset_dp", won, none, one, np.inf, True)
            assert same_least == pytest.approx(least, rel=1e-12)
            # giving sets up changes nothing
            again, _ = same("subset_dp", won, none, one, same_least, True)
            np.testing.assert_array_equal(again, order)
            own, share = -np.diagonal(symmetric).copy(), 1 / np.arange(1.0, r + 1)
            same("subset_dp", -symmetric, own, share, np.inf, False)
            for module in (compiled, _kernels_numpy):
                with pytest.raises(ValueError, match="no order"):
                    module.subset_dp(lost, none, one, -1.0, False)


def test_read_only_input():
    u = np.random.default_rng(0).random((1, 5, 5))
    u.flags.writeable = False
    assert sorted(decode_preferences(u[0], "exact").ranks) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [("numpy", None), ("compiled", None), ("", None), ("fast", "must be 'numpy', 'compiled'")],
)
def test_environment_variable(wanted, message):
    code = "import sklearn_rankcal.decoders as d; print(d.KERNELS)"
    environment = {**os.environ, "SKLEARN_RANKCAL_KERNELS": wanted}
    # -P: the installed package, not the source tree in the working directory
    run = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if message is None:
        assert run.stdout.strip() == (wanted or "compiled"), run.stderr
    else:
        assert run.returncode == 1 and message in run.stderr


def test_kernels_are_those_asked_for():
    wanted = os.environ.get("SKLEARN_RANKCAL_KERNELS") or "compiled"
    assert wanted == KERNELS
