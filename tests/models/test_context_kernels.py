"""The z-scores and differences of `describe`, compiled and in NumPy."""

import threading
import time
import tracemalloc
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
import sklearn

from sklearn_rankcal._kernels import KERNELS, _numpy, kernels  # to compare both kinds
from sklearn_rankcal.models import _context
from sklearn_rankcal.models._context import add_context
from sklearn_rankcal.queries import Queries

from ..covering import covering

if KERNELS == "compiled":
    from sklearn_rankcal._kernels._compiled import describe as compiled
    from sklearn_rankcal._kernels._compiled import find_bins as compiled_bins
else:
    compiled = None
BOTH = [
    pytest.param(_numpy.describe, id="numpy"),
    pytest.param(
        compiled,
        id="compiled",
        marks=pytest.mark.skipif(compiled is None, reason="the kernels in NumPy run"),
    ),
]
LAYOUTS = {"one size": [7] * 6, "several sizes": [1, 2, 30, 3, 1, 8], "one query": [40]}


def make_values(family, n_rows, n_columns, seed=0):
    """Columns of one kind. A column of zeros and one of a constant come last."""
    rng = np.random.default_rng(seed)
    values = {
        "normal": rng.normal(size=(n_rows, n_columns)),
        "few values": rng.integers(0, 3, size=(n_rows, n_columns)) / 10,
        "far from 0": 1e6 + rng.random((n_rows, n_columns)),
        "many scales": rng.normal(size=(n_rows, n_columns))
        * 10.0 ** rng.integers(-30, 30, size=(n_rows, n_columns)),
        "missing": np.where(rng.random((n_rows, n_columns)) < 0.4, np.nan, 0.3),
        "infinite": rng.choice([-np.inf, np.inf, np.nan, 1.0, 2.5], size=(n_rows, n_columns)),
    }[family]
    values[:, -2:] = [0.0, 0.1]
    return values


FAMILIES = ("normal", "few values", "far from 0", "many scales", "missing", "infinite")


def call(describe, values, queries, dtype=np.float64):
    """Z-scores, differences and slopes, the same for every way to say which rows there are."""
    n_rows, width = values.shape
    rng = np.random.default_rng(0)
    results = []
    for shuffled in (False, True):
        source, target = slice(2, n_rows + 2), slice(1, n_rows + 1)
        table = np.full((n_rows + 3, width), np.nan, dtype=values.dtype)
        out = np.full((n_rows + 4, 2 * width + 1), 99.0, dtype=dtype)
        if shuffled:
            source, target = rng.permutation(n_rows) + 2, rng.permutation(n_rows) + 1
        table[source] = values
        slopes = np.full((queries.n_queries, width), 99.0)
        describe(table, source, queries.offsets, out, target, 1, width + 1, slopes)
        written = out[target, 1:].copy()
        results.append((written[:, :width], written[:, width:], slopes))
        out[target, 1:] = 99
        assert (out == 99).all()  # nothing else was changed
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
    return results[0]


@pytest.mark.skipif(compiled is None, reason="the kernels in NumPy run")
@pytest.mark.parametrize(  # the compiled kernel takes 256 columns at a time
    ("layout", "family", "dtype", "n_columns"),
    covering(product(LAYOUTS, FAMILIES, [np.float32, np.float64], [3, 300])),
)
def test_both_kernels_write_the_same_numbers(layout, family, dtype, n_columns):
    queries = Queries(np.append(0, np.cumsum(LAYOUTS[layout])))
    values = make_values(family, queries.n_rows, n_columns).astype(dtype)
    for written in (np.float32, np.float64):
        with np.errstate(over="ignore"):
            first = call(compiled, values, queries, written)
            second = call(_numpy.describe, values, queries, written)
        for one, other in zip(first, second, strict=True):
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype


