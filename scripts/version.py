"""Print the version of the package without importing it."""

import ast
from pathlib import Path

TREE = ast.parse((Path(__file__).parents[1] / "src" / "antecede" / "__init__.py").read_text())
for node in TREE.body:
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__version__":
        print(ast.literal_eval(node.value))
