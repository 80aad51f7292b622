"""How the endpoint says no, with the codes of the platform."""

from __future__ import annotations


class RequestError(Exception):
    """The request makes no sense as things stand; `code` as the platform spells it."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = f"AWS.MechanicalTurk.{code}"
