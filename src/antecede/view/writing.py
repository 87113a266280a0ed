"""One HTML file from a picture: code, style and data in it, nothing fetched, nothing run but ours.

The page forbids itself everything else: its policy names the hashes of its one script and one
style, and no connection at all. What a trace says is compressed bytes in base 64; the script puts
it on the screen as text, never as markup.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
import zlib
from functools import cache
from importlib import resources
from typing import Final

from antecede.view.picture import Picture

MODULES: Final = (
    "data.js",
    "graph.js",
    "lanes.js",
    "axis.js",
    "scene.js",
    "words.js",
    "elements.js",
    "paint.js",
    "svg.js",
    "state.js",
    "gestures.js",
    "panels.js",
    "main.js",
)
"""Each imports only from those before it."""
_IMPORT: Final = re.compile(r"^import\s+\{[^}]*\}\s+from\s+\"\./[a-z]+\.js\";\n", re.MULTILINE)
_EXPORT: Final = re.compile(r"^export\s+(?=(?:async|function|const|class|let)\b)", re.MULTILINE)
_MARKS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""Characters that are not seen, and can turn text around: spelt out, as the page's script does."""


def _spelt(found: re.Match[str]) -> str:
    return f"‹U+{ord(found[0]):04X}›"


def page(shown: Picture) -> str:
    """Return the file of a picture."""
    data = base64.b64encode(zlib.compress(shown.packed(), 6)).decode("ascii")
    return _filled(str(shown.meta["title"]), data, "'none'", "", "")


def served_page(title: str, source: str, *, grows: bool = False) -> str:
    """Return a page that asks the server it came from, at the path `source`, for its data.

    `grows`: again and again.
    """
    return _filled(title, "", "'self'", source, "yes" if grows else "")


def _filled(title: str, data: str, connect: str, source: str, grows: str) -> str:
    script, style = code(), _read("page.css")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        f"img-src data: blob:; connect-src {connect}; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "POLICY": policy,
        "TITLE": html.escape(_MARKS.sub(_spelt, title)),
        "STYLE": style,
        "SCRIPT": script,
        "DATA": data,
        "SOURCE": html.escape(source),
        "GROWS": grows,
    }
    # In one pass, so that nothing that was put in is looked at again.
    return re.sub(r"\{\{([A-Z]+)\}\}", lambda found: parts[found[1]], _read("page.html"))


@cache
def code() -> str:
    """Return the modules as one script: imports and exports go, as all share one scope."""
    parts = [_EXPORT.sub("", _IMPORT.sub("", _read(name))) for name in MODULES]
    joined = "\n".join(parts)
    # Neither could be in a script that stands in HTML.
    assert not re.search("</script|<!--", joined, re.IGNORECASE)
    return f'"use strict";\n(() => {{\n{joined}\n}})();'


def _read(name: str) -> str:
    return (resources.files("antecede.view") / "page" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode()
