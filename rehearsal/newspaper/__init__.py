"""An invented newswire corpus whose truth is known, and systems that read it with mistakes."""
