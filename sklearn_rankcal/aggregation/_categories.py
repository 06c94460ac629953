"""`aggregate_categories`: a leaderboard for each category, which learn from each other.

The score of item i in category c is theta_ic = s_i + d_ic, where d_ic is normal with the standard
deviation tau, the *spread*, and nothing is assumed of s_i. With s integrated out, theta has the
prior precision (1 / tau^2) (I - J / n_categories) for each item, where J is a matrix of ones.
Scores of a category are known up to a constant, so that only differences of items are penalised.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.sparse import eye_array

from sklearn_rankcal.aggregation._base import shared_ranks, tie_scores
from sklearn_rankcal.aggregation._bradley_terry import BradleyTerry
from sklearn_rankcal.aggregation._contest_boards import (
    Board,
    coefficients_of,
    covariates_of,
    intervals_of,
    penalties_of,
    wins_of,
)
from sklearn_rankcal.aggregation._contest_model import ContestFit, fit_contests, gauge
from sklearn_rankcal.aggregation._contest_votes import count_votes
from sklearn_rankcal.aggregation._graphs import number_components, number_parts
from sklearn_rankcal.aggregation._registry import make_structure
from sklearn_rankcal.aggregation._result import Aggregate
from sklearn_rankcal.labels import Judgements
from sklearn_rankcal.labels._contests import Contests, contests_of, is_weighted
from sklearn_rankcal.labels._item_ids import check_length, number_ids, read_ids, show_id
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._names import checks_keywords
from sklearn_rankcal.utils._typing import Floats, Ints

#: The spreads between which the best one is searched; at the lower end it is taken for 0.
_RANGE = (1e-2, 20.0)


@checks_keywords
def aggregate_categories(
    judgements: Judgements,
    category: ArrayLike,
    method: str | BradleyTerry = "btl",
    *,
    spread: float | None = None,
    confidence_level: float = 0.95,
) -> Aggregate:
    """Make a leaderboard for each category of votes, where small categories learn from all.

    An item with few votes in a category gets a score there that is close to its score in all
    categories together, and one with many votes a score of its own (partial pooling). How much the
    categories differ is estimated from the votes.

    Parameters
    ----------
    judgements : Judgements
        Votes between two items, without groups, such as those of `Judgements.from_votes`.
    category : array-like of shape (n_judgements,)
        The category of each vote.
    method : str or BradleyTerry, default="btl"
        ``"btl"``, or an object with parameters. Effects of covariates, of the position and of ties
        are the same in all categories.
    spread : float, default=None
        The standard deviation of the difference between the score of an item in a category and its
        overall score. 0 gives all categories the overall leaderboard, and infinity each its own.
        None means the spread that makes the votes most probable (empirical Bayes).
    confidence_level : float, default=0.95
        Confidence level of the intervals, between 0 and 1.

    Returns
    -------
    board : Aggregate
        A leaderboard for each category, whose name is the group. It contains every item, also those
        without a vote in the category. `category_spread` is the spread, and the text has the number
        of votes of each category.

    Raises
    ------
    ValueError
        If there is only one category, if the judgements are not votes of one query, if they are
        weighted, or if all votes together do not connect all items (unless `spread` is infinite).

    Notes
    -----
    The marginal likelihood of the spread is approximated by Laplace's method. Intervals are those
    of the posterior distribution at this spread: they trust the model, and neither allow for the
    error of the spread nor for judges whose votes depend on each other. A fit takes
    O((n_items n_categories)^3) time.

    References
    ----------
    Breslow and Clayton (1993), Approximate inference in generalized linear mixed models, JASA 88,
    section 2.

    Examples
    --------
    >>> from sklearn_rankcal import Judgements
    >>> from sklearn_rankcal.aggregation import aggregate_categories
    >>> from sklearn_rankcal.datasets import make_arena
    >>> data = make_arena(3000, n_models=5, category_spread=0.5, random_state=0)
    >>> votes = Judgements.from_votes(data.model_a, data.model_b, data.winner, position=True)
    >>> board = aggregate_categories(votes, data.category)
    >>> board.notes[0]
    'categories lean on each other: the spread between them is 0.389'
    >>> board.items[board.rows_of("c3")].tolist()  # best first
    ['m4', 'm3', 'm2', 'm0', 'm1']
    """
    structure = make_structure(method, "method", ["btl"])
    structure.check()
    if not isinstance(structure, BradleyTerry) or not structure.own_effects:
        raise ValueError(f"method must be BradleyTerry with own effects; got {structure!r}.")
    if not isinstance(judgements, Judgements) or judgements.queries.n_queries > 1:
        raise ValueError("judgements must be Judgements of one query, made without groups=.")
    level = float(confidence_level)
    if not 0 < level < 1:
        raise ValueError(f"confidence_level must be between 0 and 1; got {confidence_level!r}.")
    if spread is not None and not spread >= 0:
        raise ValueError(f"spread must be a number >= 0 or None; got {spread!r}.")
    if judgements.item_features is not None:
        raise ValueError(
            "aggregate_categories takes no item_features; read the votes without them."
        )
    if is_weighted(judgements):
        raise ValueError(
            "These votes have weights, or fade, and posterior distributions would take the weights "
            "for numbers of votes. Leave them out; of faded votes, take those of the last months "
            "by judgements.between(start, end)."
        )
    codes, names = number_ids(read_ids(category, "category"), "category")
    check_length(codes, judgements.n_judgements, "category", "judgements")
    if len(names) < 2:
        raise ValueError(f"There is only the category {show_id(names[0])}. Use aggregate.")
    model = _Model(judgements, codes, names, structure, spread != np.inf)
    if spread is None:
        spread = model.find_spread()
    fit = model.fit(float(spread))
    return _make_board(model, fit, float(spread), level)


class _Model:
    """Contests of items in categories; item i of category c has the number c n_items + i."""

    def __init__(
        self,
        judgements: Judgements,
        codes: Ints,
        names: NDArray[Any],
        structure: BradleyTerry,
        pooled: bool,
    ) -> None:
        self.judgements, self.names, self.structure = judgements, names, structure
        self.codes = codes
        self.n, self.k = judgements.queries.n_rows, len(names)
        self.contests = contests_of(judgements)
        self.X, self.effects = covariates_of(judgements, self.contests)
        self.category = codes[self.contests.judgement]
        n = self.n
        whole = number_components(self.contests.first, self.contests.second, n, "weak")
        if pooled and (whole != whole[0]).any():
            apart = judgements.items[whole != np.bincount(whole).argmax()]
            raise ValueError(
                f"All votes together do not connect {show_id(apart[0])} with most other items. "
                "Leave out the votes and items that are apart."
            )
        strong = number_components(*wins_of(self.contests), n, "strong")
        #: the precision of the prior of the overall scores: for pooled categories
        self.ridge = float(structure._penalties(np.array([(strong == strong[0]).all()]))[0])

    def fit(self, spread: float, start: Floats | None = None) -> ContestFit:
        """Fit the scores of all categories, or at spread 0 those of all votes together."""
        first, second = self.contests.first, self.contests.second
        n, k = (self.n, 1) if spread == 0 else (self.n, self.k)
        shift = 0 if spread == 0 else self.category * n
        first, second = first + shift, second + shift
        contests = self.contests._replace(first=first, second=second)
        votes = count_votes(contests, self.X)
        part, ridge, prior = np.repeat(np.arange(k), n), np.zeros(n * k), None
        if spread == np.inf:
            part, ridge = penalties_of(contests, n * k, self.structure)
        elif spread == 0:
            ridge[:] = self.ridge
        else:
            same, even = np.full((k, k), 1 / k), np.eye(n) - 1 / n
            across = (np.eye(k) - same) / spread**2 + self.ridge / k * same
            prior = np.kron(across, even)
        return fit_contests(
            votes, n * k, self.effects, ties=self.structure.ties, ridge=ridge, part=part,
            own_effects=True, tol=self.structure.tol, max_iter=self.structure.max_iter,
            prior=prior, start=start,
        )  # fmt: skip

    def log_marginal(self, spread: float, fit: ContestFit) -> float:
        """Return the log marginal likelihood by Laplace's method, up to a constant."""
        free = (self.k - 1) * (self.n - 1)
        matrix = fit.hessian() + gauge(fit.part, len(fit.weights))
        volume = float(np.linalg.slogdet(matrix)[1])
        return -fit.value - free * float(np.log(spread)) - volume / 2

    def find_spread(self) -> float:
        """Return the spread of the largest marginal likelihood."""
        start: list[Floats | None] = [None]

        def loss(log_spread: float) -> float:
            fit = self.fit(float(np.exp(log_spread)), start[0])
            start[0] = fit.weights
            return -self.log_marginal(float(np.exp(log_spread)), fit)

        bounds = tuple(np.log(_RANGE))
        best = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-3})
        spread = float(np.exp(best.x))
        return 0.0 if spread < 1.05 * _RANGE[0] else spread


