"""
Show short lists that miss few answers
======================================

A help desk searches its articles for each customer question, and a ranker sorts what was found. How
many articles should the page show? A long list hides nothing, but nobody wants to read it.
`RiskControlledCutoff` shortens the lists and keeps a promise: of the articles that answer a
question, they miss at most 10 % in expectation. The promise holds on new questions, for any ranker
and any data, and needs few labelled questions.
"""


# %%
# Simulate the questions
# ----------------------
#
# Many of the simulated questions are answered by no article. The others are answered by one or
# more.

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
# Fit the ranker and the cutoff
# -----------------------------
#
# `RiskControlledCutoff` wraps a ranker. Its `fit` holds out some of the questions, fits the ranker
# on the rest, and calibrates the cutoff on the held-out questions. The promise here is about
# recall, the share of the answers that are shown. Questions without an answer are ignored, because
# nothing can be missed there.

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
# How exact is the promise?
# -------------------------
#
# The promise is about the mean over new questions and over calibration questions. To check it, we
# keep the ranker fixed, sample 30 or 200 calibration questions 300 times each, and measure what the
# lists miss on all other questions. Both means (dashed lines) are below 10 %. With n calibration
# questions they are at most 2 / (n + 1) below it, so lists are hardly longer than they have to be
# if n is large. With 30 calibration questions, a single sample can be off by several percent; with
# 200, by less.
#
# `FrozenEstimator` tells `RiskControlledCutoff` that the ranker is fitted already. All questions
# passed to `fit` are then used for calibration.

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
ax.set(xlabel="share of the answers missed", ylabel="samples of calibration questions")
ax.xaxis.set_major_formatter("{x:.0%}")
ax.legend()
plt.show()

# %%
# Choose the rule
# ---------------
#
# Which rule gives the shortest lists for the same promise? ``rule="count"`` shows the same number
# of articles for each question. The default, ``rule="score"``, shows the articles that score far
# enough above the mean of their question. It shows more articles where many stand out.

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
# Show an empty page instead of a bad list
# ----------------------------------------
#
# For some questions, an empty page is better than a list without an answer. ``alpha_silent`` spends
# part of `alpha` on this: the page stays empty if the best article hardly stands out. Two promises
# then hold at the same time. At most 4 % of the questions with an answer get an empty page, and at
# most 10 % of the answers are missed in total.

cut = RiskControlledCutoff(fitted, alpha=0.1, alpha_silent=0.04)
cut.fit(X_new[half], y_new[half], groups=new[half])
empty = np.diff(cut.predict_order(X_new[~half], groups=new[~half]).offsets) == 0
has_answer = np.bincount(new, y_new)[500:] > 0
print(f"missed: {1 - cut.score(X_new[~half], y_new[~half], groups=new[~half]):.1%}")
print(f"empty pages: {empty[has_answer].mean():.1%} of the questions with an answer, "
      f"{empty[~has_answer].mean():.1%} of those without")  # fmt: skip

# %%
# How many questions does it need?
# --------------------------------
#
# Calibration needs at least 1 / alpha - 1 questions: 9 for 10 %, and 99 for 1 %. With fewer
# questions, `fit` raises an error, because then even complete lists prove nothing.

try:
    RiskControlledCutoff(fitted, alpha=0.01).fit(X[:400], y[:400], groups=questions[:400])
except ValueError as error:
    print(error)
