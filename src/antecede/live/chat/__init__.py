"""A room for people over a live group of order "reply": threads, what is held, who is here.

`words`     what others wrote, made harmless, and how wide it is
`room`      the model: messages by number, threads, what is held, members; no input, no output
`waits`     what a held answer waits for, in words
`drawing`   the model as lines of text
`commands`  what somebody types
`session`   a `Peer` and a `Room`: what happens, told to views
`terminal`  the view by lines; `web` and `page.html`: the view in a browser
"""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.live.chat.drawing import summary
    from antecede.live.chat.room import Room
    from antecede.live.chat.session import Chat, Notice
    from antecede.live.chat.terminal import LEAVE, Screen, Terminal
    from antecede.live.chat.web import HERE, Page, checked_place
    from antecede.live.chat.words import MAX_BYTES, name_of, one_line
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "drawing": "summary",
            "room": "Room",
            "session": "Chat Notice",
            "terminal": "LEAVE Screen Terminal",
            "web": "HERE Page checked_place",
            "words": "MAX_BYTES name_of one_line",
        },
    )
