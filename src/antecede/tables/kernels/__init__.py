"""Compiled kernels: functions on Arrow tables and NumPy arrays."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.tables.kernels.arrays import Bools, Bytes, Ints, encode_column
    from antecede.tables.kernels.bits import highest, ones
    from antecede.tables.kernels.compile_time import BlockTime, measure_compile_time
    from antecede.tables.kernels.components import on_cycles, strong_components
    from antecede.tables.kernels.fenwick import add, count_below
    from antecede.tables.kernels.graph import (
        Graph,
        build_graph,
        edge_table,
        nodes_on_cycles,
        sort_causes_first,
    )
    from antecede.tables.kernels.jit import (
        cache_folder,
        first_on_machine,
        inline,
        inline_lent,
        njit,
        njit_lent,
    )
    from antecede.tables.kernels.pairs import MAX_BYTES, MAX_WORDS, count_pairs
    from antecede.tables.kernels.sketches import (
        LEAST_RANKS,
        RANKS,
        PairEstimate,
        estimate_pairs,
        steps_needed,
    )
    from antecede.tables.kernels.topological import (
        BEFORE_ALL,
        MISSING,
        WAITED,
        by_release,
        causes_first,
        cycles,
        first_mention,
        positions,
        release,
    )
    from antecede.tables.kernels.vector_clocks import (
        ClockLog,
        clock_edges,
        clock_log,
        find_clock_inconsistencies,
        find_entry,
        find_position,
    )
    from antecede.tables.kernels.xxhash import (
        ByteArray,
        Hashes,
        Longs,
        hash_bytes,
        hash_ints,
        hash_longs,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "arrays": "Bools Bytes Ints encode_column",
            "bits": "highest ones",
            "compile_time": "BlockTime measure_compile_time",
            "components": "on_cycles strong_components",
            "fenwick": "add count_below",
            "graph": "Graph build_graph edge_table nodes_on_cycles sort_causes_first",
            "jit": "cache_folder first_on_machine inline inline_lent njit njit_lent",
            "pairs": "MAX_BYTES MAX_WORDS count_pairs",
            "sketches": "LEAST_RANKS PairEstimate RANKS estimate_pairs steps_needed",
            "topological": (
                "BEFORE_ALL MISSING WAITED by_release causes_first cycles first_mention positions "
                "release"
            ),
            "vector_clocks": (
                "ClockLog clock_edges clock_log find_clock_inconsistencies find_entry find_position"
            ),
            "xxhash": "ByteArray Hashes Longs hash_bytes hash_ints hash_longs",
        },
    )
