"""Rules of wording: docstrings, comments, names and pages.

    python -m tools.words [PATH ...]

`CONTRIBUTING.md` names the rules. Paths are files and folders (default: CHECKED).
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ROOT: Final = Path(__file__).resolve().parents[1]
PROGRAMS: Final = ("bench", "examples", "pipeline", "scripts", "tools")
"""Folders of programs. Their classes may have the names of other classes."""
CHECKED: Final = ("README.md", "CONTRIBUTING.md", "docs", "src/antecede", *PROGRAMS)
"""Files and folders that keep the rules."""
FIRST: Final = _words(
    "what who whom whose how that whether where which so when why nobody somebody everybody"
)
"""Words that begin no docstring."""
TERMS: Final = re.compile(
    r"\b(?:somebody|nobody|everybody|anybody|whoever|whom|oneself|one's(?! complement)|"
    r"put out for good|handed on|is none of|are none of|by looking|"
    r"laggards?|upkeep|outflow|diary)\b",
    re.IGNORECASE,
)
"""Words without a plain meaning here."""
LONG: Final = 25
LONGEST: Final = 40
"""Words in a sentence: 95 % have at most LONG, all have at most LONGEST."""
IRREGULAR: Final = _words(
    "asked begun begotten bound broken brought built chosen done drawn driven fallen felt "
    "found given gone got heard held hidden kept known laid left lent lost made meant met "
    "paid said seen sent shown sold spent spoken spoilt stuck taken taught thought thrown "
    "told torn understood woken won worn written"
)
NO_PARTICIPLES: Final = _words(
    "bring embed exceed feed need proceed ring seed speed string sting succeed ping"
)
EXCEPTIONS: Final = _words("held happened_before View Message Delays Status")
"""Names of functions and classes that the rules do not cover; at most ten.

The classes are public names of `antecede.live` beside those of another package.
"""


class Text(NamedTuple):
    """A docstring, a comment or a paragraph of a page."""

    path: Path
    line: int
    kind: str
    words: str


class Problem(NamedTuple):
    """A violation of a rule at a line of a file."""

    path: Path
    line: int
    rule: str
    words: str

    def __str__(self) -> str:
        """Return file, line, rule and the words in question."""
        return f"{self.path}:{self.line}: {self.rule}: {self.words}"


def find_problems(paths: Iterable[Path]) -> list[Problem]:
    """Return the violations in Python files and Markdown pages of files and folders."""
    problems, texts = list[Problem](), list[Text]()
    classes = defaultdict[str, list[tuple[Path, int]]](list)
    for path in list_files(paths):
        source = path.read_text(encoding="utf-8")
        problems += check_paths(path, source)
        if path.suffix == ".md":
            texts += read_page(path, source)
            continue
        tree = ast.parse(source)
        texts += [*read_docstrings(path, tree), *read_comments(path, source)]
        problems += check_names(path, tree)
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not _is_program(path):
                classes[node.name].append((path, node.lineno))
    for name, places in classes.items():
        others = ", ".join(str(path) for path, _ in places[1:])
        if others and name not in EXCEPTIONS:
            problems.append(Problem(*places[0], "duplicate class", f"{name} also in {others}"))
    return sorted({*problems, *check_texts(texts)})


def _is_program(path: Path) -> bool:
    return any(path.resolve().is_relative_to(ROOT / folder) for folder in PROGRAMS)


def check_paths(path: Path, source: str) -> Iterator[Problem]:
    """Yield back-quoted paths and module names of the project that do not exist."""
    for number, line in enumerate(source.splitlines(), 1):
        for name in re.findall(
            r"`((?:src|docs|tests|bench|tools|examples|scenarios)/[\w./-]+)`", line
        ):
            if not (ROOT / name).exists():
                yield Problem(path, number, "path", name)
        for name in re.findall(r"`(antecede(?:\.[a-z_]+)+)`", line):
            if not _is_name(name):
                yield Problem(path, number, "path", name)


def _is_name(dotted: str) -> bool:
    """Return whether a dotted name is a module, or a name in the source of its parent module."""
    place = ROOT / "src" / dotted.replace(".", "/")
    if place.is_dir() or place.with_suffix(".py").exists():
        return True
    parent = (
        place.parent / "__init__.py" if place.parent.is_dir() else place.parent.with_suffix(".py")
    )
    return (
        parent.exists() and re.search(rf"\b{place.name}\b", parent.read_text("utf-8")) is not None
    )


def list_files(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the Python files and pages of files and folders, in order."""
    for path in paths:
        found = path.rglob("*") if path.is_dir() else [path]
        yield from sorted(one for one in found if one.suffix in (".py", ".md"))


def read_docstrings(path: Path, tree: ast.Module) -> Iterator[Text]:
    """Yield the docstrings of a module, its classes, functions and attributes."""
    for node in ast.walk(tree):
        for before, child in zip([None, *_body_of(node)], _body_of(node), strict=False):
            if not isinstance(child, ast.Expr) or not isinstance(child.value, ast.Constant):
                continue
            if isinstance(child.value.value, str):
                kind = "attribute" if before is not None else type(node).__name__
                yield Text(path, child.lineno, kind, inspect.cleandoc(child.value.value))


