"""JMESPath expressions: selected values and error messages."""

from __future__ import annotations

from typing import Any

import pytest

from antecede.errors import InputError
from antecede.tables.trace.expressions import compile_expression, select_values


@pytest.mark.parametrize(
    ("text", "record", "values"),
    [
        ("id", {"id": "a"}, ["a"]),
        ("id", {"id": 0}, [0]),
        ("id", {"id": ""}, [""]),
        ("id", {"id": False}, [False]),
        ("id", {}, []),
        ("id", {"id": None}, []),
        ("after", {"after": ["a", None, ["b"]]}, ["a", None, ["b"]]),
        ("tags[?[0]=='e'][1]", {"tags": [["e", "x"], ["p", "y"], ["e", "z"]]}, ["x", "z"]),
        ('content."m.relates_to".event_id', {"content": {"m.relates_to": {"event_id": 1}}}, [1]),
        ("join('/', [source, id])", {"source": "a", "id": "b"}, ["a/b"]),
        ("a[].b", {"a": [{"b": 1}, {}, {"b": 2}]}, [1, 2]),
        ("x == `b`", {"x": "b"}, [True]),
    ],
)
def test_values_of_a_record(text: str, record: Any, values: list[Any]) -> None:
    assert select_values(compile_expression(text, "--id"), record) == values


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "cannot be empty"),
        ("a[", "incomplete after character 2"),
        ("a b", "at character 3: 'b'"),
        ("a.#b", "at character 3: '#b'"),
        ("a.'b", "Unclosed ' delimiter at character 3"),
        ("nope(a)", "unknown function nope(); choose from abs"),
        ("a[?nope(@)]", "unknown function nope()"),
        ("join('/')", "join() takes 2 arguments, got 1"),
        ("not_null()", "not_null() takes at least 1 arguments, got 0"),
        ("[" * 20_000, ""),
        ("a[" + "9" * 5000 + "]", ""),
    ],
)
def test_a_wrong_expression_is_named_with_its_option(text: str, where: str) -> None:
    with pytest.raises(InputError) as caught:
        compile_expression(text, "--after")
    assert f"--after: invalid JMESPath expression {text!r}: " in str(caught.value)
    assert where in str(caught.value)


@pytest.mark.parametrize("text", ["length(a)", "b[::0]", "sort_by(b, &c)", "join(',', b)"])
def test_a_function_that_rejects_a_record_names_option_and_expression(text: str) -> None:
    expression = compile_expression(text, "--id")
    with pytest.raises(InputError) as caught:
        select_values(expression, {"a": 1, "b": [{"c": 1}, {"c": "x"}]})
    assert f"--id: {text!r} fails for this record" in str(caught.value)
