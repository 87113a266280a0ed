"""docs/live/chat.md shows what happens, and says what every option is for."""

from __future__ import annotations

import argparse
import asyncio
import re
from pathlib import Path

import pytest

from antecede.cli.live import chat
from antecede.live.chat.commands import HELP
from tests.live.chat.picture import transcript

KNOWN = "requested from alice"
PAGE = Path(__file__).parents[3] / "docs/live/chat.md"


@pytest.mark.slow
def test_the_transcript_is_what_a_run_prints() -> None:
    [shown] = re.findall(r"```text\n(.*?)```", PAGE.read_text(), re.DOTALL)

    def timeless(text: str) -> str:
        # On a busy machine it may not be known yet that alice has it.
        text = text.replace("carol is connected and sends it", KNOWN)
        return re.sub(r"\d+(\.\d)? (ms|s)\b", "... ms", text)

    assert timeless(asyncio.run(transcript())) == timeless(shown)


def test_every_option_and_every_command_is_there() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    chat.add_arguments(parser)
    options = [one for action in parser._actions for one in action.option_strings]
    page = PAGE.read_text()
    for option in options:
        assert re.search(rf"{option}\b", page), option
    for usage in HELP:
        assert usage.split()[0].strip(":") in page
