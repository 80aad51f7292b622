"""Computes the numbers of a board as functions of arrays, for the service and for `kbpo
rescore`.
"""
