"""A fictional newswire corpus whose truth is known, and systems that read it with known mistakes.

From the world to the files: `invent` a world (names in `lexicon`), `compose` stories about it
(wordings in `stories`,
`phrases`, `feints` and `quotes`; `render` fills them), `annotate` them with offsets and facts,
`extract` what each system (`profiles`) makes of them, `score` that against the truth, `write` it
all. `knows` answers as a perfect worker would; `large` writes a very large knowledge base.
"""