@pytest.mark.parametrize("describe", BOTH)
@pytest.mark.parametrize(("layout", "family"), covering(product(LAYOUTS, FAMILIES)))
def test_the_formulas_in_exact_arithmetic(describe, layout, family):
    queries = Queries(np.append(0, np.cumsum(LAYOUTS[layout])))
    values = make_values(family, queries.n_rows, 4)
    zscore, difference, slopes = call(describe, values, queries)
    wanted_slopes = np.zeros((queries.n_queries, 4))
    for q, (start, stop) in enumerate(pairwise(queries.offsets)):
        for j in range(4):
            x = values[start:stop, j]
            finite = np.isfinite(x)
            np.testing.assert_array_equal(zscore[start:stop, j][~finite], x[~finite])
            np.testing.assert_array_equal(difference[start:stop, j][~finite], x[~finite])
            numbers = [Fraction(v) for v in x[finite]]
            if not numbers:
                continue
            mean = sum(numbers) / len(numbers)
            distances = [v - mean for v in numbers]
            variance = float(sum(d * d for d in distances) / len(numbers))
            got = difference[start:stop, j][finite]
            spread = float(max(numbers) - min(numbers))
            # The terms of the sums are rounded to 45 binary places of twice the spread or less.
            np.testing.assert_allclose(got, np.array(distances, float), rtol=0, atol=1e-13 * spread)
            sd = np.sqrt(variance)
            got = zscore[start:stop, j][finite]
            if sd == 0:
                assert (got == 0).all()
                continue
            wanted_slopes[q, j] = 1 / sd
            np.testing.assert_allclose(got, np.array(distances, float) / sd, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(slopes, wanted_slopes, rtol=1e-9)


@pytest.mark.parametrize("describe", BOTH)
def test_spreads_at_the_ends_of_the_range(describe):
    """Values whose spread, or whose 1 / sd, is too large for a floating-point number."""
    tiny, large = 1e-308, 1.7e308
    values = np.array([[-large, 0.0, large], [large, tiny, large], [0.0, 0.0, large]])
    zscore, difference, slopes = call(describe, values, Queries.single(3))
    root = np.sqrt(1.5)
    half = np.sqrt(0.5)
    np.testing.assert_allclose(zscore[:, 0], [-root, root, 0], rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose(zscore[:, 1], [-half, 2 * half, -half], rtol=1e-7)
    np.testing.assert_allclose(difference[:, 0], [-large, large, 0], rtol=1e-15, atol=1e293)
    assert (zscore[:, 2] == 0).all() and (difference[:, 2] == 0).all()
    sd = np.std(values[:, 0] / large) * large
    np.testing.assert_allclose(slopes[0, 0], 1 / sd)
    np.testing.assert_array_equal(slopes[0, 1:], 0.0)  # 1 / sd overflows and counts as 0


@pytest.mark.parametrize("describe", BOTH)
def test_the_columns_do_not_depend_on_the_order_of_rows_or_on_other_queries(describe):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 40, size=20)
    queries = Queries(np.append(0, np.cumsum(sizes)))
    values = rng.normal(size=(queries.n_rows, 5)) * 10.0 ** rng.integers(-9, 9, size=5)
    values[rng.random(values.shape) < 0.02] = np.nan
    zscore, difference, _ = call(describe, values, queries)
    for q in range(20):
        shuffled = queries.offsets[q] + rng.permutation(sizes[q])
        alone = call(describe, np.ascontiguousarray(values[shuffled]), Queries.single(sizes[q]))
        np.testing.assert_array_equal(alone[0], zscore[shuffled])
        np.testing.assert_array_equal(alone[1], difference[shuffled])


@pytest.mark.skipif(compiled is None, reason="the kernels in NumPy run")
def test_the_compiled_kernel_refuses_columns_that_are_not_adjacent():
    values, out, slopes = np.zeros((4, 6)), np.zeros((4, 6)), np.zeros((1, 6))
    for one, other in ((values[:, ::2], out), (values, out[:, ::2]), (values, out.T.copy().T)):
        with pytest.raises(ValueError, match="adjacent in memory"):
            compiled(one, slice(0, 4), np.array([0, 4]), other, slice(0, 4), 0, -1, slopes)


@pytest.mark.parametrize("kinds", [("zscore",), ("difference", "rank"), ("zscore", "difference")])
@pytest.mark.parametrize("shuffled", [False, True])
def test_every_container_and_dtype_gives_the_same_columns(kinds, shuffled):
    """Integers, float16, tables in the order of Fortran, read-only ones and data frames."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(9), rng.integers(1, 30, size=9))
    if shuffled:
        rng.shuffle(groups)
    queries = Queries.from_groups(groups)
    values = rng.integers(0, 50, size=(len(groups), 4)).astype(np.float64)
    wanted, slope = add_context(values, queries, kinds)
    read_only = values.copy()
    read_only.flags.writeable = False
    others = {
        "fortran": np.asfortranarray(values),
        "integers": values.astype(np.int32),
        "float16": values.astype(np.float16),
        "bytes swapped": values.astype(values.dtype.newbyteorder()),
        "read-only": read_only,
        "a slice": np.repeat(values, 2, axis=1)[:, ::2],
        "frame": pd.DataFrame(values, columns=list("abcd")),
        "mixed frame": pd.DataFrame(values, columns=list("abcd")).astype({"b": int}),
    }
    for name, other in others.items():
        table, other_slope = add_context(other, queries, kinds)
        np.testing.assert_array_equal(np.asarray(table), wanted, err_msg=name)
        np.testing.assert_array_equal(other_slope, slope)
        assert np.asarray(table).dtype == np.float64
    single = values.astype(np.float32)
    table, _ = add_context(single, queries, kinds)
    assert table.dtype == np.float32
    np.testing.assert_array_equal(table, wanted.astype(np.float32))
    table, _ = add_context(single, queries, kinds, dtype=np.float64)
    np.testing.assert_array_equal(table, wanted)


@pytest.mark.parametrize("shuffled", [False, True])
def test_some_columns(shuffled):
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 9, size=200)
    queries = Queries.from_groups(groups if shuffled else np.sort(groups))
    values = rng.normal(size=(200, 5))
    both, slope = add_context(values, queries, ("zscore", "rank"))
    some, some_slope = add_context(values, queries, {"zscore": [1, 4], "rank": [1, 4]})
    np.testing.assert_array_equal(some, both[:, [0, 1, 2, 3, 4, 6, 9, 11, 14]])
    np.testing.assert_array_equal(some_slope, slope[[1, 4]])


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_memory_beside_the_table_is_a_few_blocks(dtype, shuffled):
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(1000), 30)
    if shuffled:
        rng.shuffle(groups)
    queries = Queries.from_groups(groups)
    values = rng.random((30_000, 40)).astype(dtype)
    tracemalloc.start()
    try:
        table, _ = add_context(values, queries, ("zscore",))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - table.nbytes < 6 * 2**20  # blocks of 1 MiB; X has 4.6 MiB or twice as much
    assert peak - table.nbytes < values.nbytes


@pytest.mark.parametrize(
    ("kinds", "layout"),
    [
        *product([("zscore",)], ["contiguous", "random order", "frame", "some columns"]),
        (("zscore", "difference", "rank"), "random order"),
    ],
)
def test_the_number_of_threads_changes_nothing(monkeypatch, kinds, layout):
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(400), rng.integers(1, 30, size=400))
    if layout == "random order":
        rng.shuffle(groups)
    queries = Queries.from_groups(groups)
    values = rng.normal(size=(len(groups), 5)) * 10.0 ** rng.integers(-9, 9, size=(len(groups), 5))
    X = pd.DataFrame(values, columns=list("abcde")) if layout == "frame" else values
    described = {kind: [0, 3] for kind in kinds} if layout == "some columns" else kinds
    used = set()

    def describe(*arguments):
        used.add(threading.get_ident())
        time.sleep(0.001)  # so that no thread is fast enough to take all blocks
        kernel(*arguments)

    kernel = kernels.describe
    monkeypatch.setattr(kernels, "describe", describe)
    results = []
    for n_threads in (1, 2, 7):
        monkeypatch.setattr(_context, "allowed_threads", lambda n=n_threads: n)
        used.clear()
        with sklearn.config_context(working_memory=8 * 5 * 100 / 2**20):  # blocks of 100 rows
            table, slope = add_context(X, queries, described)
        assert len(used) == 1 if "rank" in kinds or n_threads == 1 else 1 < len(used) <= n_threads
        results.append((np.asarray(table), slope))
    for table, slope in results[1:]:
        np.testing.assert_array_equal(table, results[0][0])
        np.testing.assert_array_equal(slope, results[0][1])
    # One block of all rows gives the same slope to the last digit.
    np.testing.assert_array_equal(add_context(X, queries, described)[1], slope)


@pytest.mark.skipif(compiled is None, reason="the kernels in NumPy run")
@pytest.mark.parametrize("n_bounds", [1, 2, 3, 7, 8, 9, 256, 257, 300])
def test_both_kernels_find_the_same_bins(n_bounds):
    rng = np.random.default_rng(n_bounds)
    bounds = np.unique(rng.integers(-n_bounds, n_bounds, size=4 * n_bounds).astype(float))
    bounds = bounds[:n_bounds]
    between = rng.uniform(-n_bounds - 1, n_bounds + 1, size=500)
    values = np.concatenate([bounds, between, [-0.0, 5e-324, -1.7e308, 1.7e308]])
    wanted = _numpy.find_bins(bounds, values)
    found = compiled_bins(bounds, values)
    np.testing.assert_array_equal(found, wanted)
    assert found.dtype == wanted.dtype
    assert len(compiled_bins(bounds, values[:0])) == 0