class _Slice(NamedTuple):
    """The fit of a category and the contests that bound its scores."""

    fit: ContestFit
    contests: Contests


def _slice(model: _Model, fit: ContestFit, inverse: Floats, c: int, spread: float) -> _Slice:
    """Take the fit of a category out of that of all."""
    contests, n = model.contests, model.n
    if spread == 0:
        return _Slice(fit, contests)
    size = len(fit.weights)
    kept = np.append(np.arange(c * n, (c + 1) * n), np.arange(model.k * n, size))
    part = np.unique(fit.part[c * n : (c + 1) * n], return_inverse=True)[1].astype(np.int64)
    # The information of the category is the inverse of its covariance. Constants that are added to
    # a component have no variance, and any information: `ContestFit.inverse` takes them out.
    information = np.linalg.inv(inverse[np.ix_(kept, kept)] + gauge(part, len(kept)))
    votes = fit.votes.take(fit.votes.first // n == c)
    own = fit._replace(
        weights=fit.weights[kept],
        n_items=n,
        votes=votes._replace(first=votes.first - c * n, second=votes.second - c * n),
        ridge=fit.ridge[kept],
        part=part,
        information=np.asarray(information),
    )  # fmt: skip
    if spread == np.inf:
        at = np.flatnonzero(model.category == c)
        contests = contests.take(at)
    return _Slice(own, contests)


def _make_board(model: _Model, fit: ContestFit, spread: float, level: float) -> Aggregate:
    """Make the result of all categories."""
    given, names, n, k = model.judgements, model.names, model.n, model.k
    read = given.resample(np.arange(given.n_judgements), model.codes, np.zeros(k, dtype=np.int64))
    queries = read.queries = Queries(read.queries.offsets, None, names)
    inverse = fit.inverse()
    slices = [_slice(model, fit, inverse, c, spread) for c in range(k)]
    boards = [
        Board(
            own,
            np.arange(c * n, (c + 1) * n),
            model.effects,
            eye_array(n, len(own.weights), format="csr"),
            own.votes.X,
            bounds,
        )
        for c, (own, bounds) in enumerate(slices)
    ]
    scores = tie_scores(np.concatenate([one.scores for one in boards]), model.structure, queries)
    parts = np.ones(n * k, dtype=np.int64)
    if spread == np.inf:
        compared = np.bincount(fit.part)[fit.part] > 1
        parts = number_parts(fit.part, compared, queries)
        scores[~compared] = np.nan
    found = intervals_of(read, boards, "information", level, parts)
    ranks = shared_ranks(scores, queries, parts)
    kind = f"lean on each other: the spread between them is {spread:.3g}"
    kind = {0.0: "are all alike: the spread is 0", np.inf: "learn nothing from each other"}.get(
        spread, kind
    )
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
        score_low=found.score_low,
        score_high=found.score_high,
        rank_low=np.minimum(found.rank_low, ranks),
        rank_high=np.maximum(found.rank_high, ranks),
        confidence_level=level,
        intervals="information",
        coefficients=coefficients_of(boards, found, level, names),
        notes=(f"categories {kind}", f"votes: {votes}"),
        category_spread=spread,
        _above=found.above,
        _boards=boards,
        _errors=found.errors,
        _first=found.first,
    )
