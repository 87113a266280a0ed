"""Check of the files and metadata in a wheel; exits with the problems.

python scripts/check_wheel.py dist
"""

import sys
import zipfile
from email.parser import Parser
from pathlib import Path

NEEDED = (
    "antecede/py.typed",
    "antecede/spark/log4j2.properties",
    "antecede/live/chat/page.html",
    "antecede/core/pages/assets/text.js",
    "antecede/lab/play/assets/modules.txt",
    "antecede/lab/play/exercises/",
    "antecede/lab/report/templates/",
    "antecede/lab/reproductions/hierarchy/page.toml",
    "antecede/lab/simulate/templates/",
    "antecede/tables/view/assets/main.js",
)
"""Files and folders that are loaded at run time only."""


def find_problems(wheel: Path) -> list[str]:
    """Return the problems of a wheel as text."""
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
        metadata = Parser().parsestr(
            file.read(next(n for n in names if n.endswith("METADATA"))).decode()
        )
    found = [f"{need} is missing" for need in NEEDED if not any(n.startswith(need) for n in names)]
    inside = ("antecede/", f"antecede-{metadata['Version']}.dist-info/")
    found += [f"{name} does not belong there" for name in names if not name.startswith(inside)]
    if not any(name.endswith("licenses/LICENSE") for name in names):
        found.append("the licence is missing")
    if metadata["License-Expression"] != "Apache-2.0":
        found.append(f"its licence is {metadata['License-Expression']!r}")
    needs = metadata.get_all("Requires-Dist") or []
    found += [f"the core needs {need}" for need in needs if "extra ==" not in need]
    return found


if __name__ == "__main__":
    wheels = sorted(Path(sys.argv[1]).glob("*.whl"))
    wrong = [] if len(wheels) == 1 else [f"{len(wheels)} wheels in {sys.argv[1]}, not one"]
    wrong += [f"{wheel.name}: {line}" for wheel in wheels for line in find_problems(wheel)]
    sys.exit("\n".join(wrong) or 0)
