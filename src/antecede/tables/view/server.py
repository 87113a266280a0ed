"""Read-only local server of one page; `antecede.core.pages.local_server` controls access."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Protocol

from antecede.core.pages import NOTHING, Answer, LocalServer, plain
from antecede.errors import AntecedeError
from antecede.tables.view.page import render_served_page


class Source(Protocol):
    """Source of a served page's data; called from several threads."""

    @property
    def title(self) -> str:
        """Title of the page."""

    @property
    def grows(self) -> bool:
        """True if the page polls for new data."""

    def version(self) -> str:
        """Return a text that changes with the data."""

    def block(self, query: Mapping[str, str]) -> bytes:
        """Return the binary block of a model; raise AntecedeError."""


class Serving(LocalServer):
    """Server of one page at `url`. Raise InputError if the port is not available."""

    def __init__(self, source: Source, port: int = 0) -> None:
        super().__init__(_Page(source), port)


class _Page:
    def __init__(self, source: Source) -> None:
        self.source = source

    def get(self, path: str, query: Mapping[str, str]) -> Answer:
        try:
            return self._answer(path, query)
        except AntecedeError as error:
            return plain(422, str(error))

    def post(self, path: str, body: bytes) -> Answer:
        return plain(405, "this page is read-only")

    def _answer(self, path: str, query: Mapping[str, str]) -> Answer:
        source = self.source
        if path == "":
            text = render_served_page(source.title, "data", grows=source.grows)
            return Answer(200, "text/html", text.encode())
        if path == "version":
            return plain(200, source.version())
        if path == "data":
            version = source.version()  # before reading, so that later changes count as new
            body = zlib.compress(source.block(query), 1)
            headers = {"Content-Encoding": "deflate", "X-Trace-Version": version}
            return Answer(200, "application/octet-stream", body, headers)
        return NOTHING
