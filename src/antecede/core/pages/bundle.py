"""One HTML file from plain modules: nothing in it is fetched, and nothing runs but its own script.

The page forbids itself everything else: its policy names the hashes of its one script and one
style, and whom it may ask.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Final

_IMPORT: Final = re.compile(r"^import\s+\{[^}]*\}\s+from\s+\"[./a-z_]+\.js\";\n", re.MULTILINE)
_EXPORT: Final = re.compile(r"^export\s+(?=(?:async|function|const|class|let)\b)", re.MULTILINE)
_MARKS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""Characters that are not seen, and can turn text around: spelt out, as the page's script does."""


def read_asset(package: str, name: str) -> str:
    """Return a file of the page of a package, or one that the pages share.

    The package is not imported. Raises FileNotFoundError where neither has the file.
    """
    folders = (package.removeprefix("antecede.").replace(".", "/"), "core/pages")
    for folder in folders:
        file = resources.files("antecede") / folder / "assets" / name
        if file.is_file():
            return file.read_text(encoding="utf-8")
    raise FileNotFoundError(f"the page of {package} lacks {name}: install antecede again")


def joined(modules: Iterable[str]) -> str:
    """Return modules, each importing only from those before it, as one script in one scope."""
    parts = [_EXPORT.sub("", _IMPORT.sub("", text)) for text in modules]
    code = "\n".join(parts)
    # Neither could be in a script that stands in HTML.
    assert not re.search("</script|<!--", code, re.IGNORECASE)
    return f'"use strict";\n(() => {{\n{code}\n}})();'


def filled(frame: str, script: str, style: str, connect: str, parts: Mapping[str, str]) -> str:
    """Return a page: `{{NAME}}` in its frame stands for a part.

    POLICY, STYLE and SCRIPT are among them. `connect`: whom the page may ask ('none', 'self').
    """
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        f"img-src data: blob:; connect-src {connect}; base-uri 'none'; form-action 'none'"
    )
    all_parts = {**parts, "POLICY": policy, "STYLE": style, "SCRIPT": script}
    # In one pass, so that nothing that was put in is looked at again.
    return re.sub(r"\{\{([A-Z]+)\}\}", lambda found: all_parts[found[1]], frame)


def as_title(text: str) -> str:
    """Return a text as markup that shows it, characters that are not seen spelt out."""
    return html.escape(_MARKS.sub(_spelt, text))


def _spelt(found: re.Match[str]) -> str:
    return f"‹U+{ord(found[0]):04X}›"


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode()
