"""A room for people over a live group of order "reply": threads, what is held, who is here.

`words`     what others wrote, made harmless, and how wide it is
`room`      the model: messages by number, threads, what is held, members; no input, no output
`waits`     what a held answer waits for, in words
`drawing`   the model as lines of text
`commands`  what somebody types
`session`   a `Peer` and a `Room`: what happens, told to views
`terminal`  the view by lines; `web` and `page.html`: the view in a browser
"""
