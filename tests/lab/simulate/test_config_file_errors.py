"""What is wrong with a scenario file is said with path and dotted key, or line."""

from __future__ import annotations

from pathlib import Path

import pytest

from antecede.errors import ConfigError
from antecede.lab.simulate.config.file import read_config, write_config
from antecede.lab.simulate.config.model import SimulationConfig
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
    ("[topolgy]\n" + MESH, "topolgy: unknown table; did you mean topology? choose from name, topo"),
    ("", "topology: missing; choose its kind from mesh, hierarchy, pubsub"),
    (topology("peers = 3"), "topology.kind: missing; choose from mesh, hierarchy, pubsub"),
    (topology('kind = "mehs"'), "topology.kind: unknown value 'mehs'; did you mean mesh? choose f"),
    (topology('kind = "mesh"'), "topology.peers: missing"),
    (topology('kind = "mesh"\npeers = 3\nexternal = 1'), "topology.external: unknown key; choose "),
    (links("fifi = true"), "links.fifi: unknown key; did you mean fifo? choose from delay, specia"),
    (workload("rate = 5"), "workload.rate: unknown key; did you mean rate_hz? choose from kind, i"),
    (clocks("drift = 5"), "clocks.drift: unknown key; did you mean drift_ppm? choose from accurac"),
    (run("duration = 5"), "run.duration: unknown key; did you mean duration_s? choose from durati"),
    (run("seed = 5"), "run.seed: a configuration has no seed"),
    (protocol('nam = "bss"'), "protocol.nam: unknown key; did you mean name? choose from name, va"),
    (links('delay = { low = 1 }'), "links.delay.low: unknown key; did you mean low_s? choose from"),
    (links('special = [{ from = "any" }]'), "links.special[1].to: missing"),
    # wrong types
    ("topology = 3", "topology: 3; expected a table"),
    (MESH + 'links = 3\n', "topology.links: unknown key; choose from peers"),
    (topology('kind = "mesh"\npeers = 2.5'), "topology.peers: 2.5; expected an integer"),
    (topology('kind = "mesh"\npeers = true'), "topology.peers: True; expected an integer"),
    (topology('kind = "mesh"\npeers = "3"'), "topology.peers: '3'; expected an integer"),
    (topology('kind = "mesh"\npeers = 99999999999999999999'), "topology.peers: 999999999999999999"),
    (run(f"duration_s = 1{'0' * 400}"), "run.duration_s: 1000"),
    (links("fifo = 1"), "links.fifo: 1; expected true or false"),
    (links("loss = \"1 %\""), "links.loss: '1 %'; expected a number"),
    (links("loss = true"), "links.loss: True; expected a number"),
    (links("delay = 0.05"), 'links.delay: 0.05; expected a delay with its unit, such as "50-250 m'),
    (links("special = 3"), "links.special: 3; expected a list in brackets"),
    (links("special = [3]"), "links.special[1]: 3; expected a table"),
    (links('partitions = [{ start_s = 0, end_s = 1, side = ["a"] }]'), "links.partitions[1].side["),
    (protocol("name = 3"), "protocol.name: 3; expected a string in quotes"),
    (run("warm_s = 1979-05-27"), "run.warm_s: datetime.date(1979, 5, 27); expected a number"),
    # numbers that are none
    (run("duration_s = nan"), "run.duration_s: nan; expected a finite number"),
    (links("loss = inf"), "links.loss: inf; expected a finite number"),
    (links("delay = { low_s = nan, high_s = 1 }"), "links.delay.low_s: nan; expected a finite num"),
    (links("matrix = [[nan]]"), "links.matrix[1][1]: nan; expected a finite number"),
    # delays
    (links('delay = "fast"'), 'links.delay: invalid delay \'fast\'; write, for example, "50-250 m'),
    (links('delay = "50-250"'), 'links.delay: delay \'50-250\' has no unit; write, for example, "'),
    (links('delay = "5 years"'), "links.delay: '5 years': unknown unit 'years'; choose from us"),
    (links('delay = "gamma 1-2 s"'), "links.delay: 'gamma 1-2 s': unknown distribution 'gamma'; c"),
    (links('delay = "250-50 ms"'), "links.delay: invalid interval 0.25 to 0.05 s; expected 0 <= l"),
    (links('delay = "-5-50 ms"'), "links.delay: invalid interval -0.005 to 0.05 s; expected 0 <= "),
    (links('delay = "constant 1-2 s"'), "links.delay: a constant delay has one value, got 1 to 2 "),
    (links('delay = "lognormal 0-2 s"'), "links.delay: a lognormal delay needs low > 0"),
    (links('delay = "lognormal 1e-300-1e6 s"'), "links.delay: a lognormal delay of 1e-300 to 1e+0"),
    (links('delay = "1e9 s"'), "links.delay: invalid interval 1e+09 to 1e+09 s; expected 0 <= low"),
    (links('delay = { low_s = 1, high_s = 2, kind = "gamma" }'), "links.delay.kind: unknown distr"),
    (links('special = [{ from = "any", to = "any", delay = "2-1 s" }]'), "links.special[1].delay:"),
    # topologies
    (topology('kind = "mesh"\npeers = 0'), "topology.peers: 0; expected 1 or more"),
    (topology('kind = "hierarchy"\ngroups = []'), "topology.groups: empty; a hierarchy needs an i"),
    (topology('kind = "hierarchy"\ngroups = [3, 0]'), "topology.groups: 0; expected 1 or more"),
    (topology('kind = "hierarchy"\ngroups = "3 of 5"'), "topology.groups: invalid sizes '3 of 5';"),
    (topology('kind = "hierarchy"\ngroups = [1]\nexternal = -1'), "topology.external: -1; expecte"),
    (topology('kind = "pubsub"\nsubgroups = []\ntopics = 1'), "topology.subgroups: empty; expecte"),
    (topology('kind = "pubsub"\nsubgroups = [0]\ntopics = 1'), "topology.subgroups: 0; expected 1"),
    (topology('kind = "pubsub"\nsubgroups = [1]\ntopics = 0'), "topology.topics: 0; expected 1 or"),
    (
        topology('kind = "pubsub"\nsubgroups = [1]\ntopics = 2\nsubscribed = 3'),
        "topology.subscribed: 3; expected 1 to 2 (topics)",
    ),
    # links
    (links("loss = 1"), "links.loss: 1.0; expected a probability below 1"),
    (links("duplicate = -0.1"), "links.duplicate: -0.1; expected a probability below 1"),
    (links("buffer = 0"), "links.buffer: 0; expected 1 or more"),
    (links("service_s = -1"), "links.service_s: -1.0 s; expected 0 or more and at most 1e+06"),
    (links("partitions = [{ start_s = -1, end_s = 1, side = [0] }]"), "links.partitions[1].start_"),
    (
        links("partitions = [{ start_s = 2, end_s = 1, side = [0] }]"),
        "links.partitions[1].end_s: 1.0 s; expected more than start_s = 2.0 s and at most 1e+09",
    ),
    (links("partitions = [{ start_s = 0, end_s = 1, side = [] }]"), "links.partitions[1].side: em"),
    (links("partitions = [{ start_s = 0, end_s = 1, side = [3] }]"), "links.partitions[1].side: u"),
    (
        links("partitions = [{ start_s = 0, end_s = 1, side = [0, 1, 2, 0] }]"),
        "links.partitions[1].side: contains all 3 addresses; leave one on the other side",
    ),
    (
        links("partitions = [{ start_s = 0, end_s = 1e300, side = [0] }]"),
        "links.partitions[1].end_s: 1e+300 s; expected more than start_s = 0.0 s and at most 1e+09",
    ),
    (links("service_s = 1e300"), "links.service_s: 1e+300 s; expected 0 or more and at most 1e+06"),
    (links('special = [{ from = "boss", to = "any", delay = "1 s" }]'), "links.special[1].from: u"),
    (links('special = [{ from = "any", to = 3, delay = "1 s" }]'), "links.special[1].to: unknown "),
    (
        links('special = [{ from = "group:1", to = "any", delay = "1 s" }]'),
        "links.special[1].from: unknown address 'group:1'; write \"any\", a role (\"peer\"), ",
    ),
    # matrices
    (
        links("matrix = [[0, 1], [1]]"),
        "links.matrix: row 2 has 1 delays, expected 2: the matrix must be square",
    ),
    (links("matrix = []"), "links.matrix: empty; remove the key for delays without locations"),
    (links("matrix = [[1e300]]"), "links.matrix: delay 1e+300 s in row 1; expected 0 or more and "),
    (links("matrix = [[-1]]"), "links.matrix: delay -1.0 s in row 1; expected 0 or more and at mo"),
    # workloads
    (workload('kind = "sometimes"'), "workload.kind: unknown workload 'sometimes'; choose from pe"),
    (workload('kind = "poisson"\nrate_hz = -5'), "workload.rate_hz: -5.0 per second; expected mor"),
    (workload("total_hz = 0"), "workload.total_hz: 0.0 per second; expected more than 0"),
    (workload('interval = "0-10 ms"'), "workload.interval: low is 0 s; expected at least a micros"),
    (workload('interval = "1e-9 s"'), "workload.interval: low is 1e-09 s; expected at least a mic"),
    (workload('kind = "poisson"\nrate_hz = 1e9'), "workload.rate_hz: 1e+09 per second; expected 1"),
    (workload('kind = "poisson"\nrate_hz = 1e-300'), "workload.rate_hz: 1e-300 per second; expect"),
    (workload("total_hz = 1e308"), "workload.total_hz: 1e+308 per second of 3 peers; expected 3.3"),
    (workload("total_hz = 1e-308"), "workload.total_hz: 1e-308 per second of 3 peers; expected 3."),
    (workload('kind = "poisson"\ntotal_hz = 1e-300'), "workload.total_hz: 1e-300 per second of 3 "),
    (workload("silent = 3"), "workload.silent: 3 of 3 peers; at least one must send"),
    (workload("silent = -1"), "workload.silent: -1; expected 0 or more"),
    (workload("fanout = 0"), "workload.fanout: 0; expected 1 or more"),
    (workload("reply_fraction = 1.5"), "workload.reply_fraction: 1.5; expected a probability"),
    (workload("recent = 0"), "workload.recent: 0; expected 1 or more"),
    (workload("topics = 2"), "workload.topics: 2 topics per message; only pubsub has topics"),
    (workload('kind = "random"'), "workload.messages: missing; a random workload needs it"),
    (workload('kind = "replay"'), "workload.path: missing; a replay needs the path of a trace"),
    (workload("rate_hz = 5"), "workload.rate_hz: a periodic workload has no rate of a peer; it se"),
    (workload('kind = "poisson"\ninterval = "1 s"'), "workload.interval: a poisson workload has n"),
    (workload("messages = 5"), "workload.messages: a periodic workload has no number of messages"),
    (workload('kind = "random"\nmessages = 5\ntotal_hz = 5'), "workload.total_hz: a random worklo"),
    (workload('path = "x"'), "workload.path: a periodic workload reads no trace"),
    # clocks and run
    (clocks("accuracy_s = -1"), "clocks.accuracy_s: -1.0 s; expected 0 or more and at most 1e+06"),
    (clocks("accuracy_s = 1e300"), "clocks.accuracy_s: 1e+300 s; expected 0 or more and at most 1"),
    (
        clocks("accuracy_s = 1\ndrift_ppm = 5\nresync_s = 1e-7"),
        "clocks.resync_s: 1e-07 s; expected 0.001 or more",
    ),
    (clocks("drift_ppm = 5"), "clocks.resync_s: missing; a clock with drift_ppm needs it"),
    (clocks("drift_ppm = 5\nresync_s = 60"), "clocks.accuracy_s: a drift of 5.0 ppm exceeds 0.0 s"),
    (run("duration_s = 0"), "run.duration_s: 0.0 s; expected more than 0 and at most 1e+09"),
    (run("duration_s = 1e10"), "run.duration_s: 10000000000.0 s; expected more than 0 and at most"),
    (run("duration_s = 1\nwarm_s = 1"), "run.warm_s: 1.0 s; expected 0 or more and less than dura"),
    (run("sample_s = 0"), "run.sample_s: 0.0 s; expected more than 0"),
    # protocols
    (protocol('name = "bsss"'), "protocol.name: unknown protocol 'bsss'; did you mean bss? choose"),
    (
        protocol('name = "bss"\nvariant = "diferences"'),
        "protocol.variant: bss has no variant 'diferences'; did you mean differences? choose from ",
    ),
    (protocol('variant = "x"'), "protocol.variant: idr has no variant 'x'; there are none"),
    (
        protocol('name = "bss"\noptions = { diferences = true }'),
        "protocol.options.diferences: unknown option of bss; did you mean differences? choose from",
    ),
    (
        protocol('name = "linear"\noptions = { heartbeat_s = -1 }'),
        "protocol.options: linear rejects the options: heartbeat_s is -1; expected more than 0 sec",
    ),
    (
        protocol('name = "linear"\nwithout = ["keep"]\noptions = { keep = 1 }'),
        "protocol.without: keep also has a value in protocol.options; remove one",
    ),
    (protocol('name = "tv"'), "protocol.name: tv needs topology.kind = 'pubsub'; protocols for 'm"),
    (
        protocol('name = "hierarchical"'),
        "protocol.name: hierarchical needs topology.kind = 'hierarchy'; protocols for 'me",
    ),
    (TREE.replace('"hierarchical"', '"idr"'), "protocol.name: idr needs topology.kind = 'mesh'; p"),
    (TOPICS.replace('"tv"', '"hierarchical"'), "protocol.name: hierarchical needs topology.kind ="),
    (TREE + 'variant = "listing7"\n', "protocol.variant: hierarchical has no variant 'listing7'"),
    (TREE + 'options = { pruning = "some" }\n', "protocol.options: hierarchical rejects the optio"),
    (TOPICS + "[workload]\ntopics = 3\n", "workload.topics: 3 topics per message; expected at mos"),
    (
        TOPICS + "options = { bounds = { accuracy = 1 } }\n",
        "protocol.options.bounds.accuracy: unknown key; did you mean accuracy_s? choose from accur",
    ),
    (
        TOPICS + "options = { bounds = { least_s = 2, most_s = 1 } }\n",
        "protocol.options.bounds: bounds: channel delays",
    ),
    (
        workload("fanout = 1"),
        "workload.fanout: idr has no addressees; protocols with addressees: ses, sent, li",
    ),
    (
        protocol('name = "ses"\n[workload]\nfanout = 3'),
        "workload.fanout: 3 addressees; expected at most 2",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "says"), CASES, ids=[says[:40] for _, says in CASES])
def test_what_is_wrong_is_said_with_path_and_key(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "run.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read_config(path)
    assert str(caught.value).startswith(f"{path}: {says}")


@pytest.mark.parametrize(
    ("text", "line"),
    [("[topology\nkind = 3", 1), (MESH + "x = \n", 4), (MESH + MESH, 4), (MESH + "peers = 3\n", 4)],
)
def test_what_is_no_toml_is_said_with_its_line(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "run.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"invalid TOML: ") as caught:
        read_config(path)
    assert (caught.value.path, caught.value.line) == (str(path), line)


def test_files_that_can_not_be_read_or_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml: cannot read the file: No such file"):
        read_config(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="cannot read the file: Is a directory"):
        read_config(tmp_path)
    with pytest.raises(ConfigError, match="cannot write the file: Is a directory"):
        write_config(SimulationConfig(Mesh(3)), tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"not UTF-8 text \(byte 0\)"):
        read_config(tmp_path / "binary")
    (tmp_path / "deep").write_text("x = " + "[" * 100_000, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"nested too deep|invalid TOML"):
        read_config(tmp_path / "deep")
