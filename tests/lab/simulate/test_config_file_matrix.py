"""Measured latencies in a scenario: units, round trips, zeros, asymmetry, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from antecede.errors import ConfigError
from antecede.lab.simulate.config.file import read_config
from antecede.lab.simulate.config.latency_matrix import read_matrix

ASYMMETRIC = "0 10 20\n30,0;0\n\n40\t50\t0\n"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "places.txt"
    path.write_text(text, encoding="utf-8")
    return path


def config(tmp_path: Path, matrix: str) -> Path:
    path = tmp_path / "run.toml"
    text = f'[topology]\nkind = "mesh"\npeers = 3\n[links]\nmatrix = {matrix}\n'
    path.write_text(text, encoding="utf-8")
    return path


def test_a_matrix_becomes_one_way_seconds(tmp_path: Path) -> None:
    path = written(tmp_path, "0 10\n30 0\n")
    assert read_matrix(path, "s", False) == ((0.0, 10.0), (30.0, 0.0))
    assert read_matrix(path, "ms", False) == ((0.0, 0.01), (0.03, 0.0))
    assert read_matrix(path, "ms", True) == ((0.0, 0.005), (0.015, 0.0))


def test_zeros_off_the_diagonal_must_be_explained(tmp_path: Path) -> None:
    path = written(tmp_path, ASYMMETRIC)
    with pytest.raises(
        ConfigError, match=r"1 of 6 delays between locations are 0 .*row 2, column 3"
    ):
        read_matrix(path, "s", False)
    assert read_matrix(path, "s", False, "keep")[1] == (30.0, 0.0, 0.0)
    assert read_matrix(path, "s", False, "reverse")[1] == (30.0, 0.0, 50.0)
    assert read_matrix(path, "s", False, "median")[1] == (30.0, 0.0, 30.0)


def test_zeros_both_ways_take_the_median(tmp_path: Path) -> None:
    path = written(tmp_path, "0 0 1\n0 0 2\n3 4 0\n")
    assert read_matrix(path, "s", False, "reverse") == ((0, 2.5, 1), (2.5, 0, 2), (3, 4, 0))


def test_a_file_beside_the_scenario_is_read(tmp_path: Path) -> None:
    written(tmp_path, "0 10\n30 0\n")
    path = config(tmp_path, '{ path = "places.txt", unit = "ms", round_trip = false }')
    assert read_config(path).links.matrix == ((0.0, 0.01), (0.03, 0.0))


@pytest.mark.parametrize(
    ("text", "matrix", "says"),
    [
        ("0 1\n2\n", '{ path = "places.txt", unit = "s", round_trip = true }',
         "links.matrix.path: {places}:2: row 2 has 1 delays, expected 2: the matrix must"),
        ("0 1\n2 x\n", '{ path = "places.txt", unit = "s", round_trip = true }',
         "links.matrix.path: {places}:2: invalid number 'x'"),
        ("0 1\n-2 0\n", '{ path = "places.txt", unit = "s", round_trip = true }',
         "links.matrix.path: {places}:2: invalid delay -2"),
        ("0 nan\n2 0\n", '{ path = "places.txt", unit = "s", round_trip = true }',
         "links.matrix.path: {places}:1: invalid delay nan"),
        ("", '{ path = "places.txt", unit = "s", round_trip = true }', "links.matrix: empty; remo"),
        ("0", '"places.txt"', "links.matrix.unit: missing; one of s, ms"),
        ("0", '{ path = "places.txt", unit = "s" }', "links.matrix.round_trip: missing; true:"),
        ("0", '{ unit = "s", round_trip = true }', "links.matrix.path: missing"),
        ("0", '{ path = "places.txt", unit = "min", round_trip = true }',
         "links.matrix.unit: unknown value 'min'; choose from s, ms"),
        ("0", '{ path = "places.txt", unit = "s", round_trip = true, zeros = "no" }',
         "links.matrix.zeros: unknown value 'no'; choose from keep, reverse, median"),
        ("0", '{ path = "places.txt", unit = "s", round_trip = true, zero = "no" }',
         "links.matrix.zero: unknown key; did you mean zeros?"),
        ("0", '{ path = "none.txt", unit = "s", round_trip = true }',
         "links.matrix.path: {none}: cannot read the file: No such file"),
        ("0", "3", "links.matrix: 3; expected a table"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_key_and_row(
    tmp_path: Path, text: str, matrix: str, says: str
) -> None:
    places, none = written(tmp_path, text), tmp_path / "none.txt"
    with pytest.raises(ConfigError) as caught:
        read_config(config(tmp_path, matrix))
    says = says.format(places=places, none=none)
    assert str(caught.value).startswith(f"{tmp_path / 'run.toml'}: {says}")


def test_seattle_is_read_with_its_zeros_and_asymmetry(shared_data: Path) -> None:
    path = shared_data / "latency" / "SeattleData_1"
    with pytest.raises(ConfigError, match="65 of 9702 delays between locations are 0"):
        read_matrix(path, "s", True)
    matrix = read_matrix(path, "s", True, "reverse")
    assert len(matrix) == 99
    assert matrix[0][1] == 0.17 / 2
    assert any(matrix[a][b] != matrix[b][a] for a in range(99) for b in range(a))
    assert all(matrix[a][b] for a in range(99) for b in range(99) if a != b)
