"""Colors of a diagram, as a style sheet or as attributes.

Pages take the style sheet. Images for slides and papers have plain attributes in each shape, which
PowerPoint, Inkscape and LaTeX support: no variables, no `paint-order` (the halo is a copy).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

PAGE, LIGHT, DARK, PRINT = "page", "light", "dark", "print"
IN_PAGE: Final = "in page"
"""PAGE, or the scheme of the page's own switch."""
FONT: Final = "system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif"
PLAIN_FONT: Final = "DejaVu Sans,Arial,Helvetica,sans-serif"


class ColorScheme(NamedTuple):
    """Colors of one scheme."""

    paper: str
    ink: str
    faint: str
    line: str
    sent: str
    delivered: str
    held: str
    held_edge: str
    held_ink: str
    violation: str


SCHEMES: Final = {
    LIGHT: ColorScheme(
        *("#ffffff", "#1f2933", "#5f6d7c", "#c3ccd6", "#1d4ed8"),
        *("#15803d", "#fde8b5", "#d99a1c", "#6b4400", "#c81e1e"),
    ),
    DARK: ColorScheme(
        *("#14181d", "#e6ebf0", "#93a1b0", "#46525f", "#8ab4ff"),
        *("#5fd38a", "#4a3608", "#e0aa3a", "#ffe2a1", "#ff7b72"),
    ),
    # Without color: elements differ in shape and in brightness.
    PRINT: ColorScheme(
        *("#ffffff", "#000000", "#4d4d4d", "#b3b3b3", "#000000"),
        *("#404040", "#e6e6e6", "#808080", "#000000", "#000000"),
    ),
}
THEMES: Final = (LIGHT, DARK, PRINT)
SWITCHES: Final = {
    LIGHT: ('[data-jp-theme-light="true"]', '[data-md-color-scheme="default"]', ".vscode-light"),
    DARK: ('[data-jp-theme-light="false"]', '[data-md-color-scheme="slate"]', ".vscode-dark"),
}
"""Theme selectors of JupyterLab, Material for MkDocs and Visual Studio Code."""


def page_switches(css_class: str, light: str, dark: str) -> str:
    """Return CSS rules with the declarations of each scheme for a class."""
    return "".join(
        f"{','.join(f'{switch} .{css_class}' for switch in SWITCHES[scheme])}{{{declared}}}\n"
        for scheme, declared in ((LIGHT, light), (DARK, dark))
    )


def make_style_sheet(theme: str = PAGE) -> str:
    """Return the declarations of each class; later classes override earlier ones."""
    light, dark = (
        ";".join(f"--ac-{name.replace('_', '-')}:{value}" for name, value in of._asdict().items())
        for of in (SCHEMES[LIGHT], SCHEMES[DARK])
    )
    switches = page_switches("ac", light, dark) if theme == IN_PAGE else ""
    names = [name.replace("_", "-") for name in ColorScheme._fields]
    rules = _make_rules(ColorScheme(*(f"var(--ac-{name})" for name in names)))
    body = "".join(f".ac .{css}{{{_to_css(of)}}}" for css, of in rules.items())
    return (
        f"\n.ac{{{light};color:var(--ac-ink);font:12px {FONT}}}\n"
        f"@media (prefers-color-scheme:dark){{.ac{{{dark}}}}}\n{switches}"
        ".ac text{fill:currentColor;paint-order:stroke;stroke:var(--ac-paper);stroke-width:3px;"
        f"stroke-linejoin:round}}\n{body}\n.ac text.why{{stroke:var(--ac-held)}}"
        ".ac text.beside{stroke:var(--ac-paper)}\n"
    )


def _make_rules(colors: ColorScheme) -> dict[str, dict[str, str]]:
    """Return the attributes of each class of shapes; later classes override earlier ones."""
    return {
        "paper": {"fill": colors.paper},
        "card": {"fill": colors.paper, "fill-opacity": ".85"},
        "name": {"font-weight": "600", "font-size": "14px"},
        "title": {"font-weight": "600", "font-size": "15px"},
        "small": {"fill": colors.faint, "font-size": "11px"},
        "state": {"fill": colors.ink, "font-size": "10px"},
        "label": {"font-weight": "600"},
        "why": {"fill": colors.held_ink, "font-size": "11px"},
        "timeline": {"stroke": colors.line, "stroke-width": "1.5"},
        "grid": {"stroke": colors.line, "stroke-width": "1", "stroke-dasharray": "1 5"},
        "arrow": {"stroke": colors.sent, "stroke-width": "1.4", "fill": "none", "opacity": ".75"},
        "flying": {"stroke-dasharray": "5 4"},
        "head": {"fill": colors.sent, "opacity": ".9"},
        "sent": {"fill": colors.sent},
        "local": {"fill": colors.ink},
        "deliver": {"fill": colors.delivered},
        "record": {"fill": colors.held_ink},
        "hold": {"fill": colors.paper, "stroke": colors.held_edge, "stroke-width": "2"},
        "release": {"fill": colors.paper, "stroke": colors.held_edge, "stroke-width": "2"},
        "discard": {"stroke": colors.faint, "stroke-width": "2", "fill": "none"},
        "edge": {"stroke": colors.faint, "stroke-width": "2", "fill": "none"},
        "bar": {"fill": colors.held, "stroke": colors.held_edge, "stroke-width": "1"},
        "passed": {"fill": colors.faint},
        "dim": {"opacity": ".22"},
        "wrong": {"stroke": colors.violation, "stroke-width": "2.5", "fill": "none"},
        "bad": {"fill": colors.violation, "font-weight": "600"},
        "late": {"stroke": colors.violation},
        "late-head": {"fill": colors.violation},
    }


def _to_css(attributes: Mapping[str, str]) -> str:
    return ";".join(f"{name}:{value}" for name, value in attributes.items())


_ELEMENT = re.compile(r"<(\w+) class=(?:\"([^\"]*)\"|'([^']*)')([^>]*)>")
_TEXT = re.compile(r"<text class=\"([^\"]*)\"([^>]*)>([^<]*)</text>")


def inline_styles(parts: Iterable[str], theme: str) -> list[str]:
    """Return shapes with the colors of a theme as attributes, without classes."""
    colours = SCHEMES[theme]
    rules = _make_rules(colours)

    def attributes(css: str) -> dict[str, str]:
        merged: dict[str, str] = {}
        for name in css.split():
            merged |= rules.get(name, {})
        return merged

    def shape(match: re.Match[str]) -> str:
        css = match[2] if match[2] is not None else match[3]
        return f"<{match[1]}{_to_xml(attributes(css))}{match[4]}>"

    def text(match: re.Match[str]) -> str:
        own = {"fill": colours.ink} | attributes(match[1])
        back = colours.held if "why" in match[1].split() else colours.paper
        back = colours.paper if "beside" in match[1].split() else back
        halo = own | {"fill": back, "stroke": back, "stroke-width": "3"}
        halo["stroke-linejoin"] = "round"
        return "".join(f"<text{_to_xml(one)}{match[2]}>{match[3]}</text>" for one in (halo, own))

    return [_ELEMENT.sub(shape, _TEXT.sub(text, part)) for part in parts]


def _to_xml(attributes: Mapping[str, str]) -> str:
    return "".join(f' {name}="{value.removesuffix("px")}"' for name, value in attributes.items())
