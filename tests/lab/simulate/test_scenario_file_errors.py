"""What is wrong with a scenario file is said with path and dotted key, or line."""

from __future__ import annotations

from pathlib import Path

import pytest

from antecede.errors import ScenarioError
from antecede.lab.simulate.config.file import read_scenario, write_config
from antecede.lab.simulate.config.model import Scenario
from antecede.lab.simulate.topology import Mesh

MESH = '[topology]\nkind = "mesh"\npeers = 3\n'
TREE = (
    '[topology]\nkind = "hierarchy"\ngroups = [2]\nexternal = 1\n[protocol]\nname="hierarchical"\n'
)
TOPICS = '[topology]\nkind = "pubsub"\nsubgroups = [2, 2]\ntopics = 2\n[protocol]\nname = "tv"\n'


def topology(text: str) -> str:
    return f"[topology]\n{text}\n"


def links(text: str) -> str:
    return f"{MESH}[links]\n{text}\n"


def workload(text: str) -> str:
    return f"{MESH}[workload]\n{text}\n"


def clocks(text: str) -> str:
    return f"{MESH}[clocks]\n{text}\n"


def run(text: str) -> str:
    return f"{MESH}[run]\n{text}\n"


def protocol(text: str) -> str:
    return f"{MESH}[protocol]\n{text}\n"


