"""Values as Python text that makes them again, for the report of a failure."""

from __future__ import annotations

import numpy as np


def literal(value):
    """Source of a value; `np`, `pd` and `pl` are NumPy, pandas and polars."""
    if isinstance(value, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(value).tolist()
        return f"np.ma.array({literal(np.ma.getdata(value))}, mask={mask})"
    if isinstance(value, np.ndarray):
        text = _array(value)
        return text if len(text) < 4000 else f"{text[:4000]} ..."
    if isinstance(value, dict):
        return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    if type(value) is tuple:
        return "(" + "".join(f"{literal(v)}, " for v in value) + ")"
    kind = type(value)
    if kind.__module__.startswith("pandas") and hasattr(value, "to_dict"):
        if value.ndim == 2:
            return f"pd.DataFrame({literal(value.to_dict('list'))})"
        return f"pd.Series({literal(value.tolist())}, dtype={str(value.dtype)!r})"
    if kind.__module__.startswith("polars") and hasattr(value, "to_numpy"):
        if hasattr(value, "columns"):
            return f"pl.DataFrame({literal(value.to_dict(as_series=False))})"
        return f"pl.Series({literal(value.to_list())}, dtype=pl.{value.dtype})"
    if hasattr(value, "toarray"):
        return f"scipy.sparse.{kind.__name__}({literal(value.toarray())})"
    if hasattr(value, "__name__"):
        return value.__name__
    text = repr(value)
    return text if len(text) < 2000 else f"{text[:200]} ... {len(text)} characters"


def _array(value):
    if value.dtype.names is not None:
        return f"np.array({value.tolist()!r}, dtype={value.dtype.descr!r})"
    if value.dtype.kind in "mM":
        return f"np.array({value.astype(str).tolist()!r}, dtype={str(value.dtype)!r})"
    text = f"np.array({value.tolist()!r}, dtype={str(value.dtype)!r})"
    if value.dtype.kind != "f":
        return text
    return text.replace("nan", "np.nan").replace("inf", "np.inf")
