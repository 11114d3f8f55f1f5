"""Measured figures: the page and README.md show what benchmarks/figures.json holds."""

import json
import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "benchmarks" / "figures.py"))
DATA = json.loads((ROOT / "benchmarks" / "figures.json").read_text())


def test_the_page_is_up_to_date():
    page = (ROOT / "docs" / "reference" / "figures.md").read_text()
    assert page == SCRIPT["page"](DATA), "run python benchmarks/figures.py"


def test_the_readme_shows_five_figures_of_the_page():
    text = (ROOT / "README.md").read_text()
    assert text == SCRIPT["readme"](DATA, text), "run python benchmarks/figures.py"
    assert len(DATA["readme"]) == 5


def test_every_group_has_conditions_and_a_command_that_exists():
    assert len({group["id"] for group in DATA["groups"]}) == len(DATA["groups"])
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    missing = []
    for group in DATA["groups"]:
        assert group["conditions"].endswith((".", ")")), group["id"]
        assert all(len(row) == len(group["columns"]) for row in group["rows"]), group["id"]
        assert re.match(r"\d{1,2} [A-Z][a-z]+ 20\d\d", group["measured"]), group["id"]
        for target in re.findall(r"make (\w+)", group["command"]):
            missing += [target] * (target not in targets)
        for name in re.findall(r"benchmarks/run\.py (\w+)", group["command"]):
            if not (ROOT / "benchmarks" / f"bench_{name}.py").exists():
                missing.append(name)
    assert missing == []


def test_results_of_benchmarks_go_into_their_rows():
    row = ["mass error", "1 %", "other"]
    data = {"groups": [{"rows": [row], "results": {"mass error": "payload.mass"}}]}
    SCRIPT["update"](data, {"payload.mass": {"value": 0.3456, "unit": "%"}})
    assert row == ["mass error", "0.35 %", "other"]
