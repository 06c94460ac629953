"""The attribute `calibrated_over_`: over which distributions a fitted ranker is calibrated.

The theorem of a loss assumes that predictions estimate the expected targets, and that rankings are
optimal for the predictions. A regressor of medians, for example, violates the first assumption, and
a decoder that is not exact violates the second.
"""

from __future__ import annotations

from typing import Any

from sklearn.base import is_classifier

from sklearn_rankcal.decoders import AveragePrecisionDecoder, PreferenceDecoder, Sort
from sklearn_rankcal.losses import Loss
from sklearn_rankcal.models import Model

NOT_LEARNED = (
    "no distributions: neither the model nor a member of it learns the targets of the loss"
)
_NO_CYCLE = "the distributions whose expected preferences have no cycle"
_LOCAL = "no distributions in general: a local search can miss the best ranking of the predictions"
#: Sentence for each decoder class and method. "{}" is the sentence of the loss.
_DECODED = {
    (Sort, None): "{}",
    (PreferenceDecoder, "exact"): "{}",
    (PreferenceDecoder, "auto"): (
        "{}, which decoder='auto' does unless more than 16 documents form cycles"
    ),
    (PreferenceDecoder, "local_search"): _LOCAL,
    (PreferenceDecoder, "greedy_dag"): (
        f"{_NO_CYCLE} (Ramaswamy et al., 2013, theorem 7), by decoder='greedy_dag'"
    ),
    (PreferenceDecoder, "copeland"): (
        f"{_NO_CYCLE} and no tie, as decoder='copeland' is exact only there"
    ),
    (PreferenceDecoder, "sort"): f"{_NO_CYCLE} and no tie, as decoder='sort' is exact only there",
    (PreferenceDecoder, "borda"): (
        "no distributions in general: decoder='borda' is not exact, even without cycles"
    ),
    (AveragePrecisionDecoder, "exact"): "{}",
    (AveragePrecisionDecoder, "auto"): "{}, which decoder='auto' does for up to 16 documents",
    (AveragePrecisionDecoder, "local_search"): _LOCAL,
    (AveragePrecisionDecoder, "diagonal"): (
        "the distributions of P_reinforce (Ramaswamy et al., 2013, theorem 4), by "
        "decoder='diagonal'"
    ),
}

#: Parameters that name the loss of a regressor, and values for which the conditional mean minimises
#: the expected loss. Other values estimate medians, quantiles or the like.
_LOSS_PARAMETERS = ("loss", "criterion", "objective", "loss_function")
_OF_MEANS = {
    "binary:logistic", "count:poisson", "cross_entropy", "deprecated", "friedman_mse", "gamma",
    "l2", "l2_root", "mean_squared_error", "mse", "poisson", "reg:gamma", "reg:linear",
    "reg:logistic", "reg:squarederror", "reg:tweedie", "regression", "regression_l2", "rmse",
    "root_mean_squared_error", "squared_error", "tweedie", "xentropy",
}  # fmt: skip
#: Regressors of scikit-learn that never estimate means.
_NOT_OF_MEANS = {
    "AdaBoostRegressor", "HuberRegressor", "LinearSVR", "NuSVR", "PassiveAggressiveRegressor",
    "QuantileRegressor", "RANSACRegressor", "SVR", "TheilSenRegressor",
}  # fmt: skip
#: Transformers of targets that preserve means.
_AFFINE = ("NoneType", "MaxAbsScaler", "MinMaxScaler", "RobustScaler", "StandardScaler")
_LIBRARIES = ("sklearn", "lightgbm", "xgboost", "catboost")


def calibrated_over(loss: Loss, decoder: Any, model: Model) -> str:
    """Return the distributions over which a combination is calibrated, or what prevents it."""
    if not model.learns_targets:
        return NOT_LEARNED  # a stack whose members all have other targets
    for part in model.learners():
        if wrong := _estimates_no_mean(part):
            return f"no distributions in general: {wrong} does not estimate expected targets"
    known = _DECODED.get((type(decoder), getattr(decoder, "method", None)))
    sentence = getattr(decoder, "calibrated_over", known)
    if sentence is None:
        return f"{loss.calibrated_over}, if {type(decoder).__name__} finds the best ranking"
    shrunken = getattr(loss, "_as_shrunken", str)
    return sentence.format(loss.calibrated_over) if "{}" in sentence else shrunken(sentence)


def _estimates_no_mean(regressor: Any) -> str:
    """Return the name of a regressor that does not estimate conditional means, else ""."""
    kind = type(regressor)
    if is_classifier(regressor):
        return ""
    names = {f"{each.__module__.partition('.')[0]}.{each.__name__}" for each in kind.__mro__}
    if names & {f"sklearn.{name}" for name in _NOT_OF_MEANS}:
        return kind.__name__
    parameters = regressor.get_params(deep=False) if hasattr(regressor, "get_params") else {}
    if "sklearn.TransformedTargetRegressor" in names:
        shape = type(parameters["transformer"]).__name__
        changed = parameters["func"] is not None or shape not in _AFFINE
        return f"{kind.__name__} with changed targets" if changed else ""
    if not names & {f"{library}.{kind.__name__}" for library in _LIBRARIES}:
        return ""  # losses of unknown libraries are trusted
    for name in _LOSS_PARAMETERS:
        value = parameters.get(name)
        # CatBoost appends parameters after a colon: "Tweedie:variance_power=1.5"
        if isinstance(value, str) and value.lower().partition(":var")[0] not in _OF_MEANS:
            return f"{kind.__name__}({name}={value!r})"
    return ""
