"""The numbers of a board, as functions of arrays:
what the service prints and `kbpo rescore` repeats.
"""
