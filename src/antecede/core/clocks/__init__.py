"""Clock data structures: packed vectors, matrices, bit windows, intervals, bounds and time."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.core.clocks.bits import (
        MAX_POSITION,
        MAX_SPAN,
        absorb,
        encode_window,
        positions,
        read_window,
        span_bytes,
        trim,
        window_bytes,
    )
    from antecede.core.clocks.bounds import Bounds
    from antecede.core.clocks.coercion import plain
    from antecede.core.clocks.intervals import (
        MAX_GAPS,
        MAX_NUMBER,
        NODE_BYTES,
        Intervals,
        contains,
        encode_bounds,
        insert,
        nodes,
        read_bounds,
        with_all_up_to,
    )
    from antecede.core.clocks.lanes import (
        LANE_BITS,
        MAX_MEMBER,
        MAX_VALUE,
        VALUE_BITS,
        dominates,
        get,
        guards,
        items,
        merge,
        pack,
        put,
        unit,
        unpack,
    )
    from antecede.core.clocks.matrix import (
        INTEGER_BYTES,
        MAX_SIDE,
        encode_behind,
        fold,
        join_rows,
        read_behind,
        read_side,
        read_top,
        repeat_row,
        split_rows,
    )
    from antecede.core.clocks.monotonic_clock import MonotonicClock
    from antecede.core.clocks.nanoseconds import (
        LONGEST_NS,
        NS,
        Seconds,
        check_reading,
        down_ns,
        exact,
        parse_reading,
        seconds_text,
        seconds_with_sign,
        span_ns,
        up_ns,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "bits": (
                "MAX_POSITION MAX_SPAN absorb encode_window positions read_window "
                "span_bytes trim window_bytes"
            ),
            "bounds": "Bounds",
            "coercion": "plain",
            "intervals": (
                "Intervals MAX_GAPS MAX_NUMBER NODE_BYTES contains encode_bounds insert nodes "
                "read_bounds with_all_up_to"
            ),
            "lanes": (
                "LANE_BITS MAX_MEMBER MAX_VALUE VALUE_BITS dominates get guards items merge pack "
                "put unit unpack"
            ),
            "matrix": (
                "INTEGER_BYTES MAX_SIDE encode_behind fold join_rows split_rows read_behind "
                "read_side "
                "read_top repeat_row"
            ),
            "monotonic_clock": "MonotonicClock",
            "nanoseconds": (
                "LONGEST_NS NS Seconds down_ns exact check_reading parse_reading seconds_text "
                "seconds_with_sign span_ns up_ns"
            ),
        },
    )
