"""A fictional newswire corpus whose truth is known, and systems that read it with known mistakes."""
