"""Space-time diagrams as text and as SVG."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.lab.diagram.notebook import Picture, collect_states, draw_notebook, format_states
    from antecede.lab.diagram.scenario_diagram import (
        compute_widths,
        from_failure,
        from_run,
        stack_diagrams,
    )
    from antecede.lab.diagram.svg import draw_stacked, draw_svg
    from antecede.lab.diagram.text import draw_text
    from antecede.lab.diagram.themes import LIGHT, THEMES, page_switches
    from antecede.lab.diagram.trace_window import from_events
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "notebook": "Picture collect_states draw_notebook format_states",
            "scenario_diagram": "compute_widths from_failure from_run stack_diagrams",
            "svg": "draw_stacked draw_svg",
            "text": "draw_text",
            "themes": "LIGHT THEMES page_switches",
            "trace_window": "from_events",
        },
    )
