"""Random arguments: numbers and ids in every container that people use, and spoiled ones."""

from __future__ import annotations

import array
import datetime
import uuid
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse


@dataclass
class Given:
    """An argument: what is passed, and what it means."""

    value: Any
    exact: list | None = None  # Fractions, one a row; None: it has no meaning
    sure: bool = True  # whether it must be accepted


# -------------------------------------------------------------------- queries


def draw_codes(case, least=1):
    """The query of each row, numbered by first appearance; rows of a query need not be adjacent."""
    n_queries = case.whole(1, max(1, case.size - 1))
    sizes = [case.whole(least, max(least, case.size)) for _ in range(n_queries)]
    codes = np.repeat(np.arange(n_queries), sizes)
    if case.chance(0.5):
        codes = case.rng.permutation(codes)
    first = {code: number for number, code in enumerate(dict.fromkeys(codes.tolist()))}
    return [first[code] for code in codes.tolist()]


def rows_of(codes):
    """Rows of each query, in order of first appearance."""
    found = {}
    for row, code in enumerate(codes):
        found.setdefault(code, []).append(row)
    return list(found.values())


_IDS = {
    "int": lambda k: k,
    "negative": lambda k: -k,
    "text": lambda k: f"q{k}",
    "nul": lambda k: "a" + "\0" * k,
    "surrogate": lambda k: f"\ud800{k}",
    "accents": lambda k: "e\u0301" * k + "\u00e9",
    "bytes": lambda k: b"q%d" % k,
    "bytes_nul": lambda k: b"a" + b"\0" * k,
    "beyond_2_53": lambda k: 2**53 + k,
    "beyond_2_63": lambda k: 2**63 + k,
    "beyond_2_64": lambda k: 2**70 + k,
    "both_ends": lambda k: 2**63 + k if k % 2 else -k,
    "mixed": lambda k: (
        [0, "0", b"0", (0,), Decimal("0.5"), "", -1, None.__class__][k % 8] if k < 8 else k
    ),
    "int_and_text": lambda k: k if k % 2 else str(k),
    "float": lambda k: k / 7,
    "float_and_int": lambda k: float(2**53) if k == 0 else 2**53 + k,
    "tiny": lambda k: k * 5e-324,
    "tuple": lambda k: ("shop", k),
    "decimal": lambda k: Decimal(k) / 10,
    "fraction": lambda k: Fraction(k, 3),
    "date": lambda k: datetime.date(2020, 1, 1 + k),
    "datetime": lambda k: (
        datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(hours=k)
    ),
    "uuid": lambda k: uuid.UUID(int=k),
    "frozenset": lambda k: frozenset([k]),
}
_ARRAY_IDS = {
    "int8": lambda c: np.array(c, dtype=np.int8),
    "uint8": lambda c: np.array(c, dtype=np.uint8) + np.uint8(250),
    "uint64": lambda c: np.array(c, dtype=np.uint64) + np.uint64(2**64 - 64),
    "int64_ends": lambda c: np.where(np.array(c) % 2 == 1, -(2**63), 2**63 - 64) + np.array(c),
    "float16": lambda c: np.array(c, dtype=np.float16),
    "float32": lambda c: np.array(c, dtype=np.float32) / 3,
    "longdouble": lambda c: np.longdouble(2) ** 60 + np.array(c),
    "datetime64": lambda c: np.datetime64("2020-01-01") + np.array(c),
    "timedelta64": lambda c: np.array(c, dtype="m8[ns]"),
    "complex": lambda c: np.array(c) + 1j,
    "fixed_text": lambda c: np.array([f"q{k}" for k in c]),
    "column": lambda c: np.array(c)[:, None],
    "read_only": lambda c: read_only(np.array(c)),
    "backwards": lambda c: np.array(c)[::-1].copy()[::-1],
    "record": lambda c: np.array([(k, -k) for k in c], dtype=[("a", "i4"), ("b", "i8")]),
    "masked": lambda c: np.ma.array(c, mask=False),
    "range": lambda c: range(len(c)) if len(set(c)) == len(c) else list(c),
    "pandas": lambda c: pd.Series(c, index=range(5, 5 + len(c))),
    "pandas_Int64": lambda c: pd.Series(c, dtype="Int64"),
    "pandas_big": lambda c: pd.Series([2**53 + k for k in c], dtype="Int64"),
    "pandas_text": lambda c: pd.Series([f"q{k}" for k in c], dtype="string"),
    "pandas_category": lambda c: pd.Series([f"q{k}" for k in c]).astype("category"),
    "pandas_category_int": lambda c: pd.Categorical([2**53 + k for k in c]),
    "pandas_index": lambda c: pd.Index(c),
    "pandas_zone": lambda c: pd.Series([pd.Timestamp(2020, 1, 1, k, tz="Europe/Paris") for k in c]),
    "pandas_period": lambda c: pd.Series(pd.PeriodIndex([f"20{10 + k}" for k in c], freq="Y")),
    "polars": lambda c: pl.Series(c),
    "polars_big": lambda c: pl.Series([2**53 + k for k in c]),
    "polars_text": lambda c: pl.Series([f"q{k}" for k in c]),
    "polars_category": lambda c: pl.Series([f"q{k}" for k in c], dtype=pl.Categorical),
    "array": lambda c: array.array("q", c),
}


