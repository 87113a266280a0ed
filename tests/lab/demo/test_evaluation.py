"""Evaluation part of the demo."""

from __future__ import annotations

from antecede.lab.demo.evaluation import PEERS, evaluate, format_evaluation


def test_overhead_grows_as_in_000_figure_4() -> None:
    """Evropeytsev et al. 2016, section 3.2: linear growth; internal below external below IDR."""
    found = evaluate()
    assert [one.quantity for one in found] == [
        "internal overhead",
        "external overhead",
        "idr overhead",
    ]
    for one in found:
        assert len(one.bytes_per_message) == len(PEERS)
        assert list(one.bytes_per_message) == sorted(one.bytes_per_message)
        assert one.paper_slope is not None
        assert 0.75 < one.slope / one.paper_slope < 1.1
    internal, external, idr = (one.bytes_per_message for one in found)
    assert all(a < b < c for a, b, c in zip(internal, external, idr, strict=True))
    text = format_evaluation(found)
    assert "0.098" in text
    assert f"{internal[0]:.1f}" in text
