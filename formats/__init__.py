"""The file formats of the service: corpora, schemas, annotations, and the formats ("doors") of
submitted knowledge bases.
"""
