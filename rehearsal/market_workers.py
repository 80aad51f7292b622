"""Simulated workers of a marketplace: programs that find HITs, accept them, and fill in our pages
inside its frame, over HTTP and without an account.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import unescape
from typing import Any
from urllib.parse import urlencode, urlsplit

from rehearsal.annotators import Crowd, Knows, Worker
from rehearsal.browser import Browser, Form, Page

HIT = re.compile(r'class="hit" href="[^"]*hitId=(\w+)')
FRAME = re.compile(r'<iframe[^>]*src="([^"]*)"')


class MarketCrowd(Crowd):
    """Workers of a marketplace, by their ids there."""

    def __init__(
        self, market: str, site: str, names: Sequence[str], knows: Knows | None, **how: Any
    ) -> None:
        super().__init__(site, [(name, "") for name in names], knows, **how)
        self.workers = [
            _MarketWorker(**vars(worker), market=Browser(market)) for worker in self.workers
        ]


@dataclass
class _MarketWorker(Worker):
    market: Browser = field(kw_only=True)
    refused: set[str] = field(default_factory=set, kw_only=True)
    """HITs that are not for them: met before, or not needed any more"""

    def forget(self) -> None:
        super().forget()
        self.market.close()

    def answer_next(self) -> bool:
        """Answer all questions of a HIT, or return it; False if there is none."""
        worker_id = self.login[0]
        listing = self.market.get("/?" + urlencode({"workerId": worker_id}))
        offered = [hit for hit in HIT.findall(listing.text) if hit not in self.refused]
        if not offered:
            return False
        hit = self.rng.choice(offered)
        page = self.market.submit(
            Form("", "/accept", {}), {"workerId": [worker_id], "hitId": [hit]}
        )
        frame = FRAME.search(page.text)
        if frame is None:  # somebody else was quicker
            return True
        address = urlsplit(unescape(frame.group(1)))
        return self._do(self.browser.get(f"{address.path}?{address.query}"), hit, page)

    def _do(self, page: Page, hit: str, work: Page) -> bool:
        after: Page | None = self._learn(page)
        while after is not None and self._can_answer(after):
            after = self._send_answer(after)
        if after is None or not after.has_form("send"):
            self.refused.add(hit)
            form = work.form("return")
            self.market.submit(form, form.values())
            return True
        self.market.submit(after.form("send"), after.form("send").values())
        return True
