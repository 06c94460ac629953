"""CalibratedLabelRanker: rank a fixed set of labels for every row of X.

A row is a query of r documents, the labels: the losses, decoders and measures are those of
`CalibratedRanker`. Only the regressor differs, which sees a row once and has many outputs.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_rankcal.decoders import get_decoder
from sklearn_rankcal.labels._label_rankings import labels_of_rankings, read_label_rankings
from sklearn_rankcal.losses import PD, Loss, PDByScores, get_loss
from sklearn_rankcal.measures import BinaryMeasure
from sklearn_rankcal.measures._base import check_cutoff
from sklearn_rankcal.models import BlendedRegressor
from sklearn_rankcal.models._document import weight_arguments
from sklearn_rankcal.queries import Queries, check_weight, mean_over_queries
from sklearn_rankcal.rankers._reports import predicts_pairs
from sklearn_rankcal.targets import PAIRS, flat_targets
from sklearn_rankcal.utils._nested import set_random_states
from sklearn_rankcal.utils._pickles import VersionedPickle
from sklearn_rankcal.utils._scales import check_unit, target_exponent
from sklearn_rankcal.utils._sklearn_compat import HasMethods, _fit_context

Floats = NDArray[np.float64]
_OPTIONS = {
    "y_type": ("auto", "ranks", "relevance", "weights"),
    "missing": ("impute", "pairwise"),
}


class CalibratedLabelRanker(VersionedPickle, BaseEstimator):
    """Rank a fixed set of r labels for every row of X, consistently for a chosen loss.

    A multi-output regressor predicts the loss's targets, for pairwise disagreement the
    r (r - 1) / 2 signs of the preferences between labels, and a decoder makes rankings of them.

    Parameters
    ----------
    regressor : estimator, default=None
        A regressor of many outputs (`sklearn.multioutput.MultiOutputRegressor` makes one of any).
        None is `models.BlendedRegressor`.
    loss : str or Loss, default="pd"
        The loss to minimise: ``"pd"``, for Kendall's tau, or any other of `losses`, such as
        ``"spearman"``, ``"ndcg@3"``, ``"precision@1"`` or ``MAP(threshold=2)``.
    decoder : str or decoder, default="auto"
        As in `CalibratedRanker`. ``"auto"`` is exact up to 16 labels.
    y_type : {"auto", "ranks", "relevance", "weights"}, default="auto"
        How `fit` and `score` interpret `y`.

        - ``"ranks"``: (n_samples, r) positions, 1 = best. Only their order counts. The relevance
          of a label is r - rank, where labels that tie share the best of their positions. Binary
          losses need to know which labels are relevant: without a threshold the first q (or k) of
          the loss's cutoff, that is those with fewer than q labels above them.
        - ``"relevance"``: (n_samples, r) numbers, larger is better.
        - ``"weights"``: (n_samples, r, r), ``y[n, i, j]`` the weight of the preference for label i
          over label j, as of `labels.rankings_to_preferences`; for ``"pd"`` and
          ``"pd_by_scores"`` only.
        - ``"auto"``: ``"ranks"`` in two dimensions, ``"weights"`` in three.
    missing : {"impute", "pairwise"}, default="impute"
        What to do where rows do not judge all pairs. ``"pairwise"`` fits one regressor per pair, on
        the rows that judge it. ``"impute"`` fits those too, fills what is missing by their
        predictions, and fits the regressor of many outputs on all.
    random_state : int, RandomState instance or None, default=None
        Seeds every ``random_state`` of (a clone of) the regressor.
    n_jobs : int, default=None
        Rows decoded at the same time, where predictions are of pairs.

    Attributes
    ----------
    regressor_ : estimator or None
        The fitted regressor of all outputs.
    regressors_ : list of estimator or None
        Instead of it, where pairs are missing and ``missing="pairwise"``: a regressor for each pair
        i < j; None for a pair that nobody judges, which is predicted as 0.
    loss_ : Loss
        The loss, with parameters left to the data filled in.
    decoder_ : decoder
        The decoder.
    n_labels_ : int
        Number of labels r.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Column names of X, where it has them.

    Notes
    -----
    Calibrated as the loss is (``loss_.calibrated_over``): ``"pd"`` over every distribution of
    complete rankings (theorem 3 of [1]_). Missing entries are ignored, pair by pair: that is right
    where what is missing does not depend on the ranking, given X. `PDByScores` with an f other than
    ``"borda"`` scores the judged pairs of a row as they are. Rows where the loss is undefined
    (none of whose labels is relevant, say) are left out of the regression.

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
        "y_type": [str],
        "missing": [str],
        "random_state": ["random_state"],
        "n_jobs": [None, Integral],
    }

    def __init__(
        self,
        regressor: Any = None,
        *,
        loss: str | Loss = "pd",
        decoder: Any = "auto",
        y_type: str = "auto",
        missing: str = "impute",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.regressor = regressor
        self.loss = loss
        self.decoder = decoder
        self.y_type = y_type
        self.missing = missing
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
            Ranks, relevance or preference weights (`y_type`). With ``"pd"`` and
            ``"pd_by_scores"`` NaN is not judged, nor is a pair both of whose weights are 0; tied
            ranks prefer neither label.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights.

        Returns
        -------
        self : CalibratedLabelRanker
            The fitted ranker.

        Raises
        ------
        ValueError
            Lengths or a shape that do not fit, ranks below 1 or infinite, negative weights;
            missing entries or weights with other losses; ranks with a binary loss that does not
            say which are relevant; labels that the loss does not take; nothing to learn from.
        """
        for name, known in _OPTIONS.items():
            if getattr(self, name) not in known:
                raise ValueError(
                    f"Unknown {name} {getattr(self, name)!r}. Known: {', '.join(known)}."
                )
        loss = get_loss(self.loss)
        X = validate_data(self, X, dtype=[np.float64, np.float32])
        kind, Y = read_label_rankings(y, len(X), self.y_type)
        weight = check_weight(sample_weight, len(X))
        self.n_labels_ = r = Y.shape[1]
        self.decoder_ = get_decoder(self.decoder, loss.space)
        if kind == "ranks":
            loss = _with_threshold(loss, r)
        labels, judged = self._labels(kind, Y, loss)
        self.loss_ = loss.resolve(labels)
        self.regressor_: Any = None
        self.regressors_: list[Any] | None = None
        if r == 1:
            return self
        queries = Queries.uniform(len(Y), r)
        keep = self.loss_.defined(labels, queries)
        if judged is not None:  # a tie of the pairs that are judged says nothing of the others
            keep |= judged.any(axis=1) & ~judged.all(axis=1)
        if weight is not None:
            keep &= weight > 0
        if not keep.any():
            raise ValueError(
                f"y judges no pair of labels, or {type(loss).__name__} is undefined, on every row "
                "of positive weight: there is nothing to learn from."
            )
        weight = None if weight is None else weight[keep]
        by_pairs = judged is not None and _by_pairs(loss)
        made = (self.loss_.differences if by_pairs else self.loss_.training_targets)(
            labels, queries
        )
        targets = flat_targets(made).reshape(len(Y), -1)[keep]
        check_unit(float(np.abs(targets).max()))
        self._exponent = target_exponent(targets)  # regressors see targets times 2^-exponent
        targets = np.ldexp(targets, -self._exponent)
        if judged is not None and by_pairs:
            self._fit_pairs(X[keep], targets, judged[keep], weight)
        else:
            self.regressor_ = self._fit_one(X[keep], targets, weight)
        return self

    @staticmethod
    def _labels(kind: str, Y: Floats, loss: Loss) -> tuple[Any, NDArray[np.bool_] | None]:
        """Labels as losses take them, and which pairs of labels are judged (None: all)."""
        return labels_of_rankings(kind, Y, getattr(loss, "pair_weight", None), type(loss).__name__)

    def _fit_pairs(
        self, X: Any, differences: Floats, judged: NDArray[np.bool_], weight: Floats | None
    ) -> None:
        """Fit to the differences of pairs, not all of which need be judged."""
        if not judged.all():
            regressors = [
                self._fit_one(X[rows], target[rows, None], None if weight is None else weight[rows])
                if rows.any()
                else None
                for target, rows in zip(differences.T, judged.T, strict=True)
            ]
            if self.missing == "pairwise":
                self.regressors_ = regressors
                return
            differences = np.where(judged, differences, _predict_each(regressors, X))
        if not self.loss_.space.is_pairwise:
            differences = _net(differences, self.n_labels_)
        self.regressor_ = self._fit_one(X, differences, weight)

    def _fit_one(self, X: Any, targets: Floats, weight: Floats | None) -> Any:
        regressor = BlendedRegressor() if self.regressor is None else clone(self.regressor)
        y = targets[:, 0] if targets.shape[1] == 1 else targets
        weights = weight_arguments(regressor, weight, is_default=self.regressor is None)
        return set_random_states(regressor, self.random_state).fit(X, y, **weights)

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
            Labels that the predictions tie keep their order.
        """
        u = self._predict_targets(X)
        if self.n_labels_ == 1:
            return np.ones((len(u), 1), dtype=np.int64)
        queries = Queries.uniform(len(u), self.n_labels_)
        parallel = {"n_jobs": self.n_jobs} if self.loss_.space.is_pairwise else {}
        result = self.decoder_.decode(u.ravel(), queries, **parallel)
        return result.ranks.reshape(-1, self.n_labels_)

    def _predict_targets(self, X: Any) -> Floats:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        if self.regressors_ is not None:
            u = np.ldexp(_predict_each(self.regressors_, X), self._exponent)
            return u if self.loss_.space.is_pairwise else _net(u, self.n_labels_)
        if self.regressor_ is None:  # a single label
            return np.zeros((len(X), 0))
        u = np.asarray(self.regressor_.predict(X), dtype=np.float64).reshape(len(X), -1)
        return np.ldexp(u, self._exponent)

    @available_if(predicts_pairs)
    def predict_preferences(self, X: Any) -> Floats:
        """Return the input of the decoder: a predicted number for every pair of labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.

        Returns
        -------
        matrices : ndarray of shape (n_samples, r, r)
            For ``"pd"`` antisymmetric differences, positive: label i before label j, as
            `decode_preferences` takes them; for ``"map"`` symmetric, as
            `decode_average_precision` does.
        """
        u = self._predict_targets(X)
        return self.loss_.space.matrices(u, self.n_labels_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Kendall's tau for pairwise disagreement, the loss's measure for others; mean over rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.
        y : array-like of shape (n_samples, r), or (n_samples, r, r)
            As in `fit`.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights.

        Returns
        -------
        score : float
            Tau is 1 - 2 times the share of the judged preference weight that the ranking
            contradicts: with ties in y, 1 can still be reached. Rows where the measure is
            undefined are left out; NaN, with a warning, when that is all.
        """
        ranks = self.predict(X)
        kind, Y = read_label_rankings(y, len(ranks), self.y_type)
        if Y.shape[1] != self.n_labels_:
            raise ValueError(f"y has {Y.shape[1]} labels, but fit saw {self.n_labels_}.")
        weight = check_weight(sample_weight, len(ranks))
        labels, _ = self._labels(kind, Y, self.loss_)
        values = self.loss_.metric(labels, ranks.ravel(), Queries.uniform(*ranks.shape))
        if isinstance(self.loss_, PD | PDByScores):
            values = 2 * values - 1
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
        try:
            positive = self.y_type == "relevance" and get_loss(self.loss).measure.non_negative
        except (TypeError, ValueError):
            return tags  # a bad loss is reported by fit; tags must not raise
        tags.target_tags.positive_only = positive
        return tags


# ---------------------------------------------------------------- thresholds of ranks


def _with_threshold(loss: Loss, r: int) -> Loss:
    """For ranks: a binary loss without a threshold takes the labels above its cutoff."""
    if not isinstance(loss.measure, BinaryMeasure) or loss.threshold is not None:
        return loss
    cutoff = getattr(loss, "k", None)
    check_cutoff("k", cutoff)
    kind = type(loss).__name__
    if cutoff is None:
        raise ValueError(
            f"Ranks do not say which labels are relevant to {kind}. With "
            f"{kind}(threshold={r - 1}) the first would be (threshold=t: r - rank >= t); "
            "y_type='relevance' takes labels 0 and 1."
        )
    if cutoff >= r > 1:
        raise ValueError(
            f"{kind}(k={cutoff}) takes the first {cutoff} labels for relevant, but there are "
            f"{r}: every ranking is as good. Lower k, or give it a threshold."
        )
    return clone(loss).set_params(threshold=r - cutoff)


# ---------------------------------------------------------------- targets as arrays


def _predict_each(regressors: list[Any], X: Any) -> Floats:
    """One column for each regressor, 0 where there is none."""
    return np.column_stack(
        [
            np.zeros(len(X)) if one is None else np.asarray(one.predict(X)).reshape(-1)
            for one in regressors
        ]
    )


def _by_pairs(loss: Loss) -> bool:
    """Whether the targets are differences of pairs or sums of them, so that some can be missing."""
    return isinstance(loss, PD) or (isinstance(loss, PDByScores) and loss.score_function == "borda")


def _net(u: Floats, r: int) -> Floats:
    """The net Borda score over r, from differences of pairs."""
    return PAIRS.matrices(u, r).sum(axis=2) / r
