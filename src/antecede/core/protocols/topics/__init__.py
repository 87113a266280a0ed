"""Topic-based causal order for publish/subscribe: Nakayama 2017."""
