"""Frame times of the moving trace page in a headless Chromium without a graphics card.

    python -m bench.view_frames [EVENTS] [MEMBERS]

A synthetic trace is written as a page and moved by a step per frame, at three zooms and with an
event selected. Printed are median and 95th percentile of the frame time (16.7 ms at 60 Hz), the
script's own time per frame, and the time of opening.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from antecede.tables.trace import QUARANTINE_SCHEMA, Trace, conform
from antecede.tables.view import picture, render_page

BROWSER = "/usr/bin/chromium"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
FRAMES = 60
MOVE = """async (frames) => {
  const app = globalThis.antecede;
  const stamps = [], spent = [];
  const width = app.view.width - app.view.left;
  await new Promise((done) => {
    const step = (now) => {
      stamps.push(now);
      spent.push(app.spent);
      if (stamps.length > frames) return done();
      app.pan(stamps.length % 40 < 20 ? -width / 100 : width / 100, 0);
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  });
  return [stamps.slice(1).map((at, k) => at - stamps[k]), spent.slice(1)];
}"""


def make_events(events: int, members: int, seed: int = 1) -> Trace:
    draw = np.random.default_rng(seed)
    copies = 3
    messages = events // (1 + 2 * copies)
    sender = draw.integers(0, members, messages)
    sent = np.cumsum(draw.exponential(1e6, messages)).astype(np.int64)
    to = (sender[:, None] + draw.integers(1, members, (messages, copies))) % members
    came = sent[:, None] + draw.lognormal(18, 0.5, (messages, copies)).astype(np.int64)
    given = came + np.where(draw.random(came.shape) < 0.2, 3e7, 0).astype(np.int64)
    number = np.arange(messages)
    ids = np.concatenate([number, np.repeat(number, copies), np.repeat(number, copies)])
    member = np.concatenate([sender, to.ravel(), to.ravel()])
    time_ = np.concatenate([sent, came.ravel(), given.ravel()])
    kind = np.repeat(["send", "receive", "deliver"], [messages, to.size, to.size])
    step = np.repeat([0, 1, 2], [messages, to.size, to.size])
    order = np.lexsort((step, time_))
    table = pa.table(
        {
            "kind": kind[order],
            "id": [f"m{k}" for k in ids[order].tolist()],
            "member": [f"host-{k:03}" for k in member[order].tolist()],
            "arrival": pa.array(time_[order] + 1_700_000_000 * 10**9),
        }
    )
    return Trace(conform(table), QUARANTINE_SCHEMA.empty_table(), "table", {})


def measure_page(file: Path) -> dict[str, Any]:
    from playwright.sync_api import sync_playwright

    found: dict[str, Any] = {}
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=FLAGS)
        shown = browser.new_page(viewport={"width": 1400, "height": 850})
        begin = time.perf_counter()
        shown.goto(file.as_uri())
        shown.wait_for_selector("#loading", state="detached", timeout=120_000)
        found["open"] = (time.perf_counter() - begin) * 1e3
        for name, before in {
            "all of it": "antecede.fit()",
            "a tenth": "antecede.fit(); antecede.zoom(10, 700)",
            "a thousandth": "antecede.fit(); antecede.zoom(1000, 700)",
            "all of it, an event chosen": "antecede.fit(); "
            "antecede.choose(Math.floor(antecede.model.size / 2)); antecede.fit()",
        }.items():
            shown.evaluate(before)
            shown.wait_for_timeout(400)
            found[name] = shown.evaluate(MOVE, FRAMES)
        browser.close()
    return found


def main() -> None:
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    members = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    trace = make_events(events, members)
    begin = time.perf_counter()
    text = render_page(picture(trace, title="frames"))
    print(
        f"{len(trace.events):,} events, {members} members: page of {len(text) / 1e6:.1f} MB made "
        f"in {time.perf_counter() - begin:.1f} s"
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        file.write_text(text, encoding="utf-8")
        found = measure_page(file)
    print(f"opened in {found.pop('open') / 1e3:.1f} s")
    for name, (apart, spent) in found.items():
        print(
            f"{name:28} frame median {statistics.median(apart):5.1f} ms, 95 % "
            f"{statistics.quantiles(apart, n=20)[-1]:5.1f} ms; script "
            f"{statistics.median(spent):5.1f} ms"
        )


if __name__ == "__main__":
    main()
