"""Mechanical Turk, and whatever speaks its protocol at `MTURK_ENDPOINT_URL`, through boto3.

Amazon's own marketplace closed in 2026. What is left are requester endpoints that speak its
protocol, and our own (`rehearsal/mturk`).
"""