def read_only(values):
    values.flags.writeable = False
    return values


def draw_groups(case, codes):
    """Group ids with the partition of `codes`."""
    kind = case.choose([*_IDS, *_ARRAY_IDS])
    if kind in _IDS:
        ids = [_IDS[kind](k) for k in codes]
        container = case.choose(["list", "tuple", "object", "array"])
        if container == "array" and kind in ("int", "negative", "beyond_2_53", "float", "tiny"):
            return np.array(ids)
        if container in ("object", "array"):
            values = np.empty(len(ids), dtype=object)
            values[:] = ids
            return values
        return ids if container == "list" else tuple(ids)
    return _ARRAY_IDS[kind](codes)


GROUP_WORDS = ("group", " id", "quer")
_SPOIL_GROUPS = {
    "nan": lambda c: [float("nan"), *c[1:]],
    "nan_array": lambda c: np.array([np.nan, *c[1:]]),
    "inf": lambda c: [float("inf"), *c[1:]],
    "none": lambda c: [None, *c[1:]],
    "none_last": lambda c: [*map(str, c[:-1]), None],
    "nat": lambda c: np.array(["NaT"] * len(c), dtype="M8[ns]"),
    "nat_object": lambda c: [pd.NaT, *c[1:]],
    "na": lambda c: pd.Series([pd.NA, *c[1:]], dtype="Int64"),
    "na_text": lambda c: pd.Series([None, *map(str, c[1:])], dtype="string"),
    "null": lambda c: pl.Series([None, *c[1:]], dtype=pl.Int64),
    "null_text": lambda c: pl.Series([None, *map(str, c[1:])], dtype=pl.String),
    "category_nan": lambda c: pd.Series([None, *map(str, c[1:])]).astype("category"),
    "short": lambda c: c[:-1],
    "long": lambda c: [*c, 0],
    "empty": lambda c: [],
    "lists": lambda c: [[k] for k in c],
    "dicts": lambda c: [{k: 1} for k in c],
    "two_columns": lambda c: np.array([c, c]).T,
    "scalar": lambda c: 0,
    "word": lambda c: "qid",
    "masked": lambda c: np.ma.array(c, mask=[True] + [False] * (len(c) - 1)),
    "sparse": lambda c: sparse.csr_array(np.array([c])),
    "decimal_nan": lambda c: [Decimal("NaN"), *c[1:]],
    "nan_in_column": lambda c: np.array([[np.nan], *([k] for k in c[1:])]),
    "zero_dimensional": lambda c: np.array(3),
    "object_nan": lambda c: np.array([np.nan, *map(str, c[1:])], dtype=object),
}


def spoiled_groups(case, codes):
    """Groups that must be refused, whatever the codes."""
    kinds = dict(_SPOIL_GROUPS)
    if len(codes) == 1:  # an array of shape (1, 2) is refused, one of (1, 1) is a column
        kinds.pop("short")
    return kinds[case.choose(kinds)](codes)


# -------------------------------------------------------------------- numbers

