"""On-the-job labelling: labels inputs as they arrive, by a model that learns from people's answers.

For every input a policy decides whether to ask somebody about a position, to wait for an answer, or
to return the labels. An input of n positions and K labels is a linear chain; classification is a
chain of one position. The design follows chapter 5 of Chaganty 2018 (LENSE).
"""
