"""Chat room over a live group of order "reply": threads, held replies, members.

- `words`: sanitized text, and its width
- `room`: model: numbered messages, threads, held replies, members; no input, no output
- `waits`: missing parents of held replies, as text
- `drawing`: model as lines of text
- `commands`: input lines
- `session`: a `Peer` and a `Room`, with events for views
- `terminal`: view in a terminal; `web` and `page.html`: view in a browser
"""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.live.chat.drawing import summary
    from antecede.live.chat.room import Room
    from antecede.live.chat.session import Chat, Notice
    from antecede.live.chat.terminal import LEAVE, Screen, Terminal
    from antecede.live.chat.web import HERE, Page, check_address
    from antecede.live.chat.words import MAX_BYTES, name_of, one_line
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "drawing": "summary",
            "room": "Room",
            "session": "Chat Notice",
            "terminal": "LEAVE Screen Terminal",
            "web": "HERE Page check_address",
            "words": "MAX_BYTES name_of one_line",
        },
    )