CASES = [
    # unknown tables and keys
    ("[topolgy]\n" + MESH, "topolgy: no such table; did you mean topology? there are name, topo"),
    ("", "topology: is missing; its kind is one of mesh, hierarchy, pubsub"),
    (topology("peers = 3"), "topology.kind: is missing"),
    (topology('kind = "mehs"'), "topology.kind: 'mehs'; did you mean mesh? there are mesh, hier"),
    (topology('kind = "mesh"'), "topology.peers: is missing"),
    (topology('kind = "mesh"\npeers = 3\nexternal = 1'), "topology.external: no such key; there"),
    (links("fifi = true"), "links.fifi: no such key; did you mean fifo? there are delay, special"),
    (workload("rate = 5"), "workload.rate: no such key; did you mean rate_hz? there are kind"),
    (clocks("drift = 5"), "clocks.drift: no such key; did you mean drift_ppm?"),
    (run("duration = 5"), "run.duration: no such key; did you mean duration_s?"),
    (run("seed = 5"), "run.seed: a scenario has no seed"),
    (protocol('nam = "bss"'), "protocol.nam: no such key; did you mean name?"),
    (links('delay = { low = 1 }'), "links.delay.low: no such key"),
    (links('special = [{ from = "any" }]'), "links.special[1].to: is missing"),
    # wrong types
    ("topology = 3", "topology: 3 is not a table"),
    (MESH + 'links = 3\n', "topology.links: no such key"),
    (topology('kind = "mesh"\npeers = 2.5'), "topology.peers: 2.5 is not a whole number"),
    (topology('kind = "mesh"\npeers = true'), "topology.peers: True is not a whole number"),
    (topology('kind = "mesh"\npeers = "3"'), "topology.peers: '3' is not a whole number"),
    (topology('kind = "mesh"\npeers = 99999999999999999999'), "topology.peers: 999999999999999999"),
    (run(f"duration_s = 1{'0' * 400}"), "run.duration_s: 1000"),
    (links("fifo = 1"), "links.fifo: 1 is not true or false"),
    (links("loss = \"1 %\""), "links.loss: '1 %' is not a number"),
    (links("loss = true"), "links.loss: True is not a number"),
    (links("delay = 0.05"), 'links.delay: 0.05 is not a delay with its unit, such as "50-250 ms"'),
    (links("special = 3"), "links.special: 3 is not a list in brackets"),
    (links("special = [3]"), "links.special[1]: 3 is not a table"),
    (links('partitions = [{ start_s = 0, end_s = 1, side = ["a"] }]'), "links.partitions[1].side["),
    (protocol("name = 3"), "protocol.name: 3 is not a text in quotes"),
    (run("warm_s = 1979-05-27"), "run.warm_s: datetime.date(1979, 5, 27) is not a number"),
    # numbers that are none
    (run("duration_s = nan"), "run.duration_s: nan is not a finite number"),
    (links("loss = inf"), "links.loss: inf is not a finite number"),
    (links("delay = { low_s = nan, high_s = 1 }"), "links.delay.low_s: nan is not a finite number"),
    (links("matrix = [[nan]]"), "links.matrix[1][1]: nan is not a finite number"),
    # delays
    (links('delay = "fast"'), "links.delay: 'fast' is no delay; write, for instance, \"50-250 ms"),
    (links('delay = "50-250"'), "links.delay: '50-250' has no unit"),
    (links('delay = "5 years"'), "links.delay: '5 years': the unit 'years' is none of us, µs, ms,"),
    (links('delay = "gamma 1-2 s"'), "links.delay: 'gamma 1-2 s': the kind 'gamma' is none of con"),
    (links('delay = "250-50 ms"'), "links.delay: the interval 0.25 to 0.05 s is impossible"),
    (links('delay = "-5-50 ms"'), "links.delay: the interval -0.005 to 0.05 s is impossible"),
    (links('delay = "constant 1-2 s"'), "links.delay: a constant has one value, not 1 to 2 s"),
    (links('delay = "lognormal 0-2 s"'), "links.delay: a lognormal delay lies above 0"),
    (links('delay = "lognormal 1e-300-1e6 s"'), "links.delay: a lognormal delay of 1e-300 to 1e+0"),
    (links('delay = "1e9 s"'), "links.delay: the interval 1e+09 to 1e+09 s is impossible"),
    (links('delay = { low_s = 1, high_s = 2, kind = "gamma" }'), "links.delay.kind: 'gamma' is no"),
    (links('special = [{ from = "any", to = "any", delay = "2-1 s" }]'), "links.special[1].delay:"),
    # topologies
    (topology('kind = "mesh"\npeers = 0'), "topology.peers: 0; it is 1 or more"),
    (topology('kind = "hierarchy"\ngroups = []'), "topology.groups: a hierarchy has at least one"),
    (topology('kind = "hierarchy"\ngroups = [3, 0]'), "topology.groups: 0; it is 1 or more"),
    (topology('kind = "hierarchy"\ngroups = "3 of 5"'), "topology.groups: '3 of 5': write [50, 50"),
    (topology('kind = "hierarchy"\ngroups = [1]\nexternal = -1'), "topology.external: -1; it is 0"),
    (topology('kind = "pubsub"\nsubgroups = []\ntopics = 1'), "topology.subgroups: there is at le"),
    (topology('kind = "pubsub"\nsubgroups = [0]\ntopics = 1'), "topology.subgroups: 0; it is 1"),
    (topology('kind = "pubsub"\nsubgroups = [1]\ntopics = 0'), "topology.topics: 0; it is 1 or mo"),
    (
        topology('kind = "pubsub"\nsubgroups = [1]\ntopics = 2\nsubscribed = 3'),
        "topology.subscribed: 3 of 2 topics",
    ),
    # links
    (links("loss = 1"), "links.loss: 1.0 is no probability below 1"),
    (links("duplicate = -0.1"), "links.duplicate: -0.1 is no probability below 1"),
    (links("buffer = 0"), "links.buffer: 0; it is 1 or more"),
    (links("service_s = -1"), "links.service_s: -1.0 s; it is 0 or more"),
    (links("partitions = [{ start_s = -1, end_s = 1, side = [0] }]"), "links.partitions[1].start_"),
    (
        links("partitions = [{ start_s = 2, end_s = 1, side = [0] }]"),
        "links.partitions[1].end_s: 1.0 s; it comes after start_s = 2.0 s",
    ),
    (links("partitions = [{ start_s = 0, end_s = 1, side = [] }]"), "links.partitions[1].side: a"),
    (links("partitions = [{ start_s = 0, end_s = 1, side = [3] }]"), "links.partitions[1].side: n"),
    (
        links("partitions = [{ start_s = 0, end_s = 1, side = [0, 1, 2, 0] }]"),
        "links.partitions[1].side: has all 3 addresses: nobody is left on the other side",
    ),
    (
        links("partitions = [{ start_s = 0, end_s = 1e300, side = [0] }]"),
        "links.partitions[1].end_s: 1e+300 s; it comes after start_s = 0.0 s and is at most 1e+09",
    ),
    (links("service_s = 1e300"), "links.service_s: 1e+300 s; it is 0 or more and at most 1e+06"),
    (links('special = [{ from = "boss", to = "any", delay = "1 s" }]'), "links.special[1].from: '"),
    (links('special = [{ from = "any", to = 3, delay = "1 s" }]'), "links.special[1].to: '3' is n"),
    (
        links('special = [{ from = "group:1", to = "any", delay = "1 s" }]'),
        "links.special[1].from: 'group:1' is nobody; write \"any\", a role (\"peer\"), "
        '"group:N" with N up to 0, or an address up to 2',
    ),
    # matrices
    (
        links("matrix = [[0, 1], [1]]"),
        "links.matrix: row 2 has 1 delays and there are 2 rows: the matrix must be square",
    ),
    (links("matrix = []"), "links.matrix: it has no rows"),
    (links("matrix = [[1e300]]"), "links.matrix: the delay 1e+300 s in row 1; it is 0 or more and"),
    (links("matrix = [[-1]]"), "links.matrix: the delay -1.0 s in row 1"),
    # workloads
    (workload('kind = "sometimes"'), "workload.kind: 'sometimes' is none of periodic, poisson, ra"),
    (workload('kind = "poisson"\nrate_hz = -5'), "workload.rate_hz: -5.0 a second; it is above 0"),
    (workload("total_hz = 0"), "workload.total_hz: 0.0 a second; it is above 0"),
    (workload('interval = "0-10 ms"'), "workload.interval: low is 0 s; a peer sends one"),
    (workload('interval = "1e-9 s"'), "workload.interval: low is 1e-09 s; a peer sends one messag"),
    (workload('kind = "poisson"\nrate_hz = 1e9'), "workload.rate_hz: 1e+09 a second; it is 1e-06"),
    (workload('kind = "poisson"\nrate_hz = 1e-300'), "workload.rate_hz: 1e-300 a second; it is 1e"),
    (workload("total_hz = 1e308"), "workload.total_hz: 1e+308 a second of 3 peers; with these"),
    (workload("total_hz = 1e-308"), "workload.total_hz: 1e-308 a second of 3 peers; with these"),
    (workload('kind = "poisson"\ntotal_hz = 1e-300'), "workload.total_hz: 1e-300 a second of 3"),
    (workload("silent = 3"), "workload.silent: 3 of 3 peers; one must send"),
    (workload("silent = -1"), "workload.silent: -1; it is 0 or more"),
    (workload("fanout = 0"), "workload.fanout: 0; it is 1 or more"),
    (workload("answers = 1.5"), "workload.answers: 1.5 is no probability"),
    (workload("recent = 0"), "workload.recent: 0; it is 1 or more"),
    (workload("topics = 2"), "workload.topics: up to 2 topics a message; only pubsub has topics"),
    (workload('kind = "random"'), "workload.messages: a random workload says how many"),
    (workload('kind = "replay"'), "workload.path: a replay names the trace"),
    (workload("rate_hz = 5"), "workload.rate_hz: a periodic workload has no rate of a peer; it se"),
    (workload('kind = "poisson"\ninterval = "1 s"'), "workload.interval: a poisson workload has n"),
    (workload("messages = 5"), "workload.messages: a periodic workload has no number of messages"),
    (workload('kind = "random"\nmessages = 5\ntotal_hz = 5'), "workload.total_hz: a random worklo"),
    (workload('path = "x"'), "workload.path: a periodic workload reads no trace"),
    # clocks and run
    (clocks("accuracy_s = -1"), "clocks.accuracy_s: -1.0 s; it is 0 or more"),
    (clocks("accuracy_s = 1e300"), "clocks.accuracy_s: 1e+300 s; it is 0 or more and at most"),
    (
        clocks("accuracy_s = 1\ndrift_ppm = 5\nresync_s = 1e-7"),
        "clocks.resync_s: 1e-07 s; a clock is set anew every 0.001 s or more seldom",
    ),
    (clocks("drift_ppm = 5"), "clocks.resync_s: a clock that drifts must be set anew"),
    (clocks("drift_ppm = 5\nresync_s = 60"), "clocks.accuracy_s: a drift of 5.0 ppm leaves 0.0 s"),
    (run("duration_s = 0"), "run.duration_s: 0.0 s; it is above 0"),
    (run("duration_s = 1e10"), "run.duration_s: 10000000000.0 s; it is above 0 and at most 1e+09"),
    (run("duration_s = 1\nwarm_s = 1"), "run.warm_s: 1.0 s; it lies before the end at 1.0 s"),
    (run("sample_s = 0"), "run.sample_s: 0.0 s; it is above 0"),
    # protocols
    (protocol('name = "bsss"'), "protocol.name: no protocol is called 'bsss'; did you mean bss? t"),
    (
        protocol('name = "bss"\nvariant = "diferences"'),
        "protocol.variant: bss has no variant 'diferences'; did you mean differences? there are di",
    ),
    (protocol('variant = "x"'), "protocol.variant: idr has no variant 'x'; there are none"),
    (
        protocol('name = "bss"\noptions = { diferences = true }'),
        "protocol.options.diferences: bss has no such option; did you mean differences?",
    ),
    (
        protocol('name = "linear"\noptions = { heartbeat_s = -1 }'),
        "protocol.options: linear refuses them: heartbeat_s is -1",
    ),
    (
        protocol('name = "linear"\nwithout = ["keep"]\noptions = { keep = 1 }'),
        "protocol.without: keep has a value",
    ),
    (protocol('name = "tv"'), "protocol.name: tv runs on topology.kind = 'pubsub', not on 'mesh'"),
    (
        protocol('name = "hierarchical"'),
        "protocol.name: hierarchical runs on topology.kind = 'hierarchy', not on 'mesh', "
        "where these do: unordered, fifo, bss, idr, sb, ses, sent, matrix, ds, "
        "total, total-agreed, linear",
    ),
    (TREE.replace('"hierarchical"', '"idr"'), "protocol.name: idr runs on topology.kind = 'mesh'"),
    (TOPICS.replace('"tv"', '"hierarchical"'), "protocol.name: hierarchical runs on topology.kind"),
    (TREE + 'variant = "listing7"\n', "protocol.variant: hierarchical has no variant 'listing7'"),
    (TREE + 'options = { pruning = "some" }\n', "protocol.options: hierarchical refuses them: pru"),
    (TOPICS + "[workload]\ntopics = 3\n", "workload.topics: up to 3 topics a message; there are 2"),
    (
        TOPICS + "options = { bounds = { accuracy = 1 } }\n",
        "protocol.options.bounds.accuracy: no such key; did you mean accuracy_s?",
    ),
    (
        TOPICS + "options = { bounds = { least_s = 2, most_s = 1 } }\n",
        "protocol.options.bounds: delays of a channel",
    ),
    (
        workload("fanout = 1"),
        "workload.fanout: a message of idr is not for chosen members; protocols with addressees: "
        "ses, sent, linear",
    ),
    (
        protocol('name = "ses"\n[workload]\nfanout = 3'),
        "workload.fanout: 3 addressees; there are 2 others",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "says"), CASES, ids=[says[:40] for _, says in CASES])
