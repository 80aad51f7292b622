"""Estimators of precision, recall and F1 from a sample of human judgments, with their intervals.

Pure functions on arrays (NumPy, SciPy and the standard library only), with one family in each
module; README.md has the table of functions, equations and tests. Usable without the rest of the
project: ``from estimators import joint``.
"""
