"""CalibratedLabelRanker: rank a fixed set of labels for every row of X."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from sklearn_rankcal._averages import check_weight, mean_over_queries
from sklearn_rankcal._queries import Queries
from sklearn_rankcal._reading import seeded
from sklearn_rankcal.decoders import get_decoder
from sklearn_rankcal.losses import Loss, get_loss
from sklearn_rankcal.models import BlendedRegressor
from sklearn_rankcal.utils._sklearn_compat import HasMethods, _fit_context

Floats = NDArray[np.float64]
_WEIGHTS_HELP = "y of shape (n_samples, r, r) holds preference weights"


class CalibratedLabelRanker(BaseEstimator):
    """Rank a fixed set of r labels for every row of X, consistently for a chosen measure.

    A multi-output regressor predicts the loss's targets, for pairwise disagreement the
    r (r - 1) / 2 signs of the preferences between labels, and a decoder makes rankings of them.

    Parameters
    ----------
    regressor : estimator, default=None
        A regressor of many outputs (`sklearn.multioutput.MultiOutputRegressor` makes one of any).
        None is `models.BlendedRegressor`.
    loss : str or Loss, default="pd"
        ``"pd"``, for Kendall's tau; or a loss on scores, such as ``"spearman"`` or ``"ndcg@3"``,
        which takes r - rank for the relevance of a label.
    decoder : str or decoder, default="auto"
        As in `CalibratedRanker`. ``"auto"`` is exact up to 16 labels.
    random_state : int, RandomState instance or None, default=None
        Seeds every ``random_state`` of (a clone of) the regressor.
    n_jobs : int, default=None
        Rows decoded at the same time.

    Attributes
    ----------
    regressor_ : estimator
        The fitted regressor, where every row judges every pair.
    regressors_ : list of estimator or None
        Where rows do not: a regressor for each pair i < j, fitted on the rows that judge it; None
        for a pair that nobody judges, which is predicted as 0.
    n_labels_ : int
        Number of labels r.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Column names of X, where it has them.

    Notes
    -----
    Calibrated for pairwise disagreement over every distribution of complete rankings (P1, theorem
    3). Missing entries are ignored, pair by pair: that is right where what is missing does not
    depend on the ranking, given X.

    References
    ----------
    .. [1] H. G. Ramaswamy, S. Agarwal and A. Tewari (2013). Convex calibrated surrogates for
       low-rank loss matrices with applications to subset ranking losses. NIPS. Theorem 3.
    .. [2] W. Cheng, J. Hühn and E. Hüllermeier (2009). Decision tree and instance-based learning
       for label ranking. ICML.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_rankcal import CalibratedLabelRanker
    >>> from sklearn_rankcal.datasets import label_ranking_from_classes
    >>> X, y = load_iris(return_X_y=True)
    >>> Y = label_ranking_from_classes(X, y)  # three labels, ranked by probability; 1 = best
    >>> ranker = CalibratedLabelRanker(random_state=0).fit(X[::2], Y[::2])
    >>> ranker.predict(X[1:4:2]).tolist()
    [[1, 2, 3], [1, 2, 3]]
    >>> bool(ranker.score(X[1::2], Y[1::2]) > 0.9)  # Kendall's tau
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "regressor": [None, HasMethods(["fit", "predict"])],
        "loss": [str, Loss],
        "decoder": [str, HasMethods(["decode"])],
        "random_state": ["random_state"],
        "n_jobs": [None, int],
    }

    def __init__(
        self,
        regressor: Any = None,
        *,
        loss: str | Loss = "pd",
        decoder: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.regressor = regressor
        self.loss = loss
        self.decoder = decoder
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ---------------------------------------------------------------- fit

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CalibratedLabelRanker:
        """Fit the regressor on the loss's targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.
        y : array-like of shape (n_samples, r), or (n_samples, r, r)
            Position of each label, 1 = best: only their order counts, ties prefer neither, NaN is
            not judged. Or weights ``y[n, i, j]`` of the preference for label i over label j, as of
            `labels.rankings_to_preferences`; for ``"pd"`` only, where both weights of a pair 0
            means not judged.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights.

        Returns
        -------
        self : CalibratedLabelRanker
            The fitted ranker.

        Raises
        ------
        ValueError
            Lengths that differ, ranks below 1 or infinite, negative weights; missing entries or
            weights with a loss on scores; nothing judged at all.
        """
        loss = get_loss(self.loss)
        X = validate_data(self, X, dtype=[np.float64, np.float32])
        Y = _check_rankings(y, len(X), loss.space)
        weight = check_weight(sample_weight, len(X))
        self.n_labels_ = r = Y.shape[1]
        self.decoder_ = get_decoder(self.decoder, loss.space, loss.default_decoder)
        if loss.space == "pairs":
            targets = _signs(Y)
            self.loss_ = clone(loss)
        else:
            relevance = r - Y.ravel()
            self.loss_ = loss.resolve(relevance)
            targets = self.loss_.encode(relevance, Queries.uniform(len(Y), r)).reshape(-1, r)
        if r > 1 and np.isnan(targets).all():
            raise ValueError("y judges no pair of labels: there is nothing to learn from.")
        self._fit_regressors(X, targets, weight)
        return self

    def _fit_regressors(self, X: Any, targets: Floats, weight: Floats | None) -> None:
        self.regressor_, self.regressors_ = None, None
        weights = {} if weight is None else {"sample_weight": weight}
        if targets.shape[1] == 0:  # a single label
            return
        if not np.isnan(targets).any():
            goal = targets[:, 0] if targets.shape[1] == 1 else targets
            self.regressor_ = self._make_regressor().fit(X, goal, **weights)
            return
        self.regressors_ = []
        for goal in targets.T:
            rows = ~np.isnan(goal)
            part = {name: value[rows] for name, value in weights.items()}
            self.regressors_.append(
                self._make_regressor().fit(X[rows], goal[rows], **part) if rows.any() else None
            )

    def _make_regressor(self) -> Any:
        regressor = BlendedRegressor() if self.regressor is None else clone(self.regressor)
        return seeded(regressor, self.random_state)

    # ---------------------------------------------------------------- predict

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the position of every label, 1 = best.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.

        Returns
        -------
        ranks : ndarray of shape (n_samples, r)
        """
        u = self._predict_targets(X)
        queries = Queries.uniform(len(u), self.n_labels_)
        if self.loss_.space == "pairs":
            result = self.decoder_.decode(u.ravel(), queries, None, self.n_jobs)
        else:
            result = self.decoder_.decode(u.ravel(), queries)
        return result.ranks.reshape(-1, self.n_labels_)

    def _predict_targets(self, X: Any) -> Floats:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        if self.regressors_ is not None:
            columns = [
                np.zeros(len(X)) if model is None else np.asarray(model.predict(X)).reshape(-1)
                for model in self.regressors_
            ]
            return np.stack(columns, axis=1)
        if self.regressor_ is None:
            return np.zeros((len(X), 0 if self.loss_.space == "pairs" else self.n_labels_))
        return np.asarray(self.regressor_.predict(X)).reshape(len(X), -1)

    def predict_preferences(self, X: Any) -> Floats:
        """Return the predicted differences between labels, as `decode_preferences` takes them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.

        Returns
        -------
        differences : ndarray of shape (n_samples, r, r)
            Antisymmetric; positive: label i before label j.

        Raises
        ------
        AttributeError
            The loss is one on scores.
        """
        if get_loss(self.loss).space != "pairs":
            raise AttributeError("predict_preferences goes with loss='pd' only.")
        u = self._predict_targets(X)
        r = self.n_labels_
        i, j = np.triu_indices(r, 1)
        matrices = np.zeros((len(u), r, r))
        matrices[:, i, j] = u
        matrices[:, j, i] = -u
        return matrices

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Kendall's tau for ``"pd"``, the loss's measure for others; the mean over rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.
        y : array-like of shape (n_samples, r), or (n_samples, r, r)
            Rankings, or weights, as in `fit`.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights.

        Returns
        -------
        score : float
            Rows that judge no pair are left out; NaN, with a warning, when that is all. With ties
            in y, 1 can still be reached.
        """
        ranks = self.predict(X)
        Y = _check_rankings(y, len(ranks), self.loss_.space)
        if Y.shape[1] != self.n_labels_:
            raise ValueError(f"y has {Y.shape[1]} labels, but fit saw {self.n_labels_}.")
        weight = check_weight(sample_weight, len(ranks))
        if self.loss_.space == "pairs":
            weights = _preferences(Y)
            total = weights.sum(axis=(1, 2))
            against = ranks[:, :, None] > ranks[:, None, :]
            lost = (weights * against).sum(axis=(1, 2))
            values = np.where(total > 0, 1 - 2 * lost / np.where(total > 0, total, 1.0), np.nan)
        else:
            queries = Queries.uniform(*Y.shape)
            values = self.loss_.metric(self.n_labels_ - Y.ravel(), ranks.ravel(), queries)
        rows = Queries.uniform(len(ranks), 1)  # a row weighs by itself
        return mean_over_queries(values, rows, weight, type(self.loss_).__name__)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "ranker"
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        inner = BlendedRegressor() if self.regressor is None else self.regressor
        tags.non_deterministic = get_tags(inner).non_deterministic
        return tags


def _check_rankings(Y: Any, n_rows: int, space: str) -> Floats:
    """Ranks (n, r) with NaN, or weights (n, r, r)."""
    if Y is None:
        raise ValueError("This ranker requires y to be passed, but the target y is None.")
    values = check_array(
        Y, dtype=np.float64, allow_nd=True, ensure_all_finite="allow-nan", input_name="y"
    )
    if values.ndim not in (2, 3):
        raise ValueError(
            f"y must have shape (n_samples, r), or (n_samples, r, r); it has {values.shape}."
        )
    if len(values) != n_rows:
        raise ValueError(f"y has {len(values)} rows, but X has {n_rows}.")
    if values.ndim == 3:
        if values.shape[1] != values.shape[2]:
            raise ValueError(f"{_WEIGHTS_HELP}; it has shape {values.shape}.")
        if space != "pairs":
            raise ValueError(f"{_WEIGHTS_HELP}, which go with loss='pd' only.")
        if np.isnan(values).any() or values.min() < 0:
            raise ValueError(f"{_WEIGHTS_HELP}: finite, and not negative.")
        return values
    if values.shape[1] > 1 and np.nanmin(values, initial=np.inf) < 1:
        raise ValueError(
            f"Ranks start at 1, the best; y has {np.nanmin(values):g}. An order of label numbers "
            "becomes ranks by order_to_ranks."
        )
    if space != "pairs" and np.isnan(values).any():
        raise ValueError("Missing ranks (NaN) go with loss='pd' only.")
    return values


def _preferences(Y: Floats) -> Floats:
    """(n, r, r) weights of label i over label j."""
    if Y.ndim == 3:
        weights = Y.copy()
        weights[:, np.arange(Y.shape[1]), np.arange(Y.shape[1])] = 0.0
        return weights
    return (Y[:, :, None] < Y[:, None, :]).astype(np.float64)


def _signs(Y: Floats) -> Floats:
    """(n, r (r - 1) / 2) differences of the pairs i < j, NaN where not judged."""
    i, j = np.triu_indices(Y.shape[1], 1)
    if Y.ndim == 3:
        differences = Y[:, i, j] - Y[:, j, i]
        return np.where((Y[:, i, j] == 0) & (Y[:, j, i] == 0), np.nan, differences)
    return np.sign(Y[:, j] - Y[:, i])