def test_what_is_wrong_is_said_with_path_and_key(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "run.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ScenarioError) as caught:
        read_scenario(path)
    assert str(caught.value).startswith(f"{path}: {says}")


@pytest.mark.parametrize(
    ("text", "line"),
    [("[topology\nkind = 3", 1), (MESH + "x = \n", 4), (MESH + MESH, 4), (MESH + "peers = 3\n", 4)],
)
def test_what_is_no_toml_is_said_with_its_line(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "run.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"is no TOML: ") as caught:
        read_scenario(path)
    assert (caught.value.path, caught.value.line) == (str(path), line)


def test_files_that_can_not_be_read_or_written(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"none\.toml: cannot be read: No such file"):
        read_scenario(tmp_path / "none.toml")
    with pytest.raises(ScenarioError, match="cannot be read: Is a directory"):
        read_scenario(tmp_path)
    with pytest.raises(ScenarioError, match="cannot be written: Is a directory"):
        write_config(Scenario(Mesh(3)), tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(ScenarioError, match=r"is not UTF-8 text \(byte 0\)"):
        read_scenario(tmp_path / "binary")
    (tmp_path / "deep").write_text("x = " + "[" * 100_000, encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"nested too deep|is no TOML"):
        read_scenario(tmp_path / "deep")
