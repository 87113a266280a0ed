"""Scenarios of a group under test: text, execution, narrative."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.lab.check.scenario.actions import (
        OWN_LABELS,
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
        prints,
        rename,
    )
    from antecede.lab.check.scenario.execution import (
        ACKNOWLEDGED,
        JUDGES,
        VIOLATION,
        CommandResult,
        Occurrence,
        ScriptRun,
        changed_states,
        channel_line,
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
    from antecede.lab.check.scenario.state_text import describe
    from antecede.lab.check.scenario.verdict import report, run_of, script_of
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "actions": (
                "Action Arrive Blocked Join Leave Lose OWN_LABELS Send State Tick line_of "
                "prints rename"
            ),
            "execution": (
                "ACKNOWLEDGED CommandResult JUDGES Occurrence ScriptRun VIOLATION "
                "changed_states channel_line judged rows_of waits"
            ),
            "narrative": "Words listed",
            "parse": "Command Script Setup load_script parse_script script_file",
            "run": "Playing check_output run_script under with_output",
            "state_text": "describe",
            "verdict": "report run_of script_of",
        },
    )
