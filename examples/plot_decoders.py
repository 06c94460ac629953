"""
Which decoder: lost weight and time by the number of documents
==============================================================

Noisy comparisons of r documents with hidden scores: ``u[i, j] = sigmoid(s_i - s_j) + noise``. Most
preferences agree with the scores, some do not, and some close cycles. Every decoder gets the same
matrices. Lost is the preference weight that a ranking contradicts beyond what every ranking does.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from sklearn_rankcal.decoders import decode_preferences

rng = np.random.default_rng(0)
sizes = [5, 10, 20, 40, 80, 160]
methods = {
    "borda": {},
    "copeland": {},
    "sort": {},
    "greedy_dag, topological": {"order": "topological"},
    "greedy_dag": {},
    "local_search": {},
    "exact": {"time_limit": 5},
}
lost = {name: [] for name in methods}
seconds = {name: [] for name in methods}
for r in sizes:
    n_queries = max(4, 400 // r)
    scores = rng.normal(size=(n_queries, r))
    noise = 0.15 * rng.normal(size=(n_queries, r, r))
    u = 1 / (1 + np.exp(scores[:, None, :] - scores[:, :, None])) + noise
    unavoidable = np.triu(np.minimum(u, u.transpose(0, 2, 1)), 1).sum(axis=(1, 2))
    for name, options in methods.items():
        if name == "exact" and r > 80:
            lost[name].append(np.nan)
            seconds[name].append(np.nan)
            continue
        started = time.perf_counter()
        result = decode_preferences(u, name.split(",")[0], **options)
        seconds[name].append((time.perf_counter() - started) / n_queries)
        lost[name].append((result.objective - unavoidable).mean())

# %%
# The optimum is proved up to 80 documents here; local search stays on it. Which topological order
# Algorithm 1 returns matters more than anything else: ``greedy_dag`` means ranked pairs.

best = np.fmin.reduce(list(lost.values()))
figure, (quality, speed) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for name in methods:
    line = {"marker": "o", "markersize": 4, "label": name}
    if name == "exact":  # on top of the local search
        line |= {"linestyle": "none", "marker": "x", "markersize": 9, "color": "black"}
    quality.plot(sizes, np.array(lost[name]) / best, **line)
    speed.plot(sizes, 1e3 * np.array(seconds[name]), **line)
quality.set(xscale="log", xlabel="documents", ylabel="lost weight / best found", ylim=(0.9, 4.6))
speed.set(xscale="log", yscale="log", xlabel="documents", ylabel="milliseconds a query")
for axes in (quality, speed):
    axes.set_xticks(sizes, [str(r) for r in sizes])
    axes.minorticks_off()
figure.legend(*quality.get_legend_handles_labels(), loc="outside right center")
for name in methods:
    print(f"{name:24}", np.round(np.array(lost[name]) / best, 2).tolist())
plt.show()
