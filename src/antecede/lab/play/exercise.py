"""Exercises of the playground: a scenario, and questions with computed answers.

An exercise is a TOML file of `exercises/`: `title`, `group`, `order`, `source`, `about`, the `text`
of its scenario, `protocols`, and `questions`. A question has `ask`, an optional `hint`, `answer`,
and `facts`: names, and queries of `antecede.lab.play.answers`. `{name}` in an answer stands for the
value of a fact, so answers contain no fixed numbers.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Final, NamedTuple

from antecede.errors import InputError
from antecede.lab.play.answers import compute_fact, describe_fact

_PLACEHOLDER: Final = re.compile(r"\{([a-z_0-9]+)\}")
GROUPS: Final = (
    "Channels",
    "Birman, Schiper and Stephenson",
    "Schiper, Eggli and Sandoz",
    "Matrix time",
    "Global states",
    "Peers and super peers",
    "Linear and physical clocks",
    "Replies",
    "Topics",
)
BEHAVIOR_FACTS: Final = {
    "held",
    "delivered",
    "state",
    "in-flight",
    "violations",
    "causal-violations",
    "channels",
}


class Question(NamedTuple):
    """Question of an exercise."""

    ask: str
    answer: str
    facts: Mapping[str, str] = {}
    hint: str = ""


class Exercise(NamedTuple):
    """Parsed exercise file."""

    name: str
    title: str
    group: str
    order: int
    source: str
    about: str
    text: str
    protocols: tuple[str, ...]
    questions: tuple[Question, ...]
    relation: str = ""

    @property
    def hides_outcomes(self) -> bool:
        """True if the diagrams would show the answers."""
        facts = (fact for question in self.questions for fact in question.facts.values())
        return any(fact.split()[0] in BEHAVIOR_FACTS for fact in facts)


class ExerciseAnswer(NamedTuple):
    """Answer and its facts: (subject, value)."""

    answer: str
    facts: tuple[tuple[str, str], ...]


@cache
def list_exercises() -> tuple[Exercise, ...]:
    """Return all exercises in display order."""
    folder = resources.files("antecede.lab.play") / "exercises"
    files = (one for one in folder.iterdir() if one.name.endswith(".toml"))
    exercises = (
        _read_exercise(one.name.removesuffix(".toml"), one.read_text("utf-8")) for one in files
    )
    return tuple(sorted(exercises, key=lambda one: (GROUPS.index(one.group), one.order, one.name)))


def find_exercise(name: str) -> Exercise:
    """Return an exercise by name; raises InputError for an unknown one."""
    for one in list_exercises():
        if one.name == name:
            return one
    names = ", ".join(one.name for one in list_exercises())
    raise InputError(f"unknown exercise '{name}'; choose from {names}")


def compute_answer(name: str, question: int) -> ExerciseAnswer:
    """Compute the answer to a question (from 0) of an exercise; raises InputError."""
    exercise = find_exercise(name)
    if not 0 <= question < len(exercise.questions):
        number = len(exercise.questions)
        raise InputError(
            f"{name} has {number} questions, from 0; question {question} does not exist"
        )
    asked_question = exercise.questions[question]
    values = {
        fact: compute_fact(exercise.text, query) for fact, query in asked_question.facts.items()
    }
    text = _PLACEHOLDER.sub(lambda match: values[match[1]], asked_question.answer)
    facts = tuple(
        (describe_fact(asked_question.facts[fact]), value) for fact, value in values.items()
    )
    return ExerciseAnswer(text, facts)


def _read_exercise(name: str, text: str) -> Exercise:
    fields: Mapping[str, Any] = tomllib.loads(text)
    questions = tuple(
        Question(
            _unwrap(one["ask"]),
            _unwrap(one["answer"]),
            one.get("facts", {}),
            _unwrap(one.get("hint", "")),
        )
        for one in fields["questions"]
    )
    return Exercise(
        *(name, fields["title"], fields["group"], fields["order"], fields["source"]),
        *(_unwrap(fields["about"]), fields["text"].lstrip("\n"), tuple(fields["protocols"])),
        questions,
        fields.get("relation", ""),
    )


def _unwrap(text: str) -> str:
    parts = (part for part in re.split(r"\n\s*\n", text) if part.strip())
    return "\n\n".join(" ".join(part.split()) for part in parts)
