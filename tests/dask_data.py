"""Dask collections with chosen partitions, for the tests of `sklearn_rankcal.dask`."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd

FEATURES = ["a", "b", "c"]


def collection_of(parts):
    """Return the dask data frame, series or array with these partitions."""
    if isinstance(parts[0], np.ndarray):
        whole = np.concatenate(parts)
        return da.from_array(whole, chunks=(tuple(map(len, parts)), *whole.shape[1:]))
    return dd.from_map(_Part(parts), range(len(parts)), meta=parts[0].iloc[:0])


class _Part:
    def __init__(self, parts):
        self.parts = parts

    def __call__(self, number):
        return self.parts[number]


@dataclass
class Documents:
    """The same documents in dask collections and in one frame.

    Attributes
    ----------
    parts : list of DataFrame
        Columns a, b, c, qid, label and w.
    container : {"frame", "array", "numbers"}
        "numbers" is a frame whose columns are named by integers.
    """

    parts: list
    container: str = "frame"

    @property
    def frame(self):
        return pd.concat(self.parts)

    @property
    def group_column(self):
        return "qid" if self.container == "frame" else None

    def table(self, part):
        if self.container == "frame":
            return part[[*FEATURES[:2], "qid", FEATURES[2]]]
        table = part[FEATURES]
        return table.to_numpy() if self.container == "array" else table.set_axis(range(3), axis=1)

    def column(self, name):
        columns = [part[name] for part in self.parts]
        as_array = self.container == "array"
        return collection_of([part.to_numpy() for part in columns] if as_array else columns)

    @property
    def X(self):
        return collection_of([self.table(part) for part in self.parts])

    def given(self, *, local, y=True, weighted=False) -> dict[str, Any]:
        """Return the keyword arguments of `fit`, `score` or (y=False) `predict`."""
        read = (lambda name: self.frame[name]) if local else self.column
        arguments = {"X": self.table(self.frame) if local else self.X}
        if self.group_column is None:
            arguments["groups"] = read("qid")
        if y:
            arguments["y"] = read("label")
        if weighted:
            arguments["sample_weight"] = read("w")
        return arguments


def make_frame(rng, sizes, duplicates=False):
    """Return documents of queries 0, 1, ... with a row of each of some contents."""
    qid = np.repeat(np.arange(len(sizes)), sizes)
    n = len(qid)
    X = rng.normal(size=(n, 3))
    X[:, 1] = rng.integers(0, 3, n)  # ties
    X[:, 2] += rng.normal(size=len(sizes))[qid]  # a level of its own in each query
    if duplicates and n > 1:
        X[n // 2 :] = X[: n - n // 2]
    frame = pd.DataFrame(X, columns=FEATURES, index=rng.integers(0, n, n))
    # about one query in five has no relevant document, and one document in five has weight 0
    label = rng.integers(0, 3, n) * (rng.random(len(sizes)) > 0.2)[qid]
    weight = np.where(rng.random(n) < 0.2, 0.0, rng.integers(1, 4, n))
    return frame.assign(qid=qid, label=label, w=weight)


def name_queries(frame, kind):
    """Return the frame with query ids of another type."""
    qid = frame["qid"].to_numpy()
    ids = {
        "whole": qid - 3,
        "text": [f"query {number}" for number in qid],
        "float": (qid - 2) * 0.5,
        "time": pd.Timestamp("2026-01-01") + pd.to_timedelta(qid, unit="D"),
        "category": pd.Categorical([f"q{number}" for number in qid]),
    }[kind]
    return frame.assign(qid=ids)


def cut(frame, places):
    """Cut the rows at some places, which can be equal."""
    edges = [0, *sorted(min(place, len(frame)) for place in places), len(frame)]
    return [frame.iloc[a:b] for a, b in pairwise(edges)]
