"""Any matrix of costs: a loss of low rank, and a classifier that predicts what costs least."""
