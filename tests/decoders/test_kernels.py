"""Compiled kernels and their NumPy twins give the same results.

The documentation promises this up to rounding. The tests compare exactly, because the moves of a
local search depend on which sums are equal, and a twin that rounds differently ends elsewhere.
"""

import importlib.util
import os

import numpy as np
import pytest

from sklearn_rankcal._kernels import _numpy  # both kinds of kernels, to compare them
from sklearn_rankcal.decoders import KERNELS, decode_preferences

from .. import matrices
from ..python_process import run_python

compiled = pytest.importorskip(
    "sklearn_rankcal._kernels._compiled", reason="built without a C compiler"
)
SIZES = (1, 2, 3, 5, 8, 13)


def same(name, *args):
    """Return the result of a kernel after checking that both modules give the same."""
    first, second = getattr(compiled, name)(*args), getattr(_numpy, name)(*args)
    parts = zip(first, second, strict=True) if isinstance(first, tuple) else [(first, second)]
    for one, other in parts:
        np.testing.assert_array_equal(one, other)
        assert np.asarray(one).dtype == np.asarray(other).dtype
    return first


def batches(family, sizes=SIZES, m=3):
    rng = np.random.default_rng(len(family))
    for r in sizes:
        yield np.stack([matrices.FAMILIES[family](r, rng) for _ in range(m)])


@pytest.mark.parametrize("family", matrices.FAMILIES)
@pytest.mark.parametrize("seed", range(3))
def test_batches(family, seed):
    for u in batches(family, sizes=(*SIZES, 70) if seed == 0 else SIZES):
        r = u.shape[1]
        d, _ = same("differences", u)
        rows, columns = np.triu_indices(r, 1)
        same("from_upper_triangle", np.ascontiguousarray(d[:, rows, columns]), r)
        same("components", d)
        same("binary_insertion", d)
        for ranked_pairs in (True, False):
            order, _ = same("greedy_dag", d, ranked_pairs)
            same("lost_weight", d, order)