_STYLES = {
    "grades": lambda rng, n: rng.integers(0, 4, n).tolist(),
    "binary": lambda rng, n: rng.integers(0, 2, n).tolist(),
    "normal": lambda rng, n: rng.normal(size=n).tolist(),
    "shares": lambda rng, n: rng.choice([0.0, 0.1, 0.2, 0.3, 0.7], n).tolist(),
    "near": lambda rng, n: (1 + rng.integers(0, 3, n) * 2.0**-52).tolist(),
    "beyond_2_53": lambda rng, n: [2**53 + int(k) for k in rng.integers(0, 3, n)],
    "beyond_2_63": lambda rng, n: [2**63 + int(k) for k in rng.integers(-2, 3, n)],
    "huge": lambda rng, n: (rng.integers(-3, 4, n) * 3e49).tolist(),
    "tiny": lambda rng, n: (rng.integers(0, 4, n) * 1e-50).tolist(),
    "signed_zero": lambda rng, n: rng.choice([0.0, -0.0, 1.0], n).tolist(),
    "int8_ends": lambda rng, n: rng.choice([-128, 127, 0], n).tolist(),
    "wide": lambda rng, n: (rng.choice([-1, 1], n) * 10.0 ** rng.uniform(-50, 50, n)).tolist(),
    "spread": lambda rng, n: (10.0 ** rng.uniform(-8, 16, n)).tolist(),
    "small": lambda rng, n: (rng.integers(0, 4, n) * 1e-12).tolist(),
    "many": lambda rng, n: rng.permutation(50)[:n].tolist(),
}
NON_NEGATIVE = ("grades", "binary", "shares", "near", "tiny", "signed_zero", "spread", "small")


def magnitudes(case, codes, low=-49, high=49):
    """Whole numbers times a power of ten that each query has for itself."""
    scales = {code: 10.0 ** case.whole(low, high) for code in set(codes)}
    return [float(case.whole(0, 5)) * scales[code] for code in codes]


def draw_style(case, codes, styles=None):
    name = case.choose([*(_STYLES if styles is None else styles), "by_query"])
    if name == "by_query":
        return magnitudes(case, codes)
    return _STYLES[name](case.rng, len(codes))


def draw_numbers(case, codes, styles=None, plain=False):
    """Real numbers in some container; `exact` is their meaning."""
    return contain(case, draw_style(case, codes, styles), plain)


def contain(case, values, plain=False):
    """Numbers in some container, a float type or not; `exact` as the container rounds them."""
    whole = all(float(v).is_integer() and not isinstance(v, float) for v in values)
    kinds = ["list", "float64", "tuple", "read_only", "backwards", "strided", "pandas", "polars"]
    if not plain:
        kinds += [
            "float32",
            "float16",
            "object",
            "fraction",
            "decimal",
            "masked",
            "column",
            "series_object",
            "longdouble",
            "memmap",
            "big_endian",
            "array",
            "one_column",
        ]
        if whole:
            kinds += ["int8", "int64", "uint64", "uint8", "pandas_Int64", "polars_int"]
        if set(values) <= {0, 1}:
            kinds += ["bool", "bool_list", "pandas_boolean"]
    kind = case.choose(kinds)
    try:
        return _contain(case, kind, values)
    except (OverflowError, ValueError, TypeError, pl.exceptions.PolarsError):
        return _contain(case, "list", values)  # does not fit this type


def _contain(case, kind, values):
    n = len(values)
    sure = kind not in (
        "object",
        "fraction",
        "decimal",
        "series_object",
        "longdouble",
        "column",
        "one_column",
        "pandas_boolean",
        "bool",
        "bool_list",
    )
    sure &= all(abs(v) < 2**53 or isinstance(v, float) for v in values)
    if kind in ("list", "tuple", "object", "series_object", "pandas", "polars"):
        given = {
            "list": list,
            "tuple": tuple,
            "polars": pl.Series,
            "object": lambda v: np.array(v, dtype=object),
            "pandas": pd.Series,
            "series_object": lambda v: pd.Series(v, dtype=object),
        }[kind](values)
        return Given(given, fractions(values), sure)
    if kind == "fraction":
        return Given(list(map(Fraction, values)), fractions(values), False)
    if kind == "decimal":
        return Given(list(map(Decimal, values)), fractions(values), False)
    if kind in ("bool", "bool_list"):
        held = [bool(v) for v in values]
        return Given(held if kind == "bool_list" else np.array(held), fractions(values), False)
    if kind in ("pandas_Int64", "pandas_boolean", "polars_int", "array"):
        make = {
            "pandas_Int64": lambda v: pd.Series(v, dtype="Int64"),
            "pandas_boolean": lambda v: pd.Series([bool(x) for x in v], dtype="boolean"),
            "polars_int": lambda v: pl.Series(v, dtype=pl.Int64),
            "array": lambda v: array.array("d", v),
        }[kind]
        made = make(values)
        return Given(made, fractions(list(made)), sure)
    name = {
        "float32": "f4",
        "float16": "f2",
        "longdouble": "g",
        "big_endian": ">f8",
        "int8": "i1",
        "int64": "i8",
        "uint64": "u8",
        "uint8": "u1",
    }.get(kind, "f8")
    with np.errstate(all="ignore"):
        whole = np.dtype(name).kind in "iu"
        held = np.array(values, dtype=name) if whole else np.array(values).astype(name)
    if held.dtype.kind == "f" and not np.isfinite(held).all():
        return Given(held, None, False)
    exact = fractions(held.astype(float).tolist() if name == "g" else held.tolist())
    if kind == "read_only":
        held = read_only(held)
    elif kind == "backwards":
        held = held[::-1].copy()[::-1]
    elif kind == "strided":
        held = np.repeat(held, 3)[::3]
    elif kind == "masked":
        held = np.ma.array(held, mask=np.zeros(n, dtype=bool) if case.chance(0.5) else False)
    elif kind in ("column", "one_column"):
        held = held[:, None] if kind == "column" else pd.DataFrame({"y": held})
    elif kind == "memmap":
        path = case.folder / f"numbers{len(list(case.folder.iterdir()))}.npy"
        np.save(path, held)
        held = np.load(path, mmap_mode="r")
    return Given(held, exact, sure)


