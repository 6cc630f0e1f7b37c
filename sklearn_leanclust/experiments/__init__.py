"""Measurements: the benchmark against other k-means methods, and the results of the paper."""
