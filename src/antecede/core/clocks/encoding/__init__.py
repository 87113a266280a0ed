"""Byte encodings of clocks, bit windows and numbers."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.core.clocks.encoding.compact import (
        LANE_BYTES,
        byte_width,
        encode_compact,
        encode_sparse,
        is_sparse,
        mark_nonzero,
        nonzero,
        planes,
        read_compact,
        read_sparse,
        woven,
    )
    from antecede.core.clocks.encoding.pairs import encode_dense, encode_pairs, read_pairs
    from antecede.core.clocks.encoding.wire import (
        ByteReader,
        block,
        read_varints,
        varint,
        varint_size,
        varints,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "compact": (
                "LANE_BYTES byte_width encode_compact encode_sparse is_sparse nonzero mark_nonzero "
                "planes read_compact read_sparse woven"
            ),
            "pairs": "encode_dense encode_pairs read_pairs",
            "wire": "ByteReader block read_varints varint varint_size varints",
        },
    )
