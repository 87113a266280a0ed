"""Topic-based causal order for publish/subscribe (Nakayama 2017)."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.core.protocols.topics.messages import MAX_TOPIC_BYTES, normalize_topics
    from antecede.core.protocols.topics.subscriptions import Subscriptions
else:
    __getattr__, __dir__ = lazy_names(
        __name__, {"messages": "MAX_TOPIC_BYTES normalize_topics", "subscriptions": "Subscriptions"}
    )
