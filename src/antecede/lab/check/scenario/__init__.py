"""Scenarios of a group under test: text, execution, narrative."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.lab.check.scenario.actions import (
        CONTROL_PREFIXES,
        Action,
        Arrive,
        Join,
        Leave,
        Lose,
        Send,
        ShowHeld,
        ShowState,
        Tick,
        format_action,
        is_query,
        rename,
    )
    from antecede.lab.check.scenario.execution import (
        CONTROL_SENT,
        JUDGES,
        VIOLATION,
        CommandResult,
        ScenarioEvent,
        ScenarioRun,
        channel_line,
        check_run,
        describe_wait,
        find_changed_states,
        run_to_events,
    )
    from antecede.lab.check.scenario.narrative import Words, list_names
    from antecede.lab.check.scenario.parse import (
        Command,
        Scenario,
        Setup,
        load_scenario,
        parse_scenario,
        read_scenario_file,
    )
    from antecede.lab.check.scenario.run import (
        ScenarioRunner,
        check_output,
        run_scenario,
        under,
        update_output,
    )
    from antecede.lab.check.scenario.state_text import describe_state
    from antecede.lab.check.scenario.verdict import format_failure, report, run_of
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "actions": (
                "CONTROL_PREFIXES Action Arrive ShowHeld Join Leave Lose Send ShowState Tick "
                "format_action is_query rename"
            ),
            "execution": (
                "CONTROL_SENT JUDGES VIOLATION CommandResult ScenarioEvent ScenarioRun "
                "find_changed_states channel_line check_run describe_wait run_to_events"
            ),
            "narrative": "Words list_names",
            "parse": "Command Scenario Setup load_scenario parse_scenario read_scenario_file",
            "run": "ScenarioRunner check_output run_scenario under update_output",
            "state_text": "describe_state",
            "verdict": "report run_of format_failure",
        },
    )
