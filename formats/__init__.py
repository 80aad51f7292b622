"""The files of the service: corpora, schemas, annotations, and the doors through which a knowledge
base comes in.
"""
