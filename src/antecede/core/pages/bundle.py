"""Bundler of script modules into one HTML page, with hashes in its content security policy."""

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
_INVISIBLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""Invisible characters, some of which reorder text. They are spelled out."""


def read_asset(package: str, name: str) -> str:
    """Return an asset of a package's page or of all pages. Raise FileNotFoundError."""
    folders = (package.removeprefix("antecede.").replace(".", "/"), "core/pages")
    for folder in folders:
        file = resources.files("antecede") / folder / "assets" / name
        if file.is_file():
            return file.read_text(encoding="utf-8")
    raise FileNotFoundError(f"page asset {name} of {package} is missing: reinstall antecede")


def bundle_modules(modules: Iterable[str]) -> str:
    """Return modules as one script with one scope. A module may import only from earlier ones."""
    parts = [_EXPORT.sub("", _IMPORT.sub("", text)) for text in modules]
    code = "\n".join(parts)
    # Both would end or hide the script within HTML.
    assert not re.search("</script|<!--", code, re.IGNORECASE)
    return f'"use strict";\n(() => {{\n{code}\n}})();'


def fill_template(
    template: str, script: str, style: str, connect: str, parts: Mapping[str, str]
) -> str:
    """Return the page of a template with `{{NAME}}` parts; `connect`: targets of requests."""
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        f"img-src data: blob:; connect-src {connect}; base-uri 'none'; form-action 'none'"
    )
    all_parts = {**parts, "POLICY": policy, "STYLE": style, "SCRIPT": script}
    # One pass, so that inserted text is not replaced again.
    return re.sub(r"\{\{([A-Z]+)\}\}", lambda found: all_parts[found[1]], template)


def as_title(text: str) -> str:
    """Return a text as HTML, with invisible characters spelled out."""
    return html.escape(_INVISIBLE.sub(_spell_out, text))


def _spell_out(found: re.Match[str]) -> str:
    return f"‹U+{ord(found[0]):04X}›"


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode()
