"""Local server of one page, for traces that grow or are too large for a file.

Access control is that of `antecede.core.pages.local_server`. Requests write and run nothing.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Protocol

from antecede.core.pages import NOTHING, Answer, Guarded, plain
from antecede.errors import AntecedeError
from antecede.tables.view.page import render_served_page


class Source(Protocol):
    """Source of a served page's data; called from several threads."""

    @property
    def title(self) -> str:
        """Title of the page."""

    @property
    def grows(self) -> bool:
        """Whether the page should ask again and again."""

    def version(self) -> str:
        """Return a text that changes when there is something new."""

    def block(self, query: Mapping[str, str]) -> bytes:
        """Return a picture's bytes (`antecede.tables.view.binary_block`). Raises AntecedeError."""


class Serving(Guarded):
    """A server of one page; `url` is where. Raises InputError where the port cannot be had."""

    def __init__(self, source: Source, port: int = 0) -> None:
        super().__init__(_Page(source), port)


class _Page:
    """Handler of requests for the page, its data and its version."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def got(self, path: str, asked: Mapping[str, str]) -> Answer:
        try:
            return self._answer(path, asked)
        except AntecedeError as error:
            return plain(422, str(error))

    def posted(self, path: str, body: bytes) -> Answer:
        return plain(405, "this page takes nothing in")

    def _answer(self, path: str, query: Mapping[str, str]) -> Answer:
        source = self.source
        if path == "":
            text = render_served_page(source.title, "data", grows=source.grows)
            return Answer(200, "text/html", text.encode())
        if path == "version":
            return plain(200, source.version())
        if path == "data":
            version = source.version()  # before it is read: what comes after is new
            body = zlib.compress(source.block(query), 1)
            headers = {"Content-Encoding": "deflate", "X-Trace-Version": version}
            return Answer(200, "application/octet-stream", body, headers)
        return NOTHING