def fractions(values):
    return [v if isinstance(v, Fraction) else Fraction(v) for v in values]


_SPOIL_NUMBERS = {
    "nan": lambda v: [float("nan"), *v[1:]],
    "nan_array": lambda v: np.array([*v[:-1], np.nan]),
    "inf": lambda v: np.array([np.inf, *v[1:]]),
    "minus_inf": lambda v: [*v[:-1], float("-inf")],
    "none": lambda v: [None, *v[1:]],
    "none_array": lambda v: np.array([None, *v[1:]], dtype=object),
    "nat": lambda v: np.array(["NaT", *["2020-01-01"] * (len(v) - 1)], dtype="M8[D]"),
    "nat_delta": lambda v: np.array(["NaT"] * len(v), dtype="m8[s]"),
    "nat_object": lambda v: np.array([np.datetime64("NaT", "D")] * len(v), dtype=object),
    "nat_pandas": lambda v: pd.Series([pd.NaT] * len(v)),
    "na": lambda v: pd.Series([pd.NA, *[1] * (len(v) - 1)], dtype="Int64"),
    "na_float": lambda v: pd.Series([pd.NA, *[1] * (len(v) - 1)], dtype="Float64"),
    "na_boolean": lambda v: pd.Series([pd.NA, *[True] * (len(v) - 1)], dtype="boolean"),
    "null": lambda v: pl.Series([None, *[1] * (len(v) - 1)], dtype=pl.Int64),
    "masked": lambda v: np.ma.array(v, mask=[True] + [False] * (len(v) - 1)),
    "masked_int": lambda v: np.ma.array([1] * len(v), mask=[True] + [False] * (len(v) - 1)),
    "complex": lambda v: [1j, *v[1:]],
    "complex_array": lambda v: np.array(v) + 1j,
    "complex_object": lambda v: np.array([1j, *v[1:]], dtype=object),
    "words": lambda v: ["good"] * len(v),
    "word_array": lambda v: np.array(["good"] * len(v)),
    "bytes": lambda v: [b"good"] * len(v),
    "short": lambda v: v[:-1],
    "long": lambda v: [*v, 1],
    "empty": lambda v: [],
    "ragged": lambda v: [[1, 2], [3], *v[2:]],
    "dict": lambda v: {"a": 1},
    "scalar": lambda v: 1.0,
    "three_dimensional": lambda v: np.ones((len(v), 2, 2)),
    "objects": lambda v: [object() for _ in v],
    "records": lambda v: np.array([(1, 2)] * len(v), dtype=[("a", "f8"), ("b", "i4")]),
    "sparse": lambda v: sparse.csr_array(np.ones((2, max(2, len(v))))),
    "decimal_nan": lambda v: [Decimal("NaN"), *v[1:]],
    "beyond_float": lambda v: [10**400, *[1] * (len(v) - 1)],
    "surrogate": lambda v: ["\ud800"] * len(v),
}


def spoiled_numbers(case, n, without=()):
    """Numbers that must be refused, and of which kind they are."""
    values = case.rng.integers(1, 3, n).tolist()
    kinds = [kind for kind in _SPOIL_NUMBERS if kind not in without]
    if n == 1:
        kinds.remove("ragged")
    kind = case.choose(kinds)
    return _SPOIL_NUMBERS[kind](values), kind


def digits(n):
    """Text that looks like numbers: to be refused, and never read as something else."""
    return [str(k % 3) for k in range(n)]
