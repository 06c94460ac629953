"""The outputs of a label ranker: the targets of each sample, and fits of any regressor to them.

A loss on pairs has one target for each pair of labels. With many labels, the default loss learns
`scores_of_labels` instead, one target for each label. Predictions u (n, n_pairs) are the sum of
differences of scores and an orthogonal cyclic part, which scores cannot express.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils import get_tags

from sklearn_rankcal.label_ranking._blend import BlendedRegressor
from sklearn_rankcal.labels._label_rankings import labels_of_rankings
from sklearn_rankcal.losses import PD, Loss, PDByScores
from sklearn_rankcal.models._column_parameters import match_parameters
from sklearn_rankcal.models._document import weight_arguments
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import PAIRS, flat_targets
from sklearn_rankcal.utils._estimators import clone, set_random_states
from sklearn_rankcal.utils._features import take_rows
from sklearn_rankcal.utils._messages import check_count, counted
from sklearn_rankcal.utils._numbers import Bools, Floats

#: With more labels than this, the default loss and decoder learn a score per label: time and memory
#: of pairs grow with the square of the number of labels.
MAX_LABELS_BY_PAIRS = 20
FitOne = Callable[[Any, Floats, Floats | None], tuple[Any, Any]]
N_IMPUTATIONS = 2  # fits of `impute_together`


class LabelTargets(NamedTuple):
    """The targets of a regressor, one row per sample."""

    loss: Loss  # with data-dependent parameters set
    values: Floats  # of shape (n_samples, n_targets); unknown targets have arbitrary values
    known: Bools | None  # which targets are known; None means all
    defined: Bools  # whether the row has a known target, of shape (n_samples,)


def goes_by_scores(loss: Loss, decoder: Any, r: int) -> bool:
    """Whether scores are learned instead of pairs, because there are many labels."""
    plain = isinstance(loss, PD) and loss.pair_weight == "binary" and not loss.equal_queries
    return plain and isinstance(decoder, str) and decoder == "auto" and r > MAX_LABELS_BY_PAIRS


def make_label_targets(loss: Loss, kind: str, Y: Floats, by_scores: bool) -> LabelTargets:
    """Make the targets of a loss, or the scores of the labels."""
    r = Y.shape[1]
    if by_scores:
        scores = scores_of_labels(kind, Y)
        known = ~np.isnan(scores)
        # A row without preferences has no information, whether its zeros are known or not.
        defined = known.any(axis=1) & ((scores != 0) | ~known).any(axis=1)
        return LabelTargets(clone(loss), np.where(known, scores, 0.0), known, defined)
    if kind == "ranks":
        loss = _with_threshold(loss, r)
    labels, judged = read_labels(kind, Y, loss)
    loss = loss.resolve(labels)
    if r == 1:
        return LabelTargets(loss, np.zeros((len(Y), 1)), None, np.ones(len(Y), dtype=bool))
    queries = Queries.uniform(len(Y), r)
    defined = loss.defined(labels, queries)
    if judged is not None:  # if the judged pairs are tied, other pairs may not be
        defined |= judged.any(axis=1) & ~judged.all(axis=1)
    if not defined.any():
        return LabelTargets(loss, np.zeros((len(Y), 1)), None, defined)
    # differences of pairs, or sums of them, allow missing pairs
    sums_pairs = isinstance(loss, PDByScores) and loss.score_function == "borda"
    of_pairs = judged is not None and (isinstance(loss, PD) or sums_pairs)
    made = (loss.differences if of_pairs else loss.training_targets)(labels, queries)
    values = flat_targets(made).reshape(len(Y), -1)
    return LabelTargets(loss, values, judged if of_pairs else None, defined)


def scores_of_labels(kind: str, Y: Floats) -> Floats:
    """Return the mean net preference (n, r) for each label from ranks, relevance or weights.

    These are the targets of `PDByScores`: the mean over all r labels of +1 if the label is
    preferred, -1 if the opponent is preferred, and 0 for the label itself. If a row compares a
    label with some labels only, it is (r - 1) / r times the mean over these. This is unbiased if
    all labels are missing equally often, independently of the ranking. NaN for a label without
    comparisons.
    """
    r = Y.shape[1]
    if kind == "weights":
        weights = np.where(np.eye(r, dtype=bool), 0.0, Y)
        turned = weights.transpose(0, 2, 1)
        net, others = (weights - turned).sum(axis=2), (weights + turned > 0).sum(axis=2)
    else:
        missing = np.isnan(Y)
        positions = rankdata(np.where(missing, np.inf, Y if kind == "ranks" else -Y), axis=1)
        size = r - missing.sum(axis=1, keepdims=True)
        # The number of labels below minus above a label; a tie counts half as above.
        net = size + 1 - 2 * positions
        others = np.where(missing, 0, size - 1)
    share: Floats = np.where(others > 0, net, np.nan) / np.maximum(others, 1)
    return share * ((r - 1) / r)


def read_labels(kind: str, Y: Floats, loss: Loss) -> tuple[Any, Bools | None]:
    """Convert labels to the input of losses; also return which pairs are judged (None: all)."""
    return labels_of_rankings(kind, Y, getattr(loss, "pair_weight", None), type(loss).__name__)


def _with_threshold(loss: Loss, r: int) -> Loss:
    """Set a missing threshold of a binary loss on ranks, from its cutoff."""
    if not loss.needs_threshold:
        return loss
    cutoff = getattr(loss, "k", None)
    check_count(cutoff, "k", or_none=True)
    kind = type(loss).__name__
    if cutoff is None:
        raise ValueError(
            f"Ranks do not determine which labels are relevant to {kind}. Pass "
            f"{kind}(threshold=t) to count labels with r - rank >= t as relevant; "
            f"threshold={r - 1} means only the first label. Or pass y_type='relevance', with "
            "0 and 1 in y."
        )
    if cutoff >= r > 1:
        raise ValueError(
            f"With {kind}(k={cutoff}), the first {counted(cutoff, 'label')} are relevant, "
            f"but there are only {r} labels: all rankings are equally good. Use a smaller k "
            "or a threshold."
        )
    return clone(loss).set_params(threshold=r - cutoff)


# ---------------------------------------------------------------- the cyclic part


def net_scores(u: Floats, r: int) -> Floats:
    """Scores s (n, r): s_i is the mean of the predictions u_ij over all j, with u_ii = 0."""
    return PAIRS.matrices(u, r).sum(axis=2) / r


def cyclic_part(u: Floats, r: int) -> Floats:
    """Subtract the closest differences of scores s_i - s_j from predictions (n, n_pairs)."""
    scores = net_scores(u, r)
    i, j = np.triu_indices(r, 1)
    return u - (scores[:, i] - scores[:, j])


def confirmed_share(
    held_out: Floats,
    targets: Floats,
    r: int,
    judged: Bools | None = None,
    weight: Floats | None = None,
) -> float:
    """Return the factor, in [0, 1], for the cyclic part of predictions that fits the targets best.

    Noise in the predictions also has a cyclic part, but held-out predictions and targets (n,
    n_pairs) do not share it. Rows of NaN are left out, and only `judged` pairs count.
    """
    rows = np.isfinite(held_out).all(axis=1)
    if r < 3 or not rows.any():
        return 1.0
    held_out = held_out[rows]
    cyclic = cyclic_part(held_out, r)
    counts = np.ones_like(cyclic) if judged is None else judged[rows].astype(np.float64)
    if weight is not None:
        counts *= (weight[rows] / weight[rows].max())[:, None]
    size = (counts * cyclic**2).sum()
    if size <= 1e-20 * (counts * held_out**2).sum():  # only rounding errors
        return 1.0
    gain = (counts * cyclic * (targets[rows] - (held_out - cyclic))).sum()
    return float(np.clip(gain / size, 0, 1))


def prepare_regressor(
    regressor: Any, X: Any, weight: Floats | None, random_state: Any
) -> tuple[Any, dict[str, Any]]:
    """Return a clone for the table X, and the keyword arguments for the weights of its fit.

    None means `BlendedRegressor`.
    """
    prepared = BlendedRegressor() if regressor is None else clone(regressor)
    match_parameters(prepared, X)
    weights = weight_arguments(prepared, weight, is_default=regressor is None)
    return set_random_states(prepared, random_state), weights


def fit_outputs(regressor: Any, X: Any, y: Floats, arguments: dict[str, Any]) -> Any:
    """Fit a regressor to y of shape (n_samples,) or (n_samples, n_outputs), and return it.

    It is wrapped in `MultiOutputRegressor` if it does not support several outputs. Its tag does not
    decide this: searches, bagging, neural networks and most custom regressors lack the tag.
    """
    if y.ndim == 1 or get_tags(regressor).target_tags.multi_output:
        return regressor.fit(X, y, **arguments)
    # Regressors of one output reject y before they compute anything, with errors of any class, such
    # as CatBoostError. With any other reason for the error, each single output raises it again.
    with contextlib.suppress(Exception):
        return clone(regressor).fit(X, y, **arguments)
    return MultiOutputRegressor(regressor).fit(X, y, **arguments)


def fit_each(
    fit_one: FitOne, X: Any, targets: Floats, known: Bools, weight: Floats | None
) -> list[Any]:
    """Fit a regressor to each target, on the rows with a known target; None without such rows."""
    return [
        fit_one(
            take_rows(X, np.flatnonzero(rows)),
            target[rows, None],
            None if weight is None else weight[rows],
        )[0]
        if rows.any()
        else None
        for target, rows in zip(targets.T, known.T, strict=True)
    ]


def predict_each(regressors: list[Any], X: Any) -> Floats:
    """Predict one column with each regressor; 0 without a regressor."""
    return np.column_stack(
        [
            np.zeros(X.shape[0]) if one is None else np.asarray(one.predict(X)).reshape(-1)
            for one in regressors
        ]
    )


def impute_together(
    fit_one: FitOne, X: Any, targets: Floats, known: Bools, weight: Floats | None
) -> Floats:
    """Replace unknown targets with held-out predictions of a joint fit.

    With many targets, this is much faster than one regressor per target.
    """
    filled = fill_unknown(targets, known, weight)
    for _ in range(N_IMPUTATIONS):
        regressor, held_out = fit_one(X, filled, weight)
        without = np.isnan(held_out).any(axis=1)  # few rows, or rows outside the random subset
        if without.any():
            held_out[without] = regressor.predict(take_rows(X, np.flatnonzero(without)))
        filled = fill_unknown(targets, known, weight, held_out)
    return filled


def fill_unknown(
    targets: Floats, known: Bools, weight: Floats | None, predicted: Floats | None = None
) -> Floats:
    """Return targets with unknown values replaced by predictions, or at first by means.

    The predictions come from a fit to such targets, and are therefore shrunk towards the means. A
    common factor, by least squares over the known targets, corrects this.
    """
    counts = known if weight is None else known * weight[:, None]
    mean = (counts * targets).sum(axis=0) / np.maximum(counts.sum(axis=0), np.finfo(float).tiny)
    if predicted is None:
        return np.where(known, targets, mean)
    deviation = predicted - mean
    size = float((counts * deviation**2).sum())
    gain = float((counts * deviation * (targets - mean)).sum())
    factor = max(gain / size, 0.0) if size > 0 else 0.0
    return np.where(known, targets, mean + factor * deviation)
