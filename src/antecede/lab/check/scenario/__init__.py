"""Scripts of a checker's group: their text, carrying one out, and what it says it did."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.lab.check.scenario.actions import (
        Action,
        Arrive,
        Blocked,
        Join,
        Leave,
        Lose,
        Send,
        State,
        Tick,
        line_of,
    )
    from antecede.lab.check.scenario.channels import channel_line
    from antecede.lab.check.scenario.execution import (
        ACKNOWLEDGED,
        JUDGES,
        CommandResult,
        Occurrence,
        ScriptRun,
        changed_states,
        judged,
        rows_of,
        waits,
    )
    from antecede.lab.check.scenario.narrative import Words, listed
    from antecede.lab.check.scenario.parse import (
        Command,
        Script,
        Setup,
        load_script,
        parse_script,
        script_file,
    )
    from antecede.lab.check.scenario.run import (
        Playing,
        check_output,
        run_script,
        under,
        with_output,
    )
    from antecede.lab.check.scenario.save import run_of, script_of
    from antecede.lab.check.scenario.state_text import describe
    from antecede.lab.check.scenario.verdict import report
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "actions": "Action Arrive Blocked Join Leave Lose Send State Tick line_of",
            "channels": "channel_line",
            "execution": (
                "ACKNOWLEDGED CommandResult JUDGES Occurrence ScriptRun changed_states judged "
                "rows_of waits"
            ),
            "narrative": "Words listed",
            "parse": "Command Script Setup load_script parse_script script_file",
            "run": "Playing check_output run_script under with_output",
            "save": "run_of script_of",
            "state_text": "describe",
            "verdict": "report",
        },
    )
