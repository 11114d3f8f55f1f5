"""A fleet of one real arm: its logs of two months, reduced, identified and weighed."""

from pathlib import Path

import pytest

import steelyard as sy
from fleet_logs import write_catalogue
from steelyard.fleet import Fleet

DATA = Path(__file__).parents[3] / "shared" / "data" / "ur10e"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no recordings in {DATA}")
EMPTY = ("ur-19_12_23_free", "ur-20_02_12-40sec_12harm", "ur-20_02_19_14harm50sec")
LOADED = {"ur-19_12_23_load": 1.069, "ur-20_02_19_14harm50secLoad": 2.805}


@pytest.mark.thorough
def test_a_real_arm_weighs_what_it_carried(tmp_path):
    known = sy.identify("ur10e", DATA / "unloaded" / f"{EMPTY[1]}.npz", friction="presliding")
    known.save(tmp_path / "model.json")
    rows = [{"file": DATA / "unloaded" / f"{name}.npz", "load": 0} for name in EMPTY]
    rows += [
        {"file": DATA / "loaded" / f"{name}.npz", "load": load} for name, load in LOADED.items()
    ]
    rows = [{"robot": "ur10e", "model": "model.json", **row} for row in rows]
    fleet = Fleet.build(write_catalogue(tmp_path, rows), tmp_path / "store", workers=1)
    assert fleet.identify()["ur10e"].verdict.ok
    for payload in fleet.weigh():
        assert payload.ok, payload.verdict
        assert abs(payload.error) < 3 * payload.mass_std + 0.02
        assert payload.mass_std < 0.06