def _body_of(node: ast.AST) -> list[ast.stmt]:
    body = getattr(node, "body", [])
    return body if isinstance(body, list) else []


def read_comments(path: Path, source: str) -> Iterator[Text]:
    """Yield the comments, those of consecutive lines together."""
    begin, last, column, words = 0, 0, 0, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        (line, at), text = token.start, token.string.lstrip("#! ")
        if re.match(r"(noqa|type:|pragma|fmt:|mypy:)", text):
            continue
        if line != last + 1 or at != column:
            if words:
                yield Text(path, begin, "comment", " ".join(words))
            begin, words = line, []
        last, column = line, at
        words.append(re.sub(r"\s+#\s*(noqa|type:).*", "", text))
    if words:
        yield Text(path, begin, "comment", " ".join(words))


def read_page(path: Path, source: str) -> Iterator[Text]:
    """Yield the paragraphs and list entries of a page, without code, tables and headings."""
    without_code = re.sub(r"^(```|~~~).*?^\1", _blank, source, flags=re.DOTALL | re.MULTILINE)
    begin, words = 0, list[str]()
    for number, line in enumerate([*without_code.splitlines(), ""], 1):
        stripped = line.strip()
        ends = not stripped or re.match(r"[#|<!]|[-*] |\d+\. ", stripped)
        if ends and words:
            yield Text(path, begin, "page", " ".join(words))
            words = []
        if stripped and not re.match(r"[#|<!]|    ", line):
            begin = begin if words else number
            words.append(re.sub(r"^([-*]|\d+\.) ", "", stripped))


def _blank(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def check_texts(texts: Iterable[Text]) -> Iterator[Problem]:
    """Yield the violations in texts: first words, terms, and lengths of sentences."""
    long, count = list[Problem](), 0
    for text in texts:
        first = re.match(r"\W*([\w']+)", text.words)
        if text.kind not in ("comment", "page") and first and first[1].lower() in FIRST:
            yield Problem(text.path, text.line, "first word", _short(text.words))
        for term in TERMS.finditer(_plain(text.words)):
            yield Problem(text.path, text.line, "term", f"{term[0]!r} in {_short(text.words)}")
        for sentence in split_sentences(text.words):
            count += 1
            size = len(sentence.split())
            if size > LONG:
                rule = "sentence" if size > LONGEST else "long sentence"
                long.append(Problem(text.path, text.line, f"{rule} of {size} words", sentence))
    yield from (one for one in long if one.rule.startswith("sentence"))
    if len(long) > count * 0.05:
        yield from (one for one in long if one.rule.startswith("long"))


def split_sentences(words: str) -> list[str]:
    """Return the sentences of a text; code counts as a word; examples and tables are left out."""
    paragraphs = [one for one in _plain(words).split("\n\n") if ">>>" not in one]
    lines = "\n\n".join(paragraphs).splitlines()
    prose = "\n".join(line for line in lines if not line.startswith(("    ", "|")))
    parts = re.split(
        r"(?<=[.!?:;])[\"')*]*\s+(?=[\"'(*\[]*[A-Z0-9`-])|\n\s*\n|\n\s*(?:[-*]|\d+\.) ", prose
    )
    return [one for part in parts if part and (one := " ".join(part.split()))]


def _plain(words: str) -> str:
    """Return a text with code and link targets as one word."""
    return re.sub(r"``?[^`]+``?", "CODE", re.sub(r"\]\([^)]*\)", "]", words))


def _short(words: str) -> str:
    line = words.strip().split("\n")[0]
    return line if len(line) < 90 else line[:87] + "..."


def check_names(path: Path, tree: ast.Module) -> Iterator[Problem]:
    """Yield the functions that are named by a participle; values of properties may be.

    Names in camel case belong to interfaces of Java.
    """
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        decorators = {getattr(one, "attr", getattr(one, "id", "")) for one in node.decorator_list}
        first = node.name.strip("_").split("_")[0]
        if decorators & {"property", "cached_property"} or node.name in EXCEPTIONS:
            continue
        if first.islower() and is_participle(first) and not node.name.endswith("__"):
            yield Problem(path, node.lineno, "function name", node.name)


def is_participle(word: str) -> bool:
    """Return whether a word is a participle by its ending, or an irregular one."""
    if word in NO_PARTICIPLES or (len(word) < 5 and word not in IRREGULAR):
        return False
    return word in IRREGULAR or word.endswith(("ed", "ing"))


def main(arguments: list[str]) -> int:
    """Print the violations in the given files and folders; return the exit code."""
    problems = find_problems([Path(one) for one in arguments] or [ROOT / one for one in CHECKED])
    for problem in problems:
        print(problem)
    counts = defaultdict[str, int](int)
    for problem in problems:
        counts[re.sub(r" of \d+ words", "", problem.rule)] += 1
    print(*(f"{count} {rule}" for rule, count in sorted(counts.items())), sep=", ")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
