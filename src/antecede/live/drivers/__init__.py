"""Drivers of a node: TCP with TLS, and their parts."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.live.drivers.addresses import split_address
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "addresses": "split_address",
        },
    )
