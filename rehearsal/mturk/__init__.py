"""A local Mechanical Turk: the requester's API in AWS JSON 1.1, pages of workers, and its own
accounts.

For tests, demos and trials without money. It is independent of the rest of the service, and faults
can be switched on.
"""
