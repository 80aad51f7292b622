"""Mechanical Turk, and other services with its protocol at `MTURK_ENDPOINT_URL`, through boto3.

Amazon's own marketplace closed in 2026. Other requester endpoints still speak its protocol, and so
does ours (`rehearsal/mturk`).
"""
