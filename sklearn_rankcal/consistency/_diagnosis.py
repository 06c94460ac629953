"""What can be certified of a ranker's predictions: `CalibratedRanker.diagnose`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.losses import Loss
from sklearn_rankcal.plotting import make_axes
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import Space, flat_targets
from sklearn_rankcal.utils._memory import rows_per_block

Floats = NDArray[np.float64]
TOL = 1e-9
_SHARES = {
    "acyclic": "predicted preferences are acyclic",
    "scores_suffice": "sorting scores would do",
    "optimal": "the ranking is proved best for its predictions",
}


@dataclass(repr=False)
class Diagnosis:
    """How far to trust the rankings of some queries; its text is a summary.

    Attributes
    ----------
    loss : Loss
        What the ranker was fitted for.
    per_query : dict of ndarray of shape (n_queries,)
        ``query`` (its id) and ``n_documents``; for losses on pairs ``objective``, ``lower_bound``,
        ``gap``, ``optimal`` and ``method`` of the decoder (`CalibratedRanker.decode_report`);
        ``scores_suffice``, whether the condition under which a sort of scores is enough holds of
        the predictions (``"pd"``: that of P1, theorem 6, for the net Borda score; ``"map"``:
        P_reinforce, theorem 4); and ``acyclic`` (``"pd"``, theorem 7). With labels,
        ``squared_error``, an estimate of the squared distance of the predictions from the expected
        targets, NaN where the loss is undefined, and ``squared_bound``, that times the square of
        the loss's `regret_constant`.
    """

    loss: Loss
    per_query: dict[str, NDArray[Any]]

    @property
    def shares(self) -> dict[str, float]:
        """Share of the queries of two documents and more for which each certificate holds."""
        several = self.per_query["n_documents"] > 1
        return {
            name: float(self.per_query[name][several].mean())
            for name in _SHARES
            if name in self.per_query and several.any()
        }

    @property
    def regret_bound(self) -> float:
        """Bound of the expected regret of a query on which the loss is defined; NaN without labels.

        In units of the loss's goal: for ``"pd"`` preference weight, for others the measure. It is
        sqrt(mean squared bound) + mean gap, each mean at the upper end of an approximate one-sided
        95 % interval over queries. The normal approximation is too short where a few rare labels
        make most of the error.
        """
        return self._bound(1.645)

    @property
    def regret_estimate(self) -> float:
        """The same from the means themselves: an estimate of the bound, not a bound.

        With several labels of each row it can be 0 by chance.
        """
        return self._bound(0.0)

    def _bound(self, z: float) -> float:
        squares = self.per_query.get("squared_bound", np.array([np.nan]))
        kept = ~np.isnan(squares)
        if not kept.any():
            return np.nan
        gaps = self.per_query["gap"][kept] if "gap" in self.per_query else np.zeros(kept.sum())
        upper, gap = (
            values.mean() + (z * _standard_error(values) if z else 0.0)
            for values in (squares[kept], gaps)
        )
        return float(np.sqrt(max(upper, 0.0)) + gap)

    def to_frame(self) -> Any:
        """`per_query` as a pandas data frame, a row per query."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "to_frame needs pandas (pip install pandas); per_query has the columns as arrays."
            ) from error
        return pd.DataFrame(self.per_query)

    def __repr__(self) -> str:
        sizes = self.per_query["n_documents"]
        lines = [
            f"Diagnosis of {len(sizes)} queries of {sizes.min()} to {sizes.max()} documents for "
            f"{self.loss!r}"
        ]
        lines += [f"  {share:6.1%}  {_SHARES[name]}" for name, share in self.shares.items()]
        if "gap" in self.per_query:
            gap = self.per_query["gap"]
            lines.append(f"  largest gap to the best ranking of the predictions: {gap.max():.3g}")
        if self.loss.regret_constant(2) is None:
            lines.append(f"  no regret bound: calibrated over {self.loss.calibrated_over}")
        elif np.isfinite(self.regret_bound):
            lines += [
                f"  expected regret at most {self.regret_bound:.3g}, with about 95 % confidence "
                f"(estimate of the bound {self.regret_estimate:.3g})",
                "  (from above only: the noise of labels is in it, unless rows have several)",
            ]
        return "\n".join(lines)

    def plot(self, axes: Any = None) -> Any:
        """Draw the shares, and the squared bound of every query against its size if there is one.

        Parameters
        ----------
        axes : sequence of two matplotlib axes, default=None
            None makes a figure.

        Returns
        -------
        axes : ndarray of two matplotlib axes
        """
        if axes is None:
            axes = make_axes(1, 2, figsize=(9, 3))
        left, right = axes
        shares = self.shares
        if shares:
            texts = [_SHARES[name] for name in shares]
            bars = left.barh(texts, [100 * share for share in shares.values()])
            left.bar_label(bars, fmt="%.1f", padding=2)
            left.invert_yaxis()
        left.set(xlim=(0, 112), xlabel="% of queries")
        sizes = self.per_query["n_documents"]
        if "squared_bound" in self.per_query:
            bounds = np.sqrt(np.maximum(self.per_query["squared_bound"], 0.0))
            right.plot(sizes, bounds, ".", alpha=0.5, label="a query")
            right.axhline(self.regret_bound, color="black", label="bound of the expected regret")
            right.set(xlabel="documents", ylabel="constant x distance to the labels")
            right.legend()
        elif "gap" in self.per_query:
            right.plot(sizes, self.per_query["gap"], ".", alpha=0.5)
            right.set(xlabel="documents", ylabel="gap to the best ranking")
        return axes


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.inf


