"""Measures: what a ranking is worth, query by query, with ties averaged in closed form."""
