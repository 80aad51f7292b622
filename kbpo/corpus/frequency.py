"""Classes of how often an entity occurs in a corpus (TAC 2016: 3 and 154 documents)."""

FREQUENCIES = ("low", "medium", "high")
MEDIUM, HIGH = 50, 90
"""Percentiles of document frequency: up to the first is low, above the second high"""
PEOPLE = ("PER", "ORG")
"""Entities whose frequencies set the classes; all entities where a schema knows neither type."""
