"""The example protocol passes the check, and fails it once its guard is gone."""

from __future__ import annotations

from pathlib import Path

from antecede.lab.check.check import run_check

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "causal_by_sets.py"


def test_the_example_passes() -> None:
    verdict = run_check(f"{EXAMPLE}:CausalBySets", messages=3)
    assert verdict.ok, verdict


def test_without_its_guard_it_fails_with_two_messages(tmp_path: Path) -> None:
    text = EXAMPLE.read_text()
    broken = text.replace(" if self.known.issuperset(m.past)]", "]")
    assert broken != text
    (tmp_path / "broken.py").write_text(broken)
    verdict = run_check(f"{tmp_path / 'broken.py'}:CausalBySets", messages=3)
    assert not verdict.ok
    sends = [line for line in verdict.failures[0].lines() if line.startswith("send")]
    assert len(sends) == 2