def explained_by_scores(rng, r, n_against, ties):
    """Differences of scores, some of them with the opposite sign so that they close cycles."""
    scores = rng.integers(0, r // 3, r).astype(float) if ties else rng.normal(size=r)
    d = scores[:, None] - scores
    for _ in range(n_against):
        i, j = rng.choice(r, 2, replace=False)
        d[i, j], d[j, i] = -d[i, j], -d[j, i]
    return d


@pytest.mark.parametrize("n_against", [0, 1, 50])
def test_steps_of_greedy_dag_on_preferences_that_scores_explain(n_against):
    """The number of steps is O(r^2), also with a few cycles. Every 2^18 steps check the clock."""
    r = 1500
    d = explained_by_scores(np.random.default_rng(0), r, n_against, False)
    checks = []
    compiled.greedy_dag(d[None], False, lambda: bool(checks.append(1)))
    assert len(checks) * 2**18 <= (0 if n_against == 0 else 20 * r * r)  # O(r^3): 500 r^2


def test_time_that_is_up():
    """Every kernel stops the first time that it is told that the time is up."""
    rng = np.random.default_rng(0)
    u = rng.random((600, 600))
    d = u - u.T
    start, perturbations = rng.permutation(600), rng.random((5, 6))
    for module in (compiled, _numpy):
        for stop_at in (1, 3):
            checks = []
            time_is_up = lambda: checks.append(1) or len(checks) >= stop_at  # noqa: B023, E731
            with pytest.raises(TimeoutError):
                module.greedy_dag(d[None], True, time_is_up)
            assert len(checks) == stop_at
            for kernel in ("preference_search", "average_precision_search"):
                checks.clear()
                matrix = d if kernel[0] == "p" else u + u.T
                how = (start[None], 5, 0) if kernel[0] == "p" else (start, perturbations)
                order, sweeps = getattr(module, kernel)(matrix, *how, 0.0, 1000, time_is_up)
                assert len(checks) <= stop_at + 1 and sweeps <= 8
                assert sorted(order) == list(range(600))
                before, after = compiled.lost_weight(np.stack([d, d]), np.stack([start, order]))
                assert kernel[0] == "a" or after <= before
            checks.clear()
            part = module.triangle_bound(d[:250, :250].copy(), time_is_up)
            assert len(checks) == stop_at
            assert part < compiled.triangle_bound(d[:250, :250].copy())


@pytest.mark.parametrize("family", matrices.FAMILIES)
def test_one_matrix(family):
    rng = np.random.default_rng(1)
    for u in batches(family, sizes=(2, 7, 16), m=1):
        d, symmetric = u[0] - u[0].T, u[0] + u[0].T
        r = len(d)
        same("triangle_bound", d)
        start = rng.permutation(r)
        perturbations = rng.random((8, 6))
        for max_sweeps in (1, 1000):
            tolerance = 1e-12 * np.abs(u).sum()
            starts = np.stack([start, start[::-1]])
            same("preference_search", d, starts, 60, 3, tolerance, max_sweeps)
            same("average_precision_search", symmetric, start, perturbations, tolerance, max_sweeps)
        if r < 12:
            lost, none, one = np.maximum(d, 0.0), np.zeros(r), np.ones(r)
            _, least = same("subset_dp", lost, none, one, np.inf, False)
            won = np.ascontiguousarray(lost.T)
            order, same_least = same("subset_dp", won, none, one, np.inf, True)
            assert same_least == pytest.approx(least, rel=1e-12)
            # leaving out sets that cost more changes nothing
            again, _ = same("subset_dp", won, none, one, same_least, True)
            np.testing.assert_array_equal(again, order)
            own, share = -np.diagonal(symmetric).copy(), 1 / np.arange(1.0, r + 1)
            same("subset_dp", -symmetric, own, share, np.inf, False)
            for module in (compiled, _numpy):
                with pytest.raises(ValueError, match="no order"):
                    module.subset_dp(lost, none, one, -1.0, False)


@pytest.mark.parametrize("family", ["uniform", "ties", "zero"])
def test_a_search_that_begins_new_populations(family):
    """With so many steps for so few documents, most steps improve nothing."""
    rng = np.random.default_rng(2)
    u = matrices.FAMILIES[family](9, rng)
    starts = np.stack([rng.permutation(9) for _ in range(3)])
    same("preference_search", u - u.T, starts, 700, 1, 1e-13, 1000)


def test_read_only_input():
    u = np.random.default_rng(0).random((1, 5, 5))
    u.flags.writeable = False
    assert sorted(decode_preferences(u[0], "exact").ranks) == [1, 2, 3, 4, 5]


def test_unknown_kernels_are_refused(monkeypatch):
    monkeypatch.setenv("SKLEARN_RANKCAL_KERNELS", "fast")
    spec = importlib.util.find_spec("sklearn_rankcal._kernels")
    with pytest.raises(ImportError, match="must be 'numpy', 'compiled'"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


SLOW = """
import warnings
import numpy as np
from sklearn_rankcal.decoders import KERNELS, decode_average_precision, decode_preferences
from sklearn_rankcal.exceptions import UncompiledKernelsWarning
rng = np.random.default_rng(0)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    decode_preferences(rng.random((5, 8, 8)))
    decode_preferences(np.arange(900.0)[:, None] - np.arange(900.0))
    assert not said, "cheap"
    for _ in range(2):
        decode_preferences(rng.random((60, 60)), time_limit=0.01)
        decode_average_precision(np.ones((17, 17)), time_limit=0.01)
said = [w for w in said if w.category is UncompiledKernelsWarning]
print(KERNELS, len(said), *(w.message for w in said))
"""


@pytest.mark.parametrize("environment", ["numpy asked for", "not built"])
def test_the_environment_variable_and_slow_kernels_are_announced_once(environment):
    """The warning appears only if a module was not built and nobody asked for NumPy."""
    variables = {k: v for k, v in os.environ.items() if k != "SKLEARN_RANKCAL_KERNELS"}
    code = SLOW
    if environment == "not built":
        code = "import sys; sys.modules['sklearn_rankcal._kernels._compiled'] = None\n" + code
    elif environment:
        variables["SKLEARN_RANKCAL_KERNELS"] = environment.split()[0]
    run = run_python(code, variables)
    assert run.returncode == 0, run.stderr
    kernels, count, *message = run.stdout.split(maxsplit=2)
    assert kernels == ("compiled" if environment in ("compiled", "") else "numpy")
    assert count == ("1" if environment == "not built" else "0")
    if message:
        for part in ("without compiled kernels", "C compiler", "--no-binary", "=numpy"):
            assert part in message[0]


def test_the_kernels_that_were_asked_for_run():
    wanted = os.environ.get("SKLEARN_RANKCAL_KERNELS") or "compiled"
    assert wanted == KERNELS


def test_the_kernels_are_those_that_are_named():
    """Compiled kernels come from extension modules, and NumPy's from Python modules."""
    from sklearn_rankcal._kernels import kernels

    def names(module):
        return {
            name
            for name, value in vars(module).items()
            if name[0].islower() and "_kernels" in getattr(value, "__module__", "_kernels")
        }

    assert names(kernels) - {"annotations", "np"} == names(_numpy) - {"annotations", "np"}
    for name in names(kernels) - {"add_trees", "annotations", "np", "pair_sums"}:
        compiled = getattr(kernels, name).__module__ == "sklearn_rankcal._kernels._compiled"
        assert compiled == (KERNELS == "compiled"), name


@pytest.mark.parametrize("n_drawn", [3, 7])
@pytest.mark.parametrize("weighs", [False, True])
@pytest.mark.parametrize("n", [30, 700])
def test_trees(n, weighs, n_drawn):
    """Bits of every result, with categories, missing values, and rows that are not learned from."""
    rng = np.random.default_rng(n)
    sizes = np.array([256, 5, 256, 30, 12, 90, 2])  # with the bin of missing values
    bins = np.asfortranarray(rng.integers(0, sizes, (n, 7)).astype(np.uint8))
    learned = np.flatnonzero(rng.random(n) < 0.7).astype(np.uint32)
    held = np.setdiff1d(np.arange(n), learned).astype(np.uint32)
    bins[np.ix_(learned, [2, 6])] = np.minimum(bins[np.ix_(learned, [2, 6])], sizes[[2, 6]] - 2)
    lacks = (bins[learned] == sizes - 1).any(axis=0).astype(np.uint8)
    categorical = np.array([0, 1, 0, 1, 0, 1, 0], dtype=np.uint8)
    starts = np.append(0, np.cumsum(sizes)).astype(np.int32)
    targets = np.sin(bins[:, 3]) + bins[:, 0] / 99 * bins[:, 1] + rng.normal(size=n)
    hessians = rng.random(n if weighs else 0).astype(np.float32)
    found = []
    for module in (compiled, _numpy):
        raw, state = np.zeros(n), np.array([5], dtype=np.uint64)
        found.append([raw, state])
        for _ in range(6):
            tree = np.zeros((21, 2)), np.zeros((21, 7), np.int32), np.zeros((21, 8), np.uint32)
            gradients = ((raw - targets) * (hessians if weighs else 1)).astype(np.float32)
            n_nodes = module.grow_tree(
                bins, starts, lacks, categorical, learned, held, gradients, hessians, raw, 11, 4,
                0.5, 0.3, n_drawn, state, np.empty(5 * 11 * 700), *tree,
            )  # fmt: skip
            found[-1] += [n_nodes, *(part[:n_nodes] for part in tree)]
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(np.unique(raw[held])) > 3
