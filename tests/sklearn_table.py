"""What each tool of scikit-learn does with a ranker; doc/scikit_learn.rst shows the same table."""

from sklearn.exceptions import FitFailedWarning

from .sklearn_ways import WAYS

# What each tool does, as a key of MESSAGES or "right". The queries travel in one of five ways:
#   groups   y is plain, and groups= is passed
#   labels   relevance_labels and QueryKFold
#   both     relevance_labels, GroupKFold and groups=
#   column   a pandas frame with group_column, and GroupKFold, which gets groups=
#   polars   the same with a polars frame
#                         routing off                         routing on
#                         groups labels both   column polars  groups labels both   column polars
TABLE = """
cross_val_score           remedy right  right  right  right   right  right  right  right  right
cross_validate            remedy right  right  right  right   right  right  right  right  right
GridSearchCV              remedy right  right  right  right   right  right  right  right  right
RandomizedSearchCV        remedy right  right  right  right   right  right  right  right  right
HalvingGridSearchCV       remedy right  right  right  right   right  right  right  right  right
nested                    inner  right  inner  inner  inner   right  right  right  right  right
nested_QueryKFold         query  right  right  query  query   right  right  right  right  right
Pipeline                  remedy right  right  frame  frame   right  right  right  frame  frame
ColumnTransformer         remedy right  right  right  right   right  right  right  right  right
search.score              remedy right  right  right  right   right  right  right  right  right
permutation_importance    remedy right  right  right  array   remedy right  right  right  array
RFECV                     remedy right  right  frame  frame   right  right  right  frame  frame
SequentialFeatureSelector switch right  switch switch switch  right  right  right  frame  frame
RFE_as_estimator          remedy right  right  frame  frame   right  right  right  frame  frame
learning_curve            remedy nan    nan    right  right   right  nan    nan    right  right
cross_val_predict         remedy ranks  ranks  right  right   ranks  ranks  ranks  right  right
search.predict            remedy ranks  ranks  right  right   ranks  ranks  ranks  right  right
RFECV_without_scoring     remedy scorer scorer frame  frame   scorer scorer scorer frame  frame
builtin_scorer            remedy named  named  named  named   named  named  named  named  named
integer_cv                remedy cut    cut    refuse refuse  refuse cut    cut    refuse refuse
halving_of_rows           remedy cut    cut    refuse refuse  refuse cut    cut    refuse refuse
importance_of_some_rows   remedy cut    cut    sample array   remedy cut    cut    sample array
validation_curve          remedy right  right  right  right   right  right  right  right  right
HalvingRandomSearchCV     remedy right  right  right  right   right  right  right  right  right
permutation_test_score    remedy right  right  right  right   across across across across across
permutation_test_of_rows  remedy cut    cut    refuse refuse  refuse cut    cut    refuse refuse
RFECV_of_rows             remedy cut    cut    frame  frame   refuse cut    cut    frame  frame
SequentialFeatureSelector_of_rows switch cut switch switch switch refuse cut cut frame frame
cross_val_predict_of_rows remedy cut    cut    refuse refuse  ranks  cut    cut    refuse refuse
validation_curve_of_rows  remedy cut    cut    refuse refuse  refuse cut    cut    refuse refuse
search_of_rows            remedy cut    cut    refuse refuse  refuse cut    cut    refuse refuse
RFE                       right  right  right  frame  frame   right  right  right  frame  frame
query_cross_val_predict   right  right  right  right  right   right  right  right  right  right
partial_dependence        right  right  right  right  polars  right  right  right  right  polars
VotingRegressor_of_scores switch right switch switch switch right right right right right
StackingRegressor_of_scores switch right switch switch switch right right right right right
VotingRegressor           switch class switch switch switch class class class class class
StackingRegressor         switch class switch switch switch class class class class class
TransformedTargetRegressor hidden numbers numbers hidden hidden hidden numbers numbers hidden hidden
BaggingRegressor          switch draw switch switch switch draw draw draw draw draw
AdaBoostRegressor         extra draw extra extra extra extra draw extra extra extra
RANSACRegressor           switch numbers switch switch switch draw numbers numbers draw draw
MultiOutputRegressor      two two two two two two two two two two
CalibratedClassifierCV    any any any any any any any any any any
OneVsRestClassifier       any any any any any any any any any any
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
# A pattern of the error or, for the keys of NAN, of the warning that comes with NaN.
MESSAGES = {
    # This is the refusal. MissingGroupsWarning names the same remedy, but it is an error here.
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
    "refuse": "QueryKFold|GroupKFold",
    "nan": "A splitter has cut it",
    "class": "should be a regressor",  # scikit-learn's own words, and so on
    "numbers": "dtype='numeric' is not compatible",
    "extra": "unexpected keyword argument 'groups'",
    "two": "at least two dimensions",
    "any": "",
    "polars": r"object has no attribute '(kind|copy)'",  # scikit-learn's, 1.6: copy
    "hidden": r"holds a ranker \(CalibratedRanker\).*Put ScoreRegressor\(ranker\)",
    "draw": r"draw rows at random.*CalibratedRanker\(BaggingRegressor",
    "sample": r"max_samples below the number of rows.*Leave max_samples=1\.0",
    "across": r"shuffles y between queries.*routing off.*"
    r"permutation_test_score\(ranker, X, relevance_labels\(y, groups\), groups=groups",
    "named": r"get_ranking_scorer\(",
    "lost": r"Query ids did not reach|fitted with query ids.*relevance_labels\(y, groups\)",
}
NAN = {"nan": FitFailedWarning, "named": UserWarning, "lost": UserWarning}
