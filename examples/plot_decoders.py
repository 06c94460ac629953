"""
Choose a decoder: quality and speed
===================================

A decoder turns predicted preferences into a ranking. Which one should you use? Up to 80 documents,
``local_search`` ranks as well as the exact decoder. ``greedy_dag`` is much faster, and its rankings
lose at most 18 % more weight here.
"""


# %%
# Measure quality and time
# ------------------------
#
# Each query is a matrix of noisy comparisons of r documents with hidden scores: ``u[i, j] =
# sigmoid(s_i - s_j) + noise``. Most preferences agree with the scores, some do not, and some form
# cycles. All decoders get the same matrices.
#
# *Lost weight* is the weight of the preferences that a ranking contradicts, minus the weight that
# every ranking has to contradict.

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
        tries = []
        for _ in range(2):
            started = time.perf_counter()
            result = decode_preferences(u, name.split(",")[0], **options)
            tries.append((time.perf_counter() - started) / n_queries)
        seconds[name].append(min(tries))
        lost[name].append((result.objective - unavoidable).mean())

# %%
# Plot both
# ---------
#
# The exact decoder runs for up to 80 documents, and local search loses no more weight than it
# there. For algorithm 1 of Ramaswamy, Agarwal and Tewari (2013), the choice of the topological
# order matters most. By default, ``greedy_dag`` returns the order of the ranked pairs method, which
# loses less weight than other topological orders.

best = np.fmin.reduce(list(lost.values()))
figure, (quality, speed) = plt.subplots(2, 1, figsize=(5.2, 7.6), layout="constrained")
for name in methods:
    line = {"marker": "o", "markersize": 4, "label": name}
    if name == "exact":  # crosses, because the line would cover that of the local search
        line |= {"linestyle": "none", "marker": "x", "markersize": 9, "color": "black"}
    quality.plot(sizes, np.array(lost[name]) / best, **line)
    speed.plot(sizes, 1e3 * np.array(seconds[name]), **line)
quality.set(xscale="log", xlabel="documents", ylabel="lost weight / best found", ylim=(0.9, 4.6))
speed.set(xscale="log", yscale="log", xlabel="documents", ylabel="milliseconds per query")
quality.set_title("Lost weight of each decoder")
speed.set_title("Time of each decoder")
for axes in (quality, speed):
    axes.set_xticks(sizes, [str(r) for r in sizes])
    axes.minorticks_off()
figure.legend(*quality.get_legend_handles_labels(), loc="outside lower center", ncols=2)
for name in methods:
    print(f"{name:24}", np.round(np.array(lost[name]) / best, 2).tolist())
plt.show()
