"""Warnings about ranks that may be ratings, or that may list only the first few labels."""

from __future__ import annotations

import numpy as np
from scipy.special import comb

from sklearn_rankcal.utils._messages import RARE, counted, warn
from sklearn_rankcal.utils._numbers import Bools, Floats

#: A label may be misspelt if another one is in this many times as many rows.
OFTEN = 10
_OF_LABELS = (
    "If larger is better, as in ratings, pass y_type='relevance'. If smaller is better, pass "
    "y_type='ranks'."
)


def warn_of_ratings(ranks: Floats, name: str = "y", advice: str = _OF_LABELS) -> None:
    """Warn if a row of ranks (n, r), NaN if missing, does not look like positions of r labels."""
    doubtful = np.flatnonzero(~look_like_positions(ranks))
    if not len(doubtful) or ranks.shape[1] == 1:
        return
    row = ranks[doubtful[0]]
    shown = ", ".join(f"{value:g}" for value in row[:8]) + (", ..." if len(row) > 8 else "")
    warn(
        f"{len(doubtful)} of {counted(len(ranks), 'row')} of {name} do not look like rankings of "
        f"{counted(len(row), 'label')} (row {doubtful[0]}: {shown}), but {name} is read as ranks "
        f"(smaller is better). {advice}"
    )


def look_like_positions(ranks: Floats) -> Bools:
    """Return whether each row of ranks (n, r), NaN if missing, can be a ranking of r labels.

    Tied labels can share the best, the worst or the mean of their positions, and missing labels can
    leave gaps. Numbers of tiers, from 1, are also accepted if there are at least half as many tiers
    as labels in the row. With fewer tiers, the numbers are more likely ratings.
    """
    n, r = ranks.shape
    values = np.sort(ranks, axis=1)  # NaN is last
    listed = ~np.isnan(values)
    size = listed.sum(axis=1)
    # The first and the last place of each run of equal entries, numbered from 1.
    place = np.arange(1, r + 1)
    new = np.ones((n, r), dtype=bool)
    new[:, 1:] = values[:, 1:] != values[:, :-1]
    new &= listed
    begin = np.maximum.accumulate(np.where(new, place, 0), axis=1)
    last = np.ones((n, r), dtype=bool)
    last[:, :-1] = new[:, 1:] | ~listed[:, 1:]
    end = np.minimum.accumulate(np.where(last, place, r)[:, ::-1], axis=1)[:, ::-1]
    ties = end - begin + 1
    plausible = size == 0
    values = np.where(listed, values, 0.0)
    whole = (values == np.floor(values)).all(axis=1)
    # Tied labels have the positions `first` to `first` + `ties` - 1, without overlap.
    for share in (0.0, 0.5, 1.0):
        first = values - share * (ties - 1)
        before = np.zeros((n, r))
        before[:, 1:] = (first + ties - 1)[:, :-1]
        fits = np.where(new, first > before + 0.99, True).all(axis=1)
        final = np.where(listed, first + ties - 1, 0).max(axis=1, initial=0)
        plausible |= fits & (final <= r) & (whole | (share == 0.5))
    tiers = new.sum(axis=1)
    highest = values.max(axis=1, initial=0)
    limit = np.where(size == r, tiers, r)  # without missing labels, there are no gaps
    plausible |= whole & (highest <= limit) & (2 * tiers >= size)
    return plausible


def warn_of_tails(ranks: Floats, are_orders: bool) -> None:
    """Warn if the labels that are missing from a row may be below the listed labels.

    Orders of names always give a warning. Ranks give no warning if they have gaps, such as [1, NaN,
    3]: the missing label is not below the listed labels. Ranks without gaps give a warning, with
    two exceptions. If the number of missing labels differs between rows, labels were probably left
    out at random and the rest was ranked anew. If there are few rows, gaps may be absent by chance,
    with probability 1 / binom(r, size) for each row.

    A label that hardly any row lists, such as a misspelt one, says nothing about the rest.
    """
    listed = ~np.isnan(ranks)
    n_rows, r, size = listed.sum(axis=0), ranks.shape[1], listed.sum(axis=1)
    rare = (n_rows <= RARE) & (OFTEN * n_rows <= n_rows.max(initial=0))
    cut = (size < r) & (size > 0)
    lists_rare = listed[:, rare].any(axis=1)
    counts = ~lists_rare if lists_rare.sum() <= RARE else np.ones(len(ranks), dtype=bool)
    if not (cut & counts & (listed[:, ~rare].sum(axis=1) < (~rare).sum())).any():
        return
    if not are_orders:
        sizes = np.unique(size[cut])
        gapless = np.nanmax(ranks[cut], axis=1) <= size[cut]
        if len(sizes) > 1 or not gapless.all() or comb(r, sizes[0]) ** float(cut.sum()) < 100:
            return
    warn(
        f"{cut.sum()} of {counted(len(ranks), 'row')} of y leave out labels. If missing labels are "
        "worse than listed labels, as in a list of favourites, pass unlisted='last'. If labels are "
        "missing for any other reason, pass unlisted='ignore', as is done now."
    )
