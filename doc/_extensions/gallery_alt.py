"""Alternative texts of the gallery's pictures, for readers who cannot see them.

The gallery would take the title of a picture. A text here says what is seen in it. Every picture
needs one, so a picture without one, and a text without a picture, are warnings.
"""

from sphinx.util import logging
from sphinx_gallery.directives import imgsgnode

TEXTS = {
    "choices_001": (
        "Left, the share of an express bus falls from 50 to 14 % as its price rises from 2 to 10 "
        "euros. Right, the revenue of 100 trips is largest, 175 euros, at about 6 euros. The bands "
        "reach 2 to 5 percentage points, and 10 to 28 euros, to each side."
    ),
    "comparisons_001": (
        "The risk on new searches falls from .22 to .19 as more comparisons are aggregated at a "
        "time, from 1 to all. From 100 on it is below the band of the pairwise logistic ranker."
    ),
    "cost_sensitive_001": (
        "Bars of the mean costs of five methods for three matrices of costs. "
        "LowRankClassifier() costs least in each, and predict_proba times the costs most."
    ),
    "fusion_001": (
        "Differences of NDCG@10 from reciprocal rank fusion with their intervals: words -.02 and "
        "vectors -.10, linear and learned about +.06. Only the interval of words contains 0."
    ),
    "exposure_001": (
        "Left, the DCG that a search loses rises from 0 to .20 as the mean exposure of new "
        "sellers rises from .29 to .35, slowly at first. Right, the mean exposures of new sellers "
        "and of others by the ratio meet at .35 for ratio 1."
    ),
    "tiers_001": (
        "Scores of ten projects with their 95 % intervals, in colours of five tiers: Atlas; Beacon "
        "and Cedar; four projects from place 4; Harbor and Iris; Juno."
    ),
    "rules_001": (
        "The first ten products of three searches in colours of their brands. Without rules, most "
        "are of the brand Alto. With rules, no brand has more than two, the sponsored product has "
        "place 4, and three are of new sellers."
    ),
    "rules_002": (
        "Bars of the expected NDCG@10 that a search would gain without each rule: .051 for at most "
        "two of a brand, .029 for the sponsored product and for new sellers, .006 for sold out."
    ),
    "cutoff_001": (
        "Histograms of the share of the answers that is missed. With 30 calibration questions it "
        "is between 1 and 19 %, with a mean of 7.4 %; with 200, between 5 and 14 %, with a mean "
        "of 9.6 %. Both means are left of the line at alpha, 10 %."
    ),
    "cutoff_002": (
        "Recall on other questions by the number of articles shown, for two rules. Both rise from "
        "about .75 at 4 to 5 articles to .99, and the line of rule score is above that of rule "
        "count."
    ),
    "cycles_001": (
        "Share of contradicted preferences by the number of training queries, 10 to 1,000. Pairs "
        "with exact decoding and the default reach the best possible ranking at .27, greedy_dag "
        "stays at .31. Of the rankers by scores, trees fall from .50 to .37, and the other stays "
        "at .50."
    ),
    "dask_001": (
        "NDCG@10 of new queries by the number of partitions that are learned, 1 to 10. The line of "
        "10 columns stays at .813. That of 300 columns starts at .814 and rises to .819. The "
        "dashed line of the ranking that is best in expectation is at .824."
    ),
    "decoders_001": (
        "Two plots of seven decoders by the number of documents, 5 to 160. Above, the lost weight "
        "relative to the best found: local_search and exact stay at 1, greedy_dag just above, the "
        "others between 1.3 and 4.5. Below, the time per query: exact and local_search take "
        "longest, the others less than a few milliseconds."
    ),
    "label_ranking_001": (
        "Kendall's tau of the label ranker falls from .60 to .35 as the share of missing entries "
        "grows from 0 to .8. The best in expectation is at .71, and one order for all is at .03."
    ),
    "leaderboard_001": (
        "A leaderboard of eight models: a dot for the score of each, a line for its interval, and "
        "the interval of its rank on the right. Several neighbours overlap."
    ),
    "leaderboard_002": (
        "A matrix of the probability in percent that the model of the row is above that of the "
        "column. Most cells are 0 or 100; cells near the diagonal are between 1 and 99."
    ),
    "learning_curve_001": (
        "NDCG@10 by the number of training queries, 30 to 400. Rankers with context columns rise "
        "from .77 to .80, just below the dashed line of the best possible ranking at .82. Those "
        "without context columns stay below .72."
    ),
    "listwise_normalization_001": (
        "Three rows, for squared error, cosine and cross-entropy. On the left, the two stars of "
        "each surrogate lie on different sides of the diagonal. On the right, the lines of the two "
        "normalizations have different signs inside a grey interval of p."
    ),
    "model_judgements_001": (
        "Left: NDCG@10 of the orders of judged documents by the number of questions, for grades "
        "with little and with more noise, planned pairs, pairs at random and pairs in both orders, "
        "from the best to the worst. Right: differences to a ranker that learned from grades."
    ),
    "next_comparisons_001": (
        "Two plots by the number of votes, 160 to 1,200, for three ways of choosing pairs. The "
        "standard error of osprey - heron is smallest with pairs for the first place: .08 at the "
        "end, random pairs .17, pairs for all places .25. The mean error of a rank falls fastest "
        "with pairs for all places, from 1.1 to about .25."
    ),
    "pipeline_001": (
        "NDCG of the first k hotels, k from 1 to 10, with bands for intervals. The pipeline is on "
        "top, from .59 to .76, then best reviews first, then lowest prices first."
    ),
    "pipeline_002": (
        "Bars of the loss of NDCG@5 if a column is shuffled: review .28, then price, distance_km, "
        "stars and kind with less than .1 each."
    ),
    "preference_graph_001": (
        "Above, seven documents in a circle with arrows between all of them. Below, the matrix of "
        "the same differences, with red and blue cells on both sides of the diagonal."
    ),
    "preference_graph_002": (
        "Above, the documents on a circle in the order of the ranking, with 17 grey arrows and 4 "
        "orange ones, which the ranking contradicts. Below, the matrix in the order of the "
        "ranking, mostly red above the diagonal."
    ),
    "preference_graph_003": (
        "Above, bars of the shares of queries: 32 % of predicted preferences are acyclic, for 16 % "
        "sorting by scores would be enough, and 100 % of rankings are proved to be the best. "
        "Below, a dot for the distance of each query, and a line for the bound at about 17."
    ),
    "recommendation_001": (
        "Recall of the first k films, k from 1 to 10, with bands for intervals. Share of pages is "
        "slightly above selected or not; most selected films is below both."
    ),
    "recommendation_002": (
        "Bars of the share of the site's own productions: 65 % before the trial, 85 %, 66 %, 33 % "
        "and 46 % of the first five of four rankings, and 33 % of what was selected in the trial."
    ),
    "regret_001": (
        "Regret by the number of training queries, 30 to 4,000, in four worlds. In each, the "
        "method that is consistent there reaches 0, and others level off above it."
    ),
    "search_results_001": (
        "NDCG of the first k documents, k from 1 to 15, with bands for intervals. The ranker is "
        "close to the ranking that is best in expectation, and the regression is below both."
    ),
    "search_results_002": (
        "A bar for each of 150 queries, sorted: 103 bars are above 0, where the ranker is better, "
        "and 40 below. The mean difference is +.07, and its interval does not contain 0."
    ),
    "star_wars_001": (
        "A matrix of the chance, in %, that one person likes the film of the row more than that of "
        "the column. The first films are each above the three later ones by 80 to 92 %. Within "
        "these two groups most cells are between 40 and 60."
    ),
    "star_wars_002": (
        "Bars of the share of people whose favourite a film may be: 92 % for The Empire Strikes "
        "Back, 78 and 73 % for Return of the Jedi and A New Hope, 23 to 39 % for the others."
    ),
    "surrogate_conditions_001": (
        "Four maps of distributions, with the lines below which low noise, P_f and no cycle hold. "
        "RankNet and the required margin fail in places below all three lines. Least squares on "
        "net votes is right below the line of P_f, the difference graph below that of no cycle."
    ),
    "surveys_001": (
        "Scores of eight features of a phone with 95 % intervals and ranks: price is first, camera "
        "second or third, battery 2 to 4, and design and storage are the last two."
    ),
    "surveys_002": (
        "A matrix of the probability that one feature matters more than another. All pairs are in "
        "a clear order except five pairs of neighbours, from camera and battery to design and "
        "storage."
    ),
    "surveys_003": (
        "Left, the number of pairs in a clear order rises with the number of people, from 11 of 28 "
        "at 10 people to 26 at 160 for robust intervals, which are below information. Right, the "
        "mean length of robust intervals falls from 1.4 to .3; information is shorter."
    ),
    "theorem_3_3_001": (
        "Expected average precision and expected ERR of 24 rankings, as lines over p. At p = 1/2 "
        "a star marks the best ranking, above the dotted mean. It is on a grey line for average "
        "precision, and on an orange line, where the kinds alternate, for ERR."
    ),
}

logger = logging.getLogger(__name__)


def describe_pictures(app, doctree):
    """Put the text of each picture of an example in the place of its title."""
    name = app.env.docname.rpartition("/")[2].removeprefix("plot_")
    pictures = {
        node["uri"].rpartition("sphx_glr_plot_")[2].rpartition(".")[0]: node
        for node in doctree.findall(imgsgnode)
    }
    for picture, node in pictures.items():
        if picture in TEXTS:
            node["alt"] = TEXTS[picture]
        else:
            logger.warning("no alternative text for %s in %s", picture, __file__, location=node)
    unused = {text for text in TEXTS if text.rpartition("_")[0] == name} - set(pictures)
    if pictures and unused:
        logger.warning("no picture for the alternative texts of %s", sorted(unused), location=name)


def setup(app):
    """Sphinx's hook."""
    app.connect("doctree-read", describe_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
