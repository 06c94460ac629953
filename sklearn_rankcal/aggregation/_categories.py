"""`aggregate_categories`: one leaderboard per category, with partial pooling.

The score of item i in category c is theta_ic = s_i + d_ic, where d_ic is normal with the standard
deviation tau, the *spread*, and s_i has a flat prior. With s integrated out, theta has the prior
precision (1 / tau^2) (I - J / n_categories) for each item, where J is a matrix of ones. Scores of a
category are known up to a constant: only differences of items are penalised.

An interval that ignores the error of the estimated spread would be too short. Intervals therefore
use the mean squared error of the scores over the posterior distribution of the spread. At each
spread, this is the covariance plus the squared distance to the reported scores.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array, eye_array

from sklearn_rankcal.aggregation._aggregate import get_structure
from sklearn_rankcal.aggregation._base import shared_ranks, tie_scores
from sklearn_rankcal.aggregation._boards import (
    Board,
    covariates_of,
    intervals_of,
    penalties_of,
    wins_of,
)
from sklearn_rankcal.aggregation._contest_model import ContestFit, fit_contests
from sklearn_rankcal.aggregation._contests import (
    Contests,
    contests_of,
    count_votes,
    gauge,
    is_weighted,
)
from sklearn_rankcal.aggregation._evidence import Judges, share_terms
from sklearn_rankcal.aggregation._graphs import number_components, number_parts
from sklearn_rankcal.aggregation._judgements import Judgements
from sklearn_rankcal.aggregation._maximum_likelihood import BradleyTerry
from sklearn_rankcal.aggregation._result import Aggregate
from sklearn_rankcal.labels._item_ids import check_length, number_ids, read_ids, show_id
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._features import other_order
from sklearn_rankcal.utils._messages import check_choice, checks_keywords, counted
from sklearn_rankcal.utils._numbers import Floats, Ints

#: The range of the search for the spread; the lower end is replaced with 0.
_RANGE = (1e-2, 20.0)
#: Integrate up to the spread with a log marginal likelihood this much below the maximum.
_DROP, _NODES = 4.0, 12


@checks_keywords
def aggregate_categories(
    judgements: Judgements,
    category: ArrayLike,
    method: str | BradleyTerry = "btl",
    *,
    spread: float | None = None,
    intervals: str = "information",
    confidence_level: float = 0.95,
) -> Aggregate:
    """Make a leaderboard for each category of votes, with partial pooling.

    An item with few votes in a category gets a score close to its overall score. An item with many
    votes in a category gets a score of its own. The votes determine how strongly scores are pulled
    towards the overall score.

    Parameters
    ----------
    judgements : Judgements
        Votes between two items, without groups, for example from `Judgements.from_votes`.
    category : array-like of shape (n_judgements,)
        The category of each vote.
    method : str or BradleyTerry, default="btl"
        ``"btl"``, or a `BradleyTerry` object. Effects of covariates, of the position and of ties
        are the same in all categories.
    spread : float, default=None
        Standard deviation of the difference between the score of an item in a category and its
        overall score. 0 gives all categories the overall leaderboard, infinity gives each its own.
        None means that the spread is estimated by empirical Bayes.
    intervals : {"information", "robust"}, default="information"
        ``"information"`` assumes that the model holds. ``"robust"`` does not, and allows for
        differences between judges if judges are known, as in `aggregate`.
    confidence_level : float, default=0.95
        Confidence level of the intervals, between 0 and 1.

    Returns
    -------
    board : Aggregate
        One leaderboard per category, with the category as its group. Each contains every item, with
        or without votes in the category. `category_spread` is the spread. ``print`` also shows the
        number of votes of each category.

    Raises
    ------
    ValueError
        If there is only one category, if the index of `category` has the labels of the votes in
        another order, if the judgements are not unweighted votes of one query, or if the votes of
        all categories do not connect all items (unless `spread` is infinite).

    Notes
    -----
    The marginal likelihood of the spread is approximated by Laplace's method (Breslow and Clayton,
    1993). The variances of scores come from the posterior distribution. If the spread is estimated,
    they also allow for its error, with a half-Cauchy prior of scale 1 (Polson and Scott, 2012).
    With ``"robust"``, they come from the squared scores of the votes or judges. As in `aggregate`,
    statements must survive one more vote and, with judges, one more judge of the category. A fit
    takes O((n_items n_categories)^3) time.

    References
    ----------
    Breslow and Clayton (1993), Approximate inference in generalized linear mixed models, JASA 88,
    section 2.

    Polson and Scott (2012), On the half-Cauchy prior for a global scale parameter, Bayesian
    Analysis 7.

    Examples
    --------
    >>> from sklearn_rankcal import Judgements
    >>> from sklearn_rankcal.aggregation import aggregate_categories
    >>> from sklearn_rankcal.datasets import make_arena
    >>> data = make_arena(3000, n_models=5, category_spread=0.5, random_state=0)
    >>> votes = Judgements.from_votes(data.model_a, data.model_b, data.winner, position=True)
    >>> board = aggregate_categories(votes, data.category)
    >>> board.notes[0]
    'categories are partly pooled: the spread between them is 0.389'
    >>> board.items[board.rows_of("c3")].tolist()  # best first
    ['m4', 'm3', 'm2', 'm0', 'm1']
    """
    structure, level = _read_model(judgements, method, confidence_level)
    if spread is not None and not spread >= 0:
        raise ValueError(f"spread must be a number >= 0 or None; got {spread!r}.")
    if judgements.item_features is not None:
        raise ValueError(
            "aggregate_categories does not support item_features. Read the votes without them."
        )
    if is_weighted(judgements):
        raise ValueError(
            "aggregate_categories does not support weighted or faded votes, whose weights it "
            "would read as numbers of votes. Leave out the weights, and for fading use "
            "judgements.between(start, end)."
        )
    index = None if judgements.details is None else judgements.details.index
    if other_order(index, getattr(category, "index", None)):
        raise ValueError(
            "The index of category has the labels of the votes in another order, but category and "
            "votes are paired by position. Take both from the same data frame."
        )
    codes, names = number_ids(read_ids(category, "category"), "category")
    _check_length(codes, judgements)
    if len(names) < 2:
        raise ValueError(f"There is only one category, {show_id(names[0])}. Use aggregate.")
    check_choice(intervals, "intervals", ("information", "robust"))
    model = _Model(judgements, codes, names, structure, spread != np.inf, intervals)
    best = model.find_spread() if spread is None else float(spread)
    fit = model.fit(best)
    weights, covariance = model.moments(fit)
    if spread is None:
        covariance = model.integrate(best, weights)
    return _make_board(model, fit, weights, covariance, best, level, spread is None)


def _check_length(codes: Ints, judgements: Judgements) -> None:
    """Check that there is one category per vote; say where votes without an answer are."""
    n_refused = 0 if judgements.refused is None else int(judgements.refused.sum())
    if n_refused and len(codes) == judgements.n_judgements + n_refused:
        raise ValueError(
            f"category has {len(codes):,} entries, but judgements has "
            f"{judgements.n_judgements:,}: from_votes dropped {counted(n_refused, 'vote')} without "
            "an answer (refused=). Drop their categories as well: "
            "category[~winner.isin(<words of refused>)], or category[winner.notna()] for missing "
            "winners."
        )
    check_length(codes, judgements.n_judgements, "category", "judgements")


def _read_model(judgements: Any, method: Any, level: Any) -> tuple[BradleyTerry, float]:
    """Return the checked model for votes of one query, and the confidence level."""
    structure = get_structure(method, "method", ["btl"])
    structure.check()
    if not isinstance(structure, BradleyTerry) or not structure.own_effects:
        raise ValueError(f"method must be BradleyTerry with own_effects=True; got {structure!r}.")
    if not isinstance(judgements, Judgements) or judgements.queries.n_queries > 1:
        raise ValueError("judgements must be Judgements of one query, made without groups=.")
    if not 0 < float(level) < 1:
        raise ValueError(f"confidence_level must be between 0 and 1; got {level!r}.")
    return structure, float(level)


class _Model:
    """Contests of items in categories; item i of category c has number c * n_items + i."""

    def __init__(
        self,
        judgements: Judgements,
        codes: Ints,
        names: NDArray[Any],
        structure: BradleyTerry,
        pooled: bool,
        kind: str = "information",
    ) -> None:
        self.kind = kind
        self.judgements, self.names, self.structure = judgements, names, structure
        self.codes = codes
        self.n, self.k = judgements.queries.n_rows, len(names)
        self.contests = contests_of(judgements)
        self.X, self.effects = covariates_of(judgements, self.contests)
        self.category = codes[self.contests.judgement]
        self.judge: Ints | None = None
        if judgements.judge is not None:
            judge = judgements.judge[self.contests.judgement]
            self.judge = np.unique(judge, return_inverse=True)[1]
        contests, n = self._contests(1 if pooled else self.k), self.n if pooled else self.n * self.k
        whole = number_components(contests.first, contests.second, n, "weak")
        if pooled and (whole != whole[0]).any():
            apart = judgements.items[whole != np.bincount(whole).argmax()]
            raise ValueError(
                f"No votes connect {show_id(apart[0])} with most other items. Leave out the "
                "unconnected items and their votes."
            )
        strong = number_components(*wins_of(contests), n, "strong")
        if structure.penalty == 0 and strong.max() > whole.max():
            raise ValueError("Without a penalty, some scores are infinite. Use penalty='auto'.")
        #: for pooled categories, the precision of the prior of the overall scores
        self.ridge = float(structure._penalties(np.array([(strong == strong[0]).all()]))[0])

    def _contests(self, k: int) -> Contests:
        """Return the contests with separate items in each of k categories, or with common items."""
        shift = self.category * self.n if k > 1 else 0
        first, second = self.contests.first + shift, self.contests.second + shift
        return self.contests._replace(first=first, second=second)

    def fit(self, spread: float, start: Floats | None = None) -> ContestFit:
        """Fit the scores of all categories; at spread 0, fit all votes jointly."""
        n, k = (self.n, 1) if spread == 0 else (self.n, self.k)
        contests = self._contests(k)
        votes = count_votes(contests, self.X)
        part, ridge, prior = np.repeat(np.arange(k), n), np.zeros(n * k), None
        if spread == np.inf:
            part, ridge = penalties_of(wins_of(contests), n * k, self.structure)
        elif spread == 0:
            ridge[:] = self.ridge
        else:
            same, even = np.full((k, k), 1 / k), np.eye(n) - 1 / n
            across = (np.eye(k) - same) / spread**2 + self.ridge / k * same
            prior = np.kron(across, even)
        return fit_contests(
            votes, n * k, self.effects, self.structure, ridge, part, prior=prior, start=start
        )

    def log_marginal(self, spread: float, fit: ContestFit) -> float:
        """Return the log marginal likelihood by Laplace's method, up to a constant."""
        free = (self.k - 1) * (self.n - 1)
        matrix = fit.hessian() + gauge(fit.part, len(fit.weights))
        volume = float(np.linalg.slogdet(matrix)[1])
        return -fit.value - free * float(np.log(spread)) - volume / 2

    def find_spread(self) -> float:
        """Return the spread with the largest marginal likelihood."""
        start: list[Floats | None] = [None]

        def loss(log_spread: float) -> float:
            fit = self.fit(float(np.exp(log_spread)), start[0])
            start[0] = fit.weights
            return -self.log_marginal(float(np.exp(log_spread)), fit)

        bounds = tuple(np.log(_RANGE))
        best = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-3})
        spread = float(np.exp(best.x))
        return 0.0 if spread < 1.05 * _RANGE[0] else spread

    def moments(self, fit: ContestFit) -> tuple[Floats, Floats]:
        """Return the scores of all categories and the effects, with their covariance."""
        covariance, weights = fit.inverse(), fit.weights
        if self.kind == "robust":
            bread, contests = covariance, self._contests(fit.n_items // self.n)
            own = fit._replace(information=None, votes=count_votes(contests, self.X, merge=False))
            covariance = Judges(own, self.judge, *contests[2:5]).terms(bread)[1]
            if fit.information is not None:  # the prior moves scores by about the spread
                covariance += bread @ (fit.information - own.hessian()) @ bread
            covariance = _larger(bread, covariance)
        if fit.n_items > self.n:
            return weights, covariance
        effects = len(weights) - self.n
        copies = np.zeros((self.n * self.k + effects, len(weights)))
        copies[: self.n * self.k, : self.n] = np.tile(np.eye(self.n), (self.k, 1))
        copies[self.n * self.k :, self.n :] = np.eye(effects)
        return copies @ weights, copies @ covariance @ copies.T

    def integrate(self, best: float, weights: Floats) -> Floats:
        """Return the mean squared error of scores and effects for an estimated spread."""
        fit = self.fit(max(best, _RANGE[0]))
        top, end = self.log_marginal(max(best, _RANGE[0]), fit), max(best, 5 * _RANGE[0])
        while end < _RANGE[1]:
            end = min(1.5 * end, _RANGE[1])
            fit = self.fit(end, fit.weights)
            if self.log_marginal(end, fit) < top - _DROP:
                break
        # Gauss quadrature for the square root of the spread, which is finer at small spreads
        nodes, shares = np.polynomial.legendre.leggauss(_NODES)
        roots = (nodes + 1) / 2
        spreads = np.maximum(end * roots**2, _RANGE[0])
        logs, errors = np.empty(_NODES), []
        for k, spread in enumerate(spreads.tolist()):
            fit = self.fit(spread, fit.weights)
            logs[k] = self.log_marginal(spread, fit)
            found, covariance = self.moments(fit)
            errors.append(covariance + np.outer(found - weights, found - weights))
        mass = shares * roots / (1 + spreads**2) * np.exp(logs - logs.max())
        return np.asarray(np.tensordot(mass / mass.sum(), np.array(errors), axes=1))


def _larger(one: Floats, other: Floats) -> Floats:
    """Return a covariance with at least the variances of two, for all contrasts."""
    values, vectors = np.linalg.eigh(one)
    roots = np.sqrt(np.maximum(values, 1e-12 * values[-1]))
    excess, axes = np.linalg.eigh((vectors / roots).T @ (other - one) @ (vectors / roots))
    image = (vectors * roots) @ axes
    return np.asarray(one + (image * np.maximum(excess, 0.0)) @ image.T)


def _slice(
    model: _Model, fit: ContestFit, weights: Floats, covariance: Floats, c: int
) -> ContestFit:
    """Extract the fit of a category from the joint fit."""
    n, pooled = model.n, fit.n_items == model.n
    kept = np.append(np.arange(c * n, (c + 1) * n), np.arange(model.k * n, len(weights)))
    part = fit.part[:n] if pooled else fit.part[c * n : (c + 1) * n]
    part = np.unique(part, return_inverse=True)[1].astype(np.int64)
    # The information of the category is the inverse of its covariance. A constant added to a
    # component has no variance, and arbitrary information: `ContestFit.inverse` removes it.
    information = np.linalg.inv(covariance[np.ix_(kept, kept)] + gauge(part, len(kept)))
    mine = model.category == c
    return fit._replace(
        weights=weights[kept],
        n_items=n,
        votes=count_votes(model.contests.take(mine), model.X[mine]),
        part=part,
        information=np.asarray(information),
    )  # fmt: skip


def _make_board(
    model: _Model,
    fit: ContestFit,
    weights: Floats,
    covariance: Floats,
    spread: float,
    level: float,
    estimated: bool,
) -> Aggregate:
    """Make the result of all categories."""
    given, names, n, k = model.judgements, model.names, model.n, model.k
    read = given.resample(np.arange(given.n_judgements), model.codes, np.zeros(k, dtype=np.int64))
    # the categories of votes without an answer are not known
    read = read._with(refused=None)
    queries = read.queries = Queries(read.queries.offsets, None, names)
    boards = []
    for c in range(k):
        own = _slice(model, fit, weights, covariance, c)
        if spread == 0 and not estimated and model.kind == "information":
            own = fit  # the exact form of all statements
        mine = model.contests.take(model.category == c)
        rows, scores = np.arange(c * n, (c + 1) * n), eye_array(n, len(own.weights), format="csr")
        boards.append(Board(own, rows, model.effects, scores, own.votes.X, mine))
    scores = tie_scores(np.concatenate([one.scores for one in boards]), model.structure, queries)
    parts = np.ones(n * k, dtype=np.int64)
    if spread == np.inf:
        compared = np.bincount(fit.part)[fit.part] > 1
        parts = number_parts(fit.part, compared, queries)
        scores[~compared] = np.nan
    few = [_few_judges(model, read, c, spread == 0) for c in range(k)]
    found, listed = intervals_of(read, boards, model.structure, model.kind, level, parts, few)
    ranks = shared_ranks(scores, queries, parts)
    kind = f"are partly pooled: the spread between them is {spread:.3g}"
    kind = {0.0: "are fully pooled: the spread is 0", np.inf: "are not pooled"}.get(spread, kind)
    votes = ", ".join(
        f"{name} {count:,g}" for name, count in zip(names.tolist(), read.per_query, strict=True)
    )
    return Aggregate(
        items=read.items,
        groups=queries.broadcast(names),
        scores=scores,
        ranks=ranks,
        parts=parts,
        method=model.structure,
        judgements=read,
        coefficients=listed,
        notes=(f"categories {kind}", f"votes: {votes}"),
        category_spread=spread,
        _intervals=found.around(ranks),
        _boards=boards,
    )


def _few_judges(
    model: _Model, read: Judgements, c: int, pooled: bool
) -> tuple[float, float] | None:
    """Return the number of judges of a category and their degrees of freedom, for robust errors.

    All judges count if the categories are `pooled`.
    """
    if model.kind == "information" or read.judge is None:
        return None
    mine = np.ones(len(read.query), dtype=bool) if pooled else read.query == c
    weight = np.ones(len(mine)) if read.count is None else read.count
    shares = np.bincount(read.judge[mine], weight[mine])
    number, degrees = share_terms(csr_array(shares[:, None]))
    return float(number[0]), float(degrees[0])
