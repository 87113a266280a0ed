"""The values that an application is handed: documented fields, and texts that lead back to them."""

from __future__ import annotations

import ast
import inspect

import pytest

from antecede.errors import LocalError
from antecede.live import Id, events


@pytest.mark.parametrize("name", ["Id", "Message", "View", "Change", "MessagesAbandoned"])
def test_every_field_is_documented(name: str) -> None:
    tree = ast.parse(inspect.getsource(getattr(events, name)))
    body = tree.body[0].body  # type: ignore[attr-defined]
    fields = [k for k, one in enumerate(body) if isinstance(one, ast.AnnAssign)]
    assert fields
    for k in fields:
        documented = isinstance(body[k + 1], ast.Expr) and isinstance(body[k + 1].value.value, str)
        assert documented, ast.unparse(body[k])


def test_the_text_of_an_id_leads_back_to_it() -> None:
    one = Id("a: strange, name~0a1b2c3d", 7)
    assert Id.from_text(str(one)) == one
    with pytest.raises(LocalError, match="NAME~INCARNATION:NUMBER"):
        Id.from_text("alice:7")
