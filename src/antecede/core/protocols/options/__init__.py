"""Declared options of protocols, and checks of given options."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.core.protocols.options.checks import (
        check_flags,
        idle,
        is_word_set,
        plain_options,
        with_trial,
    )
    from antecede.core.protocols.options.declared import (
        option_text,
        options_of,
        read_options,
        split_options,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "checks": "check_flags idle is_word_set plain_options with_trial",
            "declared": "option_text options_of read_options split_options",
        },
    )
