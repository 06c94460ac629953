"""The calls that are drawn, and the public names they cover."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import (
    clicks,
    costs,
    decoders,
    judgements,
    labels,
    metrics,
    processes,
    public,
    rankers,
    readers,
    surrogates,
    theory,
    tools,
    trec,
)


@dataclass(frozen=True)
class Call:
    """A function of a `Case`, how often it is drawn, and the public names it covers."""

    run: Callable
    weight: float
    covers: tuple[str, ...] = ()

    @property
    def name(self):
        return f"{self.run.__module__.rsplit('.', 1)[-1]}.{self.run.__name__}"


CALLS = [
    Call(metrics.value, 20, tuple(metrics.COVERS)),
    Call(metrics.bad_input, 8),
    Call(metrics.bad_parameter, 4),
    Call(metrics.relations, 10),
    Call(metrics.evaluate, 2),
    Call(labels.relevance, 6, labels.COVERS_RELEVANCE),
    Call(labels.bad_relevance, 4),
    Call(labels.preferences, 5, labels.COVERS_PREFERENCES),
    Call(labels.bad_preferences, 3),
    Call(labels.rankings, 4, labels.COVERS_RANKINGS),
    Call(labels.bad_rankings, 2),
    Call(labels.helpers, 2, ("order_to_ranks", "ranks_to_order", "sizes_to_groups")),
    Call(labels.bad_helpers, 2),
    Call(clicks.logs, 4, clicks.COVERS),
    Call(clicks.bad_logs, 3),
    Call(readers.edges, 5, ("read_edges",)),
    Call(readers.bad_edges, 2),
    Call(readers.preflib, 3),
    Call(readers.letor, 3, ("load_letor",)),
    Call(readers.hostile_file, 4),
    Call(trec.tables, 3, trec.COVERS),
    Call(trec.bad_tables, 2),
    Call(trec.runs, 3, trec.COVERS_RUNS),
    Call(judgements.formats, 5, judgements.COVERS_FORMATS),
    Call(judgements.bad_formats, 4),
    Call(judgements.leaderboard, 4, judgements.COVERS_AGGREGATE),
    Call(judgements.symmetry, 3),
    Call(judgements.reordered, 1),
    Call(judgements.many_boards, 1),
    Call(judgements.unanimous, 2),
    Call(judgements.bad_leaderboard, 2),
    Call(decoders.preferences, 4, ("decode_preferences", "DecodeResult")),
    Call(decoders.average_precision, 2, ("decode_average_precision",)),
    Call(decoders.exact_votes, 0.05),
    Call(decoders.symmetric_votes, 1),
    Call(decoders.bad_matrix, 2),
    Call(decoders.scores, 4, ("decode_scores",)),
    Call(decoders.bad_scores, 2),
    Call(decoders.objects, 2, decoders.COVERS_OBJECTS),
    Call(decoders.rules, 3, ("Rules", "Quota")),
    Call(decoders.bad_rules, 1),
    Call(decoders.tiers, 1, ("decode_tiers", "Tiers")),
    Call(decoders.exposure, 0.5, ("exposure_policy", "ExposurePolicy")),
    Call(rankers.best, 3, rankers.COVERS),
    Call(rankers.twins, 1),
    Call(rankers.validation, 1),
    Call(rankers.same, 5, rankers.COVERS_MODELS),
    Call(rankers.fits_alike, 2),
    Call(rankers.monotone, 1),
    Call(rankers.preferences, 2),
    Call(rankers.bad_fit, 3),
    Call(rankers.label_ranker, 2, ("CalibratedLabelRanker",)),
    Call(surrogates.values, 3, surrogates.COVERS),
    Call(surrogates.large_query, 0.3),
    Call(surrogates.linear_ranker, 2),
    Call(surrogates.regrets, 1, surrogates.COVERS_REGRETS),
    Call(surrogates.objectives, 2, surrogates.COVERS_OBJECTIVES),
    Call(tools.scorer, 2, ("get_ranking_scorer",)),
    Call(tools.cut_queries, 0.5),
    Call(tools.scores_of_cuts, 2, ("CutQueriesWarning",)),
    Call(tools.folds, 2, ("QueryKFold",)),
    Call(tools.comparison, 1, ("compare_rankings", "Comparison")),
    Call(tools.systems, 0.5),
    Call(tools.out_of_fold, 0.5, ("query_cross_val_predict",)),
    Call(tools.scores, 0.5, tools.COVERS_SCORES),
    Call(tools.context, 2, ("context_columns",)),
    Call(tools.shares, 2, ("context_columns",)),
    Call(tools.importances, 0.5, ("permutation_importance",)),
    Call(tools.bootstrap, 2),
    Call(tools.names, 2, ("get_loss",)),
    Call(theory.conditions, 3, theory.COVERS),
    Call(theory.rankings, 2, ("bayes_ranking", "ranking_regret", "ranking_risk")),
    Call(theory.bounds, 1, ("regret_bound",)),
    Call(theory.counterexamples, 0.1, ("find_counterexample", "Counterexample")),
    Call(theory.bad_worlds, 1),
    Call(costs.mean_cost, 2, ("mean_cost_loss",)),
    Call(costs.factored, 1, ("LowRankLoss",)),
    Call(costs.classifier, 1, ("LowRankClassifier", "make_cost_scorer")),
    Call(costs.bad_costs, 2),
    Call(processes.exits, 0.2),
]
_CHECKS = "checks of estimators and losses, run by the tests of estimators"
_PLOT = "draws a picture: tests/plotting/test_plotting.py"
_DASK = "needs an optional library, and takes a second: tests/test_dask_*.py"
_DASK_FILES = "needs an optional library, and takes a second: tests/dask/test_dask_reading.py"
_BASE = "a base class for losses of a user's own: check_loss tests its subclasses"
#: What extensions receive: drawn through everything that is built on it.
_ROOMS = (public.targets, public.queries)
_DRAWN = {name for call in CALLS for name in call.covers}
#: Public names that no call draws, and why.
EXEMPT = {
    **{
        name: f"what extensions use of {room.__name__}, drawn through what is built on it"
        for room in _ROOMS
        for name in room.__all__
        if name not in _DRAWN
    },
    "__version__": "a constant",
    "RiskControlledCutoff": "test_cutoff.py has each query of drawn bags as the new one",
    "Model": "drawn through rankers",
    "Training": "drawn through rankers",
    "MissingGroupsWarning": "a warning: tests/rankers/test_ranker.py says when it comes",
    "PositionsAsScoresWarning": "a warning: tests/metrics/test_metrics_input.py says when it comes",
    "Diagnosis": "needs hundreds of documents to say anything: tests/rankers/test_diagnosis.py",
    "show_versions": "prints the versions",
    "MetricAtKDisplay": "draws a picture: tests/plotting/test_displays.py",
    "QueryDifferencesDisplay": "draws a picture: tests/plotting/test_displays.py",
    "plot_aggregate": _PLOT,
    "plot_alternatives": _PLOT,
    "plot_matrix": _PLOT,
    "plot_preference_graph": _PLOT,
    "plot_probability_above": _PLOT,
    "Loss": _BASE,
    "NormalizedLoss": _BASE,
    "PositionalLoss": _BASE,
    "GainLoss": _BASE,
    "NormalizedPositionalLoss": _BASE,
    "Measure": "the base class of losses",
    "BinaryMeasure": "the base class of losses of binary labels",
    "Surrogate": "a base class for surrogates of a user's own: tests/linear/test_linear_ranker.py",
    "Evaluation": "what surrogates return",
    **dict.fromkeys(
        (name for name in public.aggregation.__all__ if name not in _DRAWN),
        "test_structures.py and test_aggregated_loss.py compare it with literal loops",
    ),
    "BoostedRanker": "needs an optional library: tests/boosting/test_boosted_ranker.py",
    "is_calibrated_numerically": "a search of a second: test_surrogate_calibration.py",
    "CalibrationCheck": "what is_calibrated_numerically returns",
    "bregman_regret_bound": "needs a norm: tests/consistency/test_surrogate_bounds.py",
    "LOSSES": "a dictionary, whose values are covered one by one",
    "MEASURES": "a dictionary, whose values are drawn by the names of metrics",
    "get_measure": "drawn through the metrics, which call it",
    "BlendedRegressor": "its forests take a second a fit: tests/label_ranking/test_blend.py",
    "BoostingCV": "its boosters take a second a fit: tests/models/test_boosting_cv.py",
    "distill": "it fits and predicts a ranker many times: tests/rankers/test_distill.py",
    "served_columns": "it only reads names of a fitted ranker: tests/rankers/test_serving.py",
    "MeanInterval": "what evaluate_rankings returns with confidence_level: test_compare.py",
    "default_regressor": "scikit-learn's trees take too long for a random call",
    "Structure": "the base class of structures that are drawn",
    "ComparisonStructure": "the base class of structures of comparisons",
    "aggregate_categories": "takes seconds for a random call: tests/aggregation/test_categories.py",
    "estimate_propensities": "iterates up to a second: tests/clicks/test_clicks.py",
    "PropensityEstimate": "what estimate_propensities returns",
    "make_arena": "a generator of data: tests/aggregation/test_arena_data.py",
    "make_clicks": "a generator of data: tests/clicks/test_clicks.py",
    "make_ranking": "a generator of data: tests/datasets/test_datasets.py",
    "make_preferences": "a generator of data: tests/datasets/test_datasets.py",
    "make_comparisons": "a generator of data: tests/aggregation/test_make_comparisons.py",
    "make_label_ranking": "a generator of data: tests/datasets/test_datasets.py",
    "label_ranking_from_classes": "fits a random forest: tests/datasets/test_datasets.py",
    "DaskCalibratedRanker": _DASK,
    "group_queries": _DASK_FILES,
    "check_loss": _CHECKS,
    "check_ranker": _CHECKS,
    "expected_failed_checks": _CHECKS,
    "yield_ranker_checks": _CHECKS,
}
