"""Tables: the same values are the same table in every container and dtype."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
from sklearn.ensemble import HistGradientBoostingRegressor as Trees
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

import sklearn_rankcal as public

try:
    import pyarrow as pa
except ImportError:
    pa = None

_HALVES = [k / 2 for k in range(-4, 9)]
#: Values of each kind of column; few, so that rows tie. A table with a double has no float32.
_VALUES = {
    "double": _HALVES,
    "float": _HALVES,
    "whole": list(range(9)),
    "flag": [True, False],
    "category": ["a", "b", "c", "nan", "None", "1"],
    "codes": list(range(6)),  # categories of numbers
}
#: What is no feature, by a word of the error.
_BAD = {
    "lists": [[1.0, 2.0]] * 2,
    "structs": [{"a": 1}, {"a": 2}],
    "text or times": [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)],
    "bytes": [b"a", b"b"],
}
_RANKERS = {
    "impute": lambda: public.CalibratedRanker(make_pipeline(SimpleImputer(), Ridge())),
    "trees": lambda: public.CalibratedRanker(Trees(max_iter=3, min_samples_leaf=1)),
    "linear": lambda: public.LinearRanker(),
    "ridge": lambda: public.CalibratedRanker(Ridge(), context=["rank", "difference"]),
    "pairs": lambda: public.CalibratedRanker(public.models.PairwiseRidge(), loss="pd"),
    "default": public.CalibratedRanker,
    "default pairs": lambda: public.CalibratedRanker(loss="pd"),
    "default choice": lambda: public.CalibratedRanker(loss="choice"),
    "default products": lambda: public.CalibratedRanker(loss="map"),
}
_SLOW = tuple(_RANKERS)[5:]
_MISSING = ("impute", "trees", *_SLOW)  # those that take missing values
_CATEGORIES = ("trees", *_SLOW)


def _draw(case, bad):
    """A ranker, and kinds and values of columns by name, None where missing."""
    n_queries = case.whole(6, 9)
    codes = np.repeat(np.arange(n_queries), [case.whole(2, 5) for _ in range(n_queries)])
    name = case.choose(_SLOW if case.chance(0.01) else tuple(_RANKERS)[:5])
    kinds = ["float", "whole", "flag"]
    kinds += ["category", "codes"] * (name in _CATEGORIES and case.chance(0.7))
    table = {"x0": ("double", case.rng.choice(_HALVES, len(codes)).tolist())}
    for k in range(1, case.whole(2, 5)):
        kind = case.choose(kinds)
        values = [case.choose(_VALUES[kind]) for _ in codes]
        if name in _MISSING and case.chance(0.5):
            values = [None if case.chance(0.3) else value for value in values]
        table[f"x{k}"] = kind, values
    if bad:
        table["bad"] = bad, [case.choose(_BAD[bad]) for _ in codes]
    y = case.rng.integers(0, 2 if name == "default products" else 4, len(codes))
    y[:2] = 0, 1
    return name, table, y, codes


def _or_none(function, values):
    return [None if value is None else function(value) for value in values]


def _pandas(case, kind, values, dtypes):
    """A column of pandas, of NumPy's, nullable or Arrow's dtypes, or of objects."""
    if kind == "codes" or (kind == "category" and dtypes != "arrow"):
        return pd.Series(pd.Categorical(values))
    if kind in _BAD or kind == "text":
        return pd.Series(values, dtype=object)
    if dtypes == "arrow":
        column = _arrow(case, kind, values)
        return pd.Series(column.to_pylist(), dtype=pd.ArrowDtype(column.type))
    if dtypes == "nullable":
        options = {"double": ["Float64"], "float": ["Float32"], "whole": ["Int64", "UInt8"]}
        return pd.Series(values, dtype=case.choose(options.get(kind, ["boolean"])))
    if dtypes == "objects":
        texts = _or_none(lambda v: str(v if kind == "whole" else float(v)), values)
        gaps = [case.choose([pd.NA, np.nan, None]) if v is None else v for v in values]
        return pd.Series(case.choose([texts, _or_none(Decimal, values), gaps]), dtype=object)
    return pd.Series(_or_none(float, values), dtype=float)


def _arrow(case, kind, values):
    decimals = [pa.decimal128(9, 2), pa.decimal256(40, 3)]
    types = {
        "double": [pa.float64(), *decimals],
        "float": [pa.float64(), pa.float32(), *decimals],
        "whole": [pa.int64(), pa.uint8(), pa.dictionary(pa.int8(), pa.int64()), *decimals],
        "category": [pa.dictionary(pa.int32(), pa.string())],
        "codes": [pa.dictionary(pa.int8(), pa.string())],
        "text": [pa.string(), pa.large_string()],
    }
    dtype = case.choose(types.get(kind, [None]))
    if kind == "codes":
        values = _or_none(str, values)
    if dtype in decimals or dtype in (pa.float64(), pa.float32()):
        values = _or_none(Decimal if dtype in decimals else float, values)
    return pa.array(values, type=dtype)


def _polars(case, kind, values):
    types = {
        "double": [pl.Float64, pl.Decimal(9, 2)],
        "float": [pl.Float64, pl.Float32, pl.Decimal(9, 2), pl.String],
        "whole": [pl.Int64, pl.UInt8, pl.Float64, pl.Decimal(9, 0)],
        "category": [pl.Categorical, pl.Enum(_VALUES["category"])],
        "codes": [pl.Categorical],
    }
    dtype = case.choose(types.get(kind, [None]))
    if dtype == pl.String or kind == "codes":
        values = _or_none(str, values)
    return pl.Series(values, dtype=dtype, strict=False)


def _shown(case, table, container, fitted=True):
    """The table in a container; after `fit`, categories may be plain text or numbers."""
    if not fitted:
        plain = {"category": "text", "codes": "whole"}
        table = {
            name: (plain.get(kind, kind) if case.chance(0.3) else kind, values)
            for name, (kind, values) in table.items()
        }
    if container == "polars":
        return pl.DataFrame({name: _polars(case, *column) for name, column in table.items()})
    if container in ("table", "batch"):
        made = pa.table({name: _arrow(case, *column) for name, column in table.items()})
        return made if container == "table" else made.to_batches()[0]
    if container == "array":
        columns = [[np.nan if v is None else v for v in values] for _, values in table.values()]
        return np.transpose(np.array(columns, dtype=case.choose([float, object])))
    return pd.DataFrame({name: _pandas(case, *column, container) for name, column in table.items()})


def _vector(case, values):
    """Ids or labels in a container."""
    options = [values, pl.Series(values), pd.Series(values), values.tolist()]
    if pa is not None:
        options += [pa.array(values), pa.chunked_array([values[:3], values[3:]])]
        options += [pa.array(values).dictionary_encode()]
    return case.choose(options)


def same(case):
    """The same values give the same scores and ranks, or are refused for the same reason."""
    bad = case.choose(_BAD) if case.chance(0.2) else None
    name, table, y, codes = _draw(case, bad)
    if bad == "text or times" and name in ("impute", "trees", "ridge"):
        return  # regressors of users may read them
    containers = ["numpy", "objects", "nullable", "polars"]
    containers += ["arrow", "table", "batch"] * (pa is not None)
    if not bad and not any(kind in ("category", "codes") for kind, _ in table.values()):
        containers += ["array"]
    scores, ranks = [], []
    for fitted in case.rng.permutation(containers)[:2]:
        ranker, X = _RANKERS[name](), _shown(case, table, fitted)
        ids = np.array([f"q{code}" for code in codes]) if case.chance(0.5) else codes
        if bad:
            case.refuses(ranker.fit, X, y, groups=_vector(case, ids), words=(bad,), what=bad)
            continue
        case.call(ranker.fit, X, _vector(case, y), groups=_vector(case, ids))
        for given in case.rng.permutation(containers)[:2]:
            X = _shown(case, table, given, fitted=False)
            ranks += [case.call(ranker.predict, X, groups=_vector(case, codes)).tolist()]
            if "pairs" not in name and "products" not in name:
                scores += [case.call(ranker.decision_function, X, groups=_vector(case, codes))]
                case.equal(scores[-1], scores[0], "scores depend on the container", 0, 1e-12)
            case.expect(ranks[-1] == ranks[0], "ranks depend on the container", given)
