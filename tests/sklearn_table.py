"""What each tool of scikit-learn does with a ranker; doc/scikit_learn.rst has a shorter table."""

from sklearn.exceptions import FitFailedWarning

from sklearn_rankcal import CutQueriesWarning, MissingGroupsWarning

from .sklearn_ways import WAYS

# What each tool does. "right" is the number of a loop written by hand. A key of WARNINGS is a
# warning with the result, which is NaN for the keys of NAN. All other keys of MESSAGES are errors.
# "silent" is a meaningless number without any warning. "across" is the number of a test that
# shuffles labels between queries. The queries are passed in one of five ways:
#   groups   y is plain, and groups= is passed
#   labels   relevance_labels and QueryKFold
#   both     relevance_labels, GroupKFold and groups=
#   column   a pandas frame with group_column, and GroupKFold, which gets groups=
#   polars   the same with a polars frame
#                         routing off                         routing on
#                         groups labels both   column polars  groups labels both   column polars
TABLE = """
cross_val_score           nan_one right  right  right  right   right  right  right  right  right
cross_validate            nan_one right  right  right  right   right  right  right  right  right
GridSearchCV              nan_one right  right  right  right   right  right  right  right  right
RandomizedSearchCV        nan_one right  right  right  right   right  right  right  right  right
HalvingGridSearchCV       nan_one right  right  right  right   right  right  right  right  right
nested                    inner  right  inner  inner  inner   right  right  right  right  right
nested_QueryKFold         query  right  right  query  query   right  right  right  right  right
Pipeline                  nan_one right  right  frame  frame   right  right  right  frame  frame
ColumnTransformer         nan_one right  right  right  right   right  right  right  right  right
search.score              remedy right  right  right  right   right  right  right  right  right
search.score_by_default   one    right  right  right  right   right  right  right  right  right
permutation_importance    remedy right  right  right  array   remedy right  right  right  array
RFECV                     remedy right  right  frame  frame   right  right  right  frame  frame
SequentialFeatureSelector switch right  switch switch switch  right  right  right  frame  frame
RFE_as_estimator          nan_one right  right  frame  frame   right  right  right  frame  frame
learning_curve            nan_one nan    nan    right  right   right  nan    nan    right  right
cross_val_predict         one    ranks  ranks  right  right   ranks  ranks  ranks  right  right
search.predict            one    ranks  ranks  right  right   ranks  ranks  ranks  right  right
RFECV_without_scoring     one    scorer scorer frame  frame   scorer scorer scorer frame  frame
builtin_scorer            one    named  named  silent silent  named  named  named  silent silent
integer_cv                nan_one cut    cut    warns  warns   warns  cut    cut    warns  warns
halving_of_rows           nan_one cut    cut    silent silent  silent cut    cut    silent silent
importance_of_some_rows   remedy cut    cut    warns  array   remedy cut    cut    warns  array
validation_curve          remedy right  right  right  right   right  right  right  right  right
HalvingRandomSearchCV     nan_one right  right  right  right   right  right  right  right  right
permutation_test_score    remedy right  right  right  right   across across cut    across across
permutation_test_of_rows  remedy cut    cut    warns  warns   warns  cut    cut    warns  warns
RFECV_of_rows             remedy cut    cut    frame  frame   warns  cut    cut    frame  frame
SequentialFeatureSelector_of_rows switch cut switch switch switch warns cut cut frame frame
cross_val_predict_of_rows one    cut    cut    silent silent  ranks  cut    cut    silent silent
validation_curve_of_rows  remedy cut    cut    warns  warns   warns  cut    cut    warns  warns
search_of_rows            nan_one cut    cut    warns  warns   warns  cut    cut    warns  warns
RFE                       right  right  right  frame  frame   right  right  right  frame  frame
query_cross_val_predict   right  right  right  right  right   right  right  right  right  right
partial_dependence        right  right  right  right  polars  right  right  right  right  polars
VotingRegressor_of_scores switch right switch switch switch right right right right right
StackingRegressor_of_scores switch right switch switch switch right right right right right
VotingRegressor           switch class switch switch switch class class class class class
StackingRegressor         switch class switch switch switch class class class class class
TransformedTargetRegressor hidden numbers numbers hidden hidden hidden numbers numbers hidden hidden
BaggingRegressor          switch hidden switch switch switch  hidden repeat repeat frame frame
AdaBoostRegressor         extra repeat extra extra extra extra repeat extra extra extra
RANSACRegressor           switch numbers switch switch switch ranks numbers numbers frame frame
"""
CELLS = {
    (line.split()[0], routing, way): outcome
    for line in TABLE.strip().splitlines()
    for (routing, way), outcome in zip(
        [(routing, way) for routing in ("off", "on") for way in WAYS],
        line.split()[1:],
        strict=True,
    )
}
# A pattern of the error or of the warning.
MESSAGES = {
    "remedy": r"(did not reach the ranker|and needs them|cannot determine which rows belong).*"
    r"relevance_labels\(y, groups\).*group_column.*enable_metadata_routing=True",
    "inner": "The 'groups' parameter should not be None",  # GroupKFold's own words
    "query": r"QueryKFold needs the query of each row\. .*relevance_labels\(y, groups\)",
    "frame": r"group_column='qid' needs X as a data frame",
    "array": "group_column='qid' needs X as a data frame"
    "|cannot determine which rows belong.*relevance_labels",
    "switch": "only supported if enable_metadata_routing=True",  # scikit-learn's own words
    "ranks": r"use group_column='qid'.*best_estimator_\.predict\(X, groups=",
    "scorer": r"scoring=get_ranking_scorer\(",
    "cut": "A splitter has cut it.*QueryKFold",
    "warns": "were fitted with other rows.*QueryKFold",
    "one": "ranked as ONE query.*relevance_labels",
    "nan_one": "ranked as ONE query.*relevance_labels",
    "nan": "A splitter has cut it",
    "class": "should be a regressor",  # scikit-learn's own words, and so on
    "numbers": "dtype='numeric' is not compatible",
    "extra": "unexpected keyword argument 'groups'",
    "polars": r"object has no attribute '(kind|copy)'",  # scikit-learn's, 1.6: copy
    "hidden": r"holds a ranker \(CalibratedRanker\).*Put ScoreRegressor\(ranker\)",
    "repeat": "rows were repeated",
    "named": r"get_ranking_scorer\(",
    "lost": r"Query ids did not reach|fitted with query ids.*relevance_labels\(y, groups\)",
}
NAN = {"nan", "nan_one", "named", "lost"}
WARNINGS = {
    "nan": FitFailedWarning,
    "nan_one": MissingGroupsWarning,
    "one": MissingGroupsWarning,
    "warns": CutQueriesWarning,
    "named": UserWarning,
    "lost": UserWarning,
}
