"""`CalibratedLabelRanker`: rank a fixed set of labels for each row of X.

A row of X is a query, and the r labels are its documents. The regressor gets each row once, and has
one output for each target of the row.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_rankcal.decoders import Sort
from sklearn_rankcal.decoders._batches import not_a_result
from sklearn_rankcal.decoders._registry import get_decoder, sorts_scores
from sklearn_rankcal.label_ranking import _outputs
from sklearn_rankcal.label_ranking._blend import BlendedRegressor
from sklearn_rankcal.labels import _label_rankings
from sklearn_rankcal.losses import PD, Loss, PDByScores, get_loss
from sklearn_rankcal.losses._registry import refuse_loss
from sklearn_rankcal.queries import Queries, check_weight, mean_over_queries
from sklearn_rankcal.queries._ranking import tie_rounded
from sklearn_rankcal.rankers._predict import predicts_pairs
from sklearn_rankcal.targets import PAIRS
from sklearn_rankcal.utils import _estimators, _features
from sklearn_rankcal.utils._column_advice import check_columns, note_columns
from sklearn_rankcal.utils._memory import rows_per_block
from sklearn_rankcal.utils._messages import check_choice, check_nested
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints, check_unit, target_unit
from sklearn_rankcal.utils._sklearn_compat import HasMethods, StrOptions, _fit_context, available_if

# With more rows times pairs, missing pairs are predicted jointly. With 11 labels and 60 % of the
# ranks missing, a regressor for each pair ranks better (by .015 in 528 rows), but takes minutes.
_MOST_PAIRS = 50_000


class CalibratedLabelRanker(_estimators.SiteLink, BaseEstimator):
    """Rank a fixed set of r labels for each row of X, consistently for a chosen loss.

    A multi-output regressor predicts the targets of the loss, and a decoder converts the
    predictions to rankings. For pairwise disagreement, the targets are the signs of the r (r - 1) /
    2 preferences between labels.

    Parameters
    ----------
    regressor : estimator, default=None
        A regressor. If it supports only one output, it is wrapped in
        `sklearn.multioutput.MultiOutputRegressor`. None means `label_ranking.BlendedRegressor`,
        which supports numbers, categories, text and missing values.
    loss : str or Loss, default="pd"
        The loss to minimise. ``"pd"`` optimises Kendall's tau. Any other loss of `losses` is
        possible, such as ``"spearman"``, ``"ndcg@3"``, ``"precision@1"`` or ``MAP(threshold=2)``.
    decoder : str or decoder, default="auto"
        As in `CalibratedRanker`. ``"auto"`` finds an optimal ranking for up to 16 labels.
    y_type : {"auto", "ranks", "relevance", "weights"}, default="auto"
        How `fit` and `score` interpret `y`.

        - ``"ranks"``: positions of shape (n_samples, r), 1 = best. Only their order counts. The
          relevance of a label is r - rank; tied labels share their best position. For a binary loss
          with a cutoff q and no threshold, labels with fewer than q labels above are relevant.
        - ``"relevance"``: numbers of shape (n_samples, r), larger is better. `predict` then returns
          r - rank, which is also larger for better labels.
        - ``"weights"``: shape (n_samples, r, r), where ``y[n, i, j]`` is the weight of the
          preference for label i over j. Only for ``"pd"`` and ``"pd_by_scores"``.
        - ``"auto"``: ``"ranks"`` if `y` has two dimensions, ``"weights"`` if it has three, with a
          warning if `y` does not look like ranks.

        The column names of a data frame are the names of the labels. Ranks can also be orders of
        names: ``"b > a = c"``, or lists of names, best first.
    unlisted : {"auto", "ignore", "last"}, default="auto"
        Meaning of a label without a rank (NaN).

        - ``"last"``: it is below all labels with a rank, as in a list of favourites.
        - ``"ignore"``: its place is unknown.
        - ``"auto"``: as ``"ignore"``, with a warning if rows may list only their first places.
    missing : {"impute", "pairwise"}, default="impute"
        How to treat rows that do not judge every pair of labels. ``"pairwise"`` fits one regressor
        per pair, to the rows that judge it. ``"impute"`` replaces missing targets with predictions
        of these regressors, and then fits one multi-output regressor. If the number of rows times
        pairs exceeds 50,000, the default regressor predicts the missing targets of all pairs
        jointly, in a third to a fifth of the time.
    random_state : int, RandomState instance or None, default=None
        Seed for each ``random_state`` parameter of the clone of the regressor.
    n_jobs : int, default=None
        Number of jobs to decode rows, for losses on pairs.

    Attributes
    ----------
    regressor_ : estimator or None
        The fitted regressor with all outputs; None if `regressors_` is not None.
    regressors_ : list of estimator or None
        If pairs are missing and ``missing="pairwise"``: one regressor per pair i < j. A pair that
        no row judges has None, and the prediction 0.
    cyclic_weight_ : float
        Factor, in [0, 1], for the cyclic part of predicted preferences; see Notes. It is 1 without
        held-out predictions.
    by_scores_ : bool
        Whether the regressor learns one score per label, and not one preference per pair.
    loss_, decoder_
        The loss, with its data-dependent parameters set, and the decoder.
    n_labels_, labels_
        Number of labels r, and their names, or 0 to r - 1 if `y` has no names.
    n_features_in_, feature_names_in_
        Number of columns of X, and their names if they are strings.

    Notes
    -----
    The ranker is calibrated over ``loss_.calibrated_over`` if the regressor estimates conditional
    means and the decoder is exact. For ``"pd"``, these are all distributions of complete rankings
    (theorem 3 of Ramaswamy et al., 2013, in :doc:`/theory`).

    Missing entries are ignored pair by pair. This is valid if, given X, the ranking does not
    influence which entries are missing; with one score per label, all entries must also be missing
    equally often. Rows with an undefined loss are left out.

    With ``"pd"``, predictions are differences of scores s_i - s_j plus an orthogonal cyclic part
    [1]_, which is mostly noise with few rows. If the regressor has a method ``fit_held_out``, like
    the default, `fit` chooses `cyclic_weight_` by least squares from held-out predictions. With 0,
    every decoder sorts by scores. The weight approaches 1 as the predictions approach the
    conditional means, and calibration still holds.

    With ``loss="pd"``, ``decoder="auto"`` and more than 20 labels, ``by_scores_`` is True: labels
    are sorted by their mean net preferences, as with ``loss="pd_by_scores"`` (:ref:`many-labels`).

    References
    ----------
    .. [1] X. Jiang, L.-H. Lim, Y. Yao and Y. Ye (2011). Statistical ranking and combinatorial Hodge
       theory. Mathematical Programming 127.

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

    __reduce__ = _estimators.reduce_with_versions
    __sklearn_clone__ = _estimators.clone_with_catboost

    n_features_in_: int
    feature_names_in_: NDArray[Any]
    _parameter_constraints: dict[str, list[Any]] = {
        "regressor": [None, HasMethods(["fit", "predict"])],
        "loss": [str, Loss],
        "decoder": [str, HasMethods(["decode"])],
        "y_type": [StrOptions({"auto", "ranks", "relevance", "weights"})],
        "unlisted": [StrOptions({"auto", "ignore", "last"})],
        "missing": [StrOptions({"impute", "pairwise"})],
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
        unlisted: str = "auto",
        missing: str = "impute",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.regressor = regressor
        self.loss = loss
        self.decoder = decoder
        self.y_type = y_type
        self.unlisted = unlisted
        self.missing = missing
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _validate_params(self) -> None:
        refuse_loss(self.regressor)
        super()._validate_params()

    # ---------------------------------------------------------------- fit

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the regressor to the targets of the loss.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Features, in any form that the regressor supports.
        y : {array-like, data frame} of shape (n_samples, r), or (n_samples, r, r)
            Ranks, orders of names, relevance or preference weights; see `y_type`. With ``"pd"`` and
            ``"pd_by_scores"``, a label with NaN is not judged (but see `unlisted`), nor is a pair
            with both weights 0. Two labels of equal rank are tied: neither is preferred.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights.

        Returns
        -------
        self : CalibratedLabelRanker
            The fitted ranker.
        """
        loss = get_loss(self.loss)
        _features.warn_of_other_order(X=X, y=y, sample_weight=sample_weight)
        X = self._read_table(X, reset=True)
        kind, Y = self._read_labels_of_fit(y, X.shape[0])
        weight = check_weight(sample_weight, X.shape[0])
        self.n_labels_ = r = Y.shape[1]
        self.decoder_ = get_decoder(self.decoder, loss.space)
        self.by_scores_ = _outputs.goes_by_scores(loss, self.decoder, r)
        if self.by_scores_:
            self.decoder_ = Sort()
        self.loss_, values, known, keep = _outputs.make_label_targets(
            loss, kind, Y, self.by_scores_
        )
        self.regressor_: Any = None
        self.regressors_: list[Any] | None = None
        self.cyclic_weight_ = 1.0
        if r == 1:  # no targets, but the regressor checks X
            self.regressor_, _ = self._fit_one(X, values, weight)
            return self
        if weight is not None:
            keep = keep & (weight > 0)
        if not keep.any():
            raise ValueError(
                "No row of positive weight has a target: y judges no pair of labels, or "
                f"{type(loss).__name__} is undefined. If rows list only their favourite "
                "labels, pass unlisted='last'."
            )
        rows = np.flatnonzero(keep)
        weight = None if weight is None else weight[rows]
        largest = float(np.abs(values[rows]).max())
        check_unit(largest)
        self._unit = target_unit(largest)
        targets = values[rows] / self._unit
        if known is None:
            self._fit_all(_features.take_rows(X, rows), targets, weight)
        else:
            self._fit_known(_features.take_rows(X, rows), targets, known[rows], weight)
        return self

    def _read_labels_of_fit(self, y: Any, n_rows: int) -> tuple[str, Floats]:
        """Return the kind and the values of `y`, and set the attributes of the labels."""
        numbers, self._names = _label_rankings.read_names(y, self.y_type)
        kind, Y = _label_rankings.read_label_rankings(numbers, n_rows, self.y_type)
        self.labels_ = np.arange(Y.shape[1]) if self._names is None else self._names
        self._container = _features.container_of(y)
        are_orders = numbers is not y
        if kind == "ranks" and self.y_type == "auto" and not are_orders:
            _label_rankings.warn_of_ratings(Y)
        if kind == "ranks" and self.unlisted == "auto":
            _label_rankings.warn_of_tails(Y, are_orders)
        return kind, _label_rankings.place_unlisted(kind, Y, self.unlisted)

    def _fit_known(self, X: Any, targets: Floats, known: Bools, weight: Floats | None) -> None:
        """Fit to the targets of pairs or labels; targets may be missing."""
        many = self.by_scores_ or targets.size > _MOST_PAIRS
        if many and self.missing == "impute" and self._holds_out() and not known.all():
            targets = _outputs.impute_together(self._fit_one, X, targets, known, weight)
        elif not known.all():
            regressors = _outputs.fit_each(self._fit_one, X, targets, known, weight)
            if self.missing == "pairwise":
                self.regressors_ = regressors
                return
            targets = np.where(known, targets, _outputs.predict_each(regressors, X))
        if not self.loss_.space.is_pairwise:
            targets = _outputs.net_scores(targets, self.n_labels_)
        self._fit_all(X, targets, weight, known)

    def _holds_out(self) -> bool:
        return self.regressor is None or hasattr(self.regressor, "fit_held_out")

    def _fit_all(
        self, X: Any, targets: Floats, weight: Floats | None, judged: Bools | None = None
    ) -> None:
        """Fit one regressor to all targets, and choose the weight of the cyclic part."""
        self.regressor_, held_out = self._fit_one(X, targets, weight)
        of_pairs = self.loss_.space == PAIRS and not self.by_scores_
        if held_out is not None and of_pairs and self.n_labels_ > 2:
            self.cyclic_weight_ = _outputs.confirmed_share(
                held_out, targets, self.n_labels_, judged, weight
            )

    def _fit_one(self, X: Any, targets: Floats, weight: Floats | None) -> tuple[Any, Any]:
        """Fit a clone of the regressor; return it and its held-out predictions, or None."""
        regressor, weights = _outputs.prepare_regressor(
            self.regressor, X, weight, self.random_state
        )
        y = targets[:, 0] if targets.shape[1] == 1 else targets
        if hasattr(regressor, "fit_held_out"):
            return regressor, regressor.fit_held_out(X, y, **weights)
        try:
            return _outputs.fit_outputs(regressor, X, y, weights), None
        except (TypeError, ValueError) as error:
            note_columns(error, X)
            raise

    def _read_table(self, X: Any, reset: bool = False) -> Any:
        """Check the number and the names of the columns. The regressor checks the values."""
        table = _features.check_features(X)
        if reset:
            validate_data(self, X=table, skip_check_array=True)
        else:
            check_columns(self, table)
        return _estimators.readable_table(self.regressor, table)

    # ---------------------------------------------------------------- predict

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the ranker, or of a nested object as ``regressor__<parameter>``.

        Parameters
        ----------
        **params : dict
            Names and values of parameters.

        Returns
        -------
        self : CalibratedLabelRanker
        """
        check_nested(self, params, regressor="sklearn_rankcal.label_ranking.BlendedRegressor()")
        return super().set_params(**params)

    def set_output(self, *, predict: str | None = None) -> Self:
        """Set the output container of `predict`.

        Parameters
        ----------
        predict : {"default", "pandas", "polars"}, default=None
            ``"default"`` means a data frame if `y` was one in `fit`, otherwise an array. None
            changes nothing.

        Returns
        -------
        self : CalibratedLabelRanker
            The ranker.
        """
        check_choice(predict or "default", "predict", ("default", "pandas", "polars"))
        if predict is not None:  # `clone` copies this attribute
            self._sklearn_output_config = {"predict": predict}
        return self

    def predict(self, X: Any) -> Any:
        """Predict a ranking of the labels for each row, in the direction of `y`.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            The columns of `fit`.

        Returns
        -------
        ranking : ndarray or data frame of shape (n_samples, r)
            The position of each label, 1 = best; with ``y_type="relevance"``, r minus the position.
            If predictions tie, the label with the smaller index comes first. A data frame with the
            columns ``labels_`` if `y` was one; see `set_output`.
        """
        ranks = self._predict_ranks(X)
        values = self.n_labels_ - ranks if self.y_type == "relevance" else ranks
        chosen = getattr(self, "_sklearn_output_config", {}).get("predict", "default")
        container = self._container if chosen == "default" else chosen
        return (
            values
            if container is None
            else _label_rankings.make_frame(values, self.labels_, container, X)
        )

    def predict_order(self, X: Any) -> NDArray[Any]:
        """Predict the names of the labels in order, best first.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            The columns of `fit`.

        Returns
        -------
        order : ndarray of shape (n_samples, r)
            The entries of ``labels_``, best first.

        Examples
        --------
        >>> import pandas as pd
        >>> from sklearn.linear_model import Ridge
        >>> from sklearn_rankcal import CalibratedLabelRanker
        >>> y = pd.DataFrame({"tea": [1, 2], "milk": [2, 1], "juice": [3, 3]})
        >>> CalibratedLabelRanker(Ridge()).fit([[0], [1]], y).predict_order([[0]]).tolist()
        [['tea', 'milk', 'juice']]
        """
        return self.labels_[np.argsort(self._predict_ranks(X), axis=1)]

    def _predict_ranks(self, X: Any) -> Ints:
        """Return the position of each label, 1 = best."""
        u = self._predict_targets(X)
        if self.n_labels_ == 1:
            return np.ones((len(u), 1), dtype=np.int64)
        queries = Queries.uniform(len(u), self.n_labels_)
        if self.by_scores_ or not self.loss_.space.is_pairwise:
            found = self.decoder_.decode(tie_rounded(u.ravel(), queries), queries)
        elif self.cyclic_weight_ == 0 and sorts_scores(self.decoder_):
            scores = tie_rounded(_outputs.net_scores(u, self.n_labels_).ravel(), queries)
            found = Sort().decode(scores, queries)
        else:
            found = self.decoder_.decode(u.ravel(), queries, n_jobs=self.n_jobs)
        if not hasattr(found, "ranks"):
            raise not_a_result(self.decoder_, found)
        ranks: Ints = found.ranks
        return ranks.reshape(-1, self.n_labels_)

    def _predict_targets(self, X: Any) -> Floats:
        check_is_fitted(self)
        X = self._read_table(X)
        if self.regressors_ is not None:
            u = _outputs.predict_each(self.regressors_, X) * self._unit
            return u if self.loss_.space.is_pairwise else _outputs.net_scores(u, self.n_labels_)
        u = np.asarray(self.regressor_.predict(X), dtype=np.float64).reshape(X.shape[0], -1)
        if self.n_labels_ == 1:
            return u[:, :0]
        if self.cyclic_weight_ < 1:
            u -= (1 - self.cyclic_weight_) * _outputs.cyclic_part(u, self.n_labels_)
        return u * self._unit

    @available_if(predicts_pairs)
    def predict_preferences(self, X: Any) -> Floats:
        """Predict the matrices of pairs of labels that the decoder converts to rankings.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            The columns of `fit`.

        Returns
        -------
        matrices : ndarray of shape (n_samples, r, r)
            One matrix per row of X, as in `CalibratedRanker.predict_preferences`, with labels
            instead of documents.
        """
        u = self._predict_targets(X)
        if self.by_scores_:
            return u[:, :, None] - u[:, None, :]
        return self.loss_.space.matrices(u, self.n_labels_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the mean of Kendall's tau over rows, or of the measure of the loss if not pd.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`. Named columns of y may be in any order.

        Returns
        -------
        score : float
            Tau is 1 - 2 c, where c is the share of the judged preference weight that the ranking
            contradicts. It can be 1 even if `y` has ties. Rows are weighted by their judged weight,
            as in `fit`, unless the loss has ``equal_queries=True``. Rows with an undefined measure
            are left out. If the measure is undefined on all rows, the score is NaN, with a warning.
        """
        _features.warn_of_other_order(X=X, y=y, sample_weight=sample_weight)
        ranks = self._predict_ranks(X)
        kind, Y = _label_rankings.read_as_in_fit(y, len(ranks), self)
        if Y.shape[1] != self.n_labels_:
            raise ValueError(f"y has {Y.shape[1]} labels, but fit saw {self.n_labels_}.")
        weight = check_weight(sample_weight, len(ranks))
        values, factors = np.empty(len(ranks)), np.ones(len(ranks))
        # Labels with missing entries become preferences, at about 50 bytes per pair.
        for rows in gen_batches(len(ranks), rows_per_block(50 * self.n_labels_**2, 1 << 28)):
            labels, _ = _outputs.read_labels(kind, Y[rows], self.loss_)
            queries = Queries.uniform(*ranks[rows].shape)
            values[rows] = self.loss_.metric(labels, ranks[rows].ravel(), queries)
            factor = self.loss_.query_weight(labels, queries)
            factors[rows] = 1.0 if factor is None else factor
        if isinstance(self.loss_, PD | PDByScores):
            values = 2 * values - 1
        each = Queries.uniform(len(ranks), 1)  # each row has its own weight
        factor = None if factor is None else factors
        return mean_over_queries(values, each, weight, type(self.loss_).__name__, factor)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "ranker"
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        inner = BlendedRegressor() if self.regressor is None else self.regressor
        of_inner = _estimators.tags_of(inner)
        tags.non_deterministic = of_inner.non_deterministic
        tags.input_tags.allow_nan = of_inner.input_tags.allow_nan
        tags.input_tags.sparse = of_inner.input_tags.sparse
        try:
            positive = self.y_type == "relevance" and get_loss(self.loss).non_negative
        except (TypeError, ValueError):
            return tags  # fit reports a bad loss; tags must not raise
        tags.target_tags.positive_only = positive
        return tags