def rounding_slack(u: Floats, queries: Queries, space: Space) -> Floats:
    """Up to what size predictions of pairs count as 0, per query: `TOL` times the largest."""
    counts = space.n_entries(queries.sizes)
    largest = np.zeros(queries.n_queries)
    some = counts > 0
    starts = (np.cumsum(counts) - counts)[some]
    if len(starts):
        largest[some] = np.maximum.reduceat(np.abs(u), starts)
    return TOL * largest


def scores_suffice(u: Floats, queries: Queries, space: Space) -> NDArray[np.bool_]:
    """Whether predictions of pairs satisfy the condition of the theorem on scores, per query.

    O(sum r^2) for differences (P_f, f the net Borda score), O(sum r^3) for products (P_reinforce).
    """
    holds = np.ones(queries.n_queries, dtype=bool)
    slacks = rounding_slack(u, queries, space)
    starts = np.append(0, np.cumsum(space.n_entries(queries.sizes)))
    for r in np.unique(queries.sizes[queries.sizes > 1]):
        member = np.flatnonzero(queries.sizes == r)
        entries = np.arange(space.n_entries(int(r)))
        step = rows_per_block(8 * int(r) ** (3 if space.symmetric else 2))
        for first in range(0, len(member), step):
            some = member[first : first + step]
            flat = u[starts[some][:, None] + entries]
            slack = slacks[some][:, None, None]
            check = _reinforced if space.symmetric else _follows_borda
            holds[some] = check(space.matrices(flat, int(r)), slack)
    return holds


def _follows_borda(d: Floats, slack: Floats) -> NDArray[np.bool_]:
    score = d.sum(axis=2)
    lead = score[:, :, None] - score[:, None, :]
    return ~((d > slack) & (lead <= slack)).any(axis=(1, 2))


def _reinforced(u: Floats, slack: Floats) -> NDArray[np.bool_]:
    """P_reinforce, one pass over i: an (n, r, r) array at a time would be r times this."""
    r = u.shape[1]
    own = np.einsum("qii->qi", u)
    holds = np.ones(len(u), dtype=bool)
    for i in range(r):
        lack = np.maximum(u - u[:, i : i + 1, :], 0.0)  # [q, j, g]: u_jg - u_ig
        lack[:, :, i] = 0.0
        np.einsum("qjj->qj", lack)[...] = 0.0
        lead = own[:, i : i + 1] - own
        short = (lead >= -slack[:, 0]) & (lead < lack.sum(axis=2) - slack[:, 0])
        short[:, i] = False
        holds &= ~short.any(axis=1)
    return holds


def squared_errors(loss: Loss, u: Floats, labels: list[Any], queries: Queries) -> Floats:
    """Unbiased estimate of ||u - E[targets]||^2 per query, up to directions that rank nothing.

    With labels given once, the variance of the targets is in it; with m of them an estimate of
    that variance over m is taken out. NaN where the loss is undefined for all of them.
    """
    targets = np.stack([_flat(loss, label, queries) for label in labels])
    owner = loss.space.owners(queries)
    defined = np.stack([loss.defined(label, queries) for label in labels])
    m = defined.sum(axis=0)
    kept = defined[:, owner]
    mean = np.where(kept, targets, 0.0).sum(axis=0) / np.maximum(m, 1)[owner]
    rest = loss.space.remove_constants(u - mean, queries)
    noise = sum(
        np.bincount(
            owner,
            loss.space.remove_constants(np.where(keep, target - mean, 0.0), queries) ** 2,
            queries.n_queries,
        )
        for target, keep in zip(targets, kept, strict=True)
    )
    squares = np.bincount(owner, rest**2, queries.n_queries).astype(np.float64)
    squares -= np.where(m > 1, noise / np.maximum(m * (m - 1), 1), 0.0)
    return np.where(m > 0, squares, np.nan)


def _flat(loss: Loss, labels: Any, queries: Queries) -> Floats:
    """The targets, query after query."""
    targets = flat_targets(loss.encode(labels, queries))
    return targets if loss.space.is_pairwise else queries.gather(targets)
