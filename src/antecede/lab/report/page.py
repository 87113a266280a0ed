"""Self-contained HTML pages for offline reading, light and dark, desktop and phone."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from antecede.errors import MissingExtraError

try:
    import jinja2
    import markupsafe
except ModuleNotFoundError as error:
    raise MissingExtraError("a report page", "report") from error

_environment = jinja2.Environment(
    loader=jinja2.PackageLoader("antecede.lab.report"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=False,
    keep_trailing_newline=True,
)


# Text is escaped. Text between backticks becomes code.
_environment.filters["prose"] = lambda text: markupsafe.Markup(
    re.sub("`([^`]+)`", r"<code>\1</code>", str(markupsafe.escape(text)))
)


class Figure(NamedTuple):
    """A drawing with title, caption and text. `svg` is inserted without escaping."""

    svg: str
    caption: str
    title: str = ""
    text: str = ""


def render(template: str, **values: Any) -> str:
    """Return a page from a template. Raises jinja2.UndefinedError for a missing value."""
    return _environment.get_template(template).render(**values)
