"""
How many results to show
========================

A help desk searches its articles for each question of a customer, and a ranker orders what was
found. How many articles should the page show? A long list hides nothing and is tiring to read. This
example chooses short lists that keep a promise: of the articles that answer a question, they miss
at most 10 % in expectation. `RiskControlledCutoff` keeps the promise on new questions, whatever the
ranker and the data are, with few labelled questions.

The data are simulated. For many of the questions, no article has the answer. The others have one,
or several.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd


def simulate(n_questions, seed):
    """Return columns of each article found, whether it answers, and the question of each row."""
    rng = np.random.default_rng(seed)
    question = np.repeat(np.arange(n_questions), rng.integers(10, 41, n_questions))
    n = len(question)
    share = rng.beta(1, 6, n_questions) * (rng.random(n_questions) < 0.75)
    answers = (rng.random(n) < share[question]).astype(int)
    clarity = rng.uniform(0.5, 1.5, n_questions)[question]  # some questions are easy to understand
    general = rng.normal(size=n_questions)[question]  # and some have words that many articles have
    columns = {
        "words": 1.4 * clarity * answers + general + rng.normal(size=n),
        "meaning": 1.8 * clarity * answers + rng.normal(size=n),
        "opened": 0.6 * answers + rng.exponential(size=n),
    }
    return pd.DataFrame(columns).round(2), answers, question


X, y, questions = simulate(400, seed=0)
print(X.assign(question=questions, answers=y).head(5).to_string(index=False))
n_answers = np.bincount(questions, y)
print(f"\n{np.mean(n_answers == 0):.0%} of the questions have no answer among the articles")

# %%
# `RiskControlledCutoff` contains a ranker. Its `fit` holds out a part of the questions, fits the
# ranker to the others, and calibrates the cut-off on those that were held out. What must not be
# lost is recall, the share of the answers that are shown. Questions without an answer are left out,
# as nothing can be missed there.

from sklearn.linear_model import Ridge

from sklearn_rankcal import CalibratedRanker, RiskControlledCutoff

page = RiskControlledCutoff(
    CalibratedRanker(Ridge()), risk="recall", alpha=0.1, calibration_queries=0.4, random_state=0
)
page.fit(X, y, groups=questions)
print(f"calibrated on {page.n_calibration_queries_} questions with an answer")

X_new, y_new, new = simulate(1000, seed=1)
lengths = np.diff(page.predict_order(X_new, groups=new).offsets)
print(f"missed on 1,000 new questions: {1 - page.score(X_new, y_new, groups=new):.1%}")
print(f"articles found {len(new) / 1000:.1f}, shown {lengths.mean():.1f} on average")
print(f"shortest and longest list: {lengths.min()} and {lengths.max()}")

# %%
# How exact is the promise? It is about the mean over new questions and over the questions that
# calibrate. The picture draws 30 or 200 questions to calibrate, 300 times each, keeps the ranker as
# it is, and measures what the lists miss on all other questions. Both means, the dashed lines, are
# below 10 %. With n questions they are at most 2 / (n + 1) below it, so that with many questions
# lists are not longer than the promise needs. A single draw of 30 questions can be off by several
# percent, and one of 200 by less.
#
# `FrozenEstimator` tells `RiskControlledCutoff` that the ranker has been fitted, and that it may
# use all questions that it gets to calibrate.

from sklearn.frozen import FrozenEstimator

fitted = FrozenEstimator(page.ranker_)
answerable = np.flatnonzero(np.bincount(new, y_new))
rng = np.random.default_rng(0)
figure, ax = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
for n_questions, color in ((30, "C1"), (200, "C0")):
    missed = []
    for _ in range(300):
        drawn = np.isin(new, rng.choice(answerable, n_questions, replace=False))
        cut = RiskControlledCutoff(fitted, risk="recall", alpha=0.1)
        cut.fit(X_new[drawn], y_new[drawn], groups=new[drawn])
        missed.append(1 - cut.score(X_new[~drawn], y_new[~drawn], groups=new[~drawn]))
    label = f"{n_questions} questions, mean {np.mean(missed):.1%}"
    ax.hist(missed, bins=np.arange(0, 0.26, 0.01), alpha=0.6, color=color, label=label)
    ax.axvline(np.mean(missed), color=color, linestyle="--")
    print(f"{label}, standard deviation {np.std(missed):.1%}")
ax.axvline(0.1, color="black", label="alpha")
ax.set(xlabel="share of the answers that is missed", ylabel="draws of calibration questions")
ax.xaxis.set_major_formatter("{x:.0%}")
ax.legend()
plt.show()

# %%
# Which lists are shortest at the same promise? ``rule="count"`` shows the same number of articles
# for each question. The default, ``rule="score"``, shows the articles whose score is far enough
# above the mean of the question. Such lists are longer where many articles stand out.

alphas = [0.02, 0.05, 0.1, 0.15, 0.2, 0.3]
half = new < 500
figure, ax = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
for rule, marker in (("count", "s"), ("score", "o")):
    shown, kept = [], []
    for alpha in alphas:
        cut = RiskControlledCutoff(fitted, alpha=alpha, rule=rule)
        cut.fit(X_new[half], y_new[half], groups=new[half])
        shown.append(cut.predict_shown(X_new[~half], groups=new[~half]).sum() / 500)
        kept.append(cut.score(X_new[~half], y_new[~half], groups=new[~half]))
    ax.plot(shown, kept, marker=marker, label=f'rule="{rule}"')
    print(rule, dict(zip(alphas, np.round(shown, 1).tolist(), strict=True)))
ax.set(xlabel="articles shown on average", ylabel="recall on 500 other questions")
ax.legend()
plt.show()

# %%
# For some questions it is better to show nothing than a list without an answer. With
# ``alpha_silent``, a part of `alpha` may be spent on that: the page stays empty if the best article
# hardly stands out. Both promises hold at the same time: at most 4 % of the questions that have an
# answer get an empty page, and all in all at most 10 % of the answers are missed.

cut = RiskControlledCutoff(fitted, alpha=0.1, alpha_silent=0.04)
cut.fit(X_new[half], y_new[half], groups=new[half])
empty = np.diff(cut.predict_order(X_new[~half], groups=new[~half]).offsets) == 0
has_answer = np.bincount(new, y_new)[500:] > 0
print(f"missed: {1 - cut.score(X_new[~half], y_new[~half], groups=new[~half]):.1%}")
print(f"empty pages: {empty[has_answer].mean():.1%} of the questions with an answer, "
      f"{empty[~has_answer].mean():.1%} of the others")  # fmt: skip

# %%
# How many questions does a promise need? At least 1 / alpha - 1: 9 for 10 %, and 99 for 1 %. With
# fewer, `fit` raises an error, as even lists of all articles prove nothing then.

try:
    RiskControlledCutoff(fitted, alpha=0.01).fit(X[:400], y[:400], groups=questions[:400])
except ValueError as error:
    print(error)
