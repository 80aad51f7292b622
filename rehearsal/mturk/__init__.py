"""A Mechanical Turk of our own: AWS JSON 1.1 on one side, the pages of workers on the other, and
books of its own.

For tests, demos and trials without money. It knows nothing of the rest of the service, and can be
told to misbehave.
"""
