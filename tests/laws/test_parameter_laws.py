"""Tables of parameters: names, groups and masks, for every basis of every bundled robot."""

import numpy as np
import pytest

from steelyard.errors import UnknownName
from steelyard.identification._problem import RowMaker
from steelyard.robot import (
    Parameter,
    ParameterBasis,
    ParameterKind,
    ParameterTable,
    load_robot,
    robot_names,
)
from steelyard.robot._friction import FrictionLaw

LAWS = ("linear", "stribeck", "load")


def tables():
    """Every table that a bundled robot hands out."""
    for name in robot_names():
        robot = load_robot(name)
        yield name, robot.parameter_table
        basis = ParameterBasis.of(robot)
        yield name, ParameterBasis.of(robot, drive=False).parameters
        for law in LAWS:
            yield name, RowMaker(robot, basis).parameters(FrictionLaw.named(law, robot.n))


TABLES = list(tables())


def symbols(table):
    """The kinds of a table by string handling of its names, an independent definition."""
    return np.array([name.rstrip("r").rstrip("0123456789") for name in table.names])


def test_there_are_tables():
    assert len(TABLES) == 5 * len(robot_names())
    assert sum(len(table) for _, table in TABLES) > 1000


def test_printed_names_parse_to_the_same_parameters():
    for robot, table in TABLES:
        assert ParameterTable.parse(table.names) == table, robot
        assert [Parameter.parse(str(parameter)) for parameter in table] == list(table), robot


def test_groups_are_disjoint_and_complete():
    for robot, table in TABLES:
        groups = [table.links, table.rotors, table.friction, table.offsets]
        assert (np.sum(groups, axis=0) == 1).all(), robot
        np.testing.assert_array_equal(table.rigid, ~table.friction_and_offsets)


@pytest.mark.parametrize(
    ("group", "kinds"),
    [
        ("rotors", ("Ia",)),
        ("friction", ("Fc", "Fv", "Fs", "Fl")),
        ("offsets", ("B",)),
        ("daily", ("Fc", "Fv", "B", "Fs")),
        ("friction_and_offsets", ("Fc", "Fv", "B", "Fs", "Fl")),
    ],
)
def test_masks_agree_with_the_names(group, kinds):
    for _, table in TABLES:
        np.testing.assert_array_equal(getattr(table, group), np.isin(symbols(table), kinds))


def test_links_are_all_that_drives_do_not_have():
    for _, table in TABLES:
        drives = np.isin(symbols(table), ("Ia", "Fc", "Fv", "B", "Fs", "Fl"))
        np.testing.assert_array_equal(table.links, ~drives)


def test_selection_by_kind_and_joint_agrees_with_the_names():
    for _, table in TABLES:
        for kind in ParameterKind:
            np.testing.assert_array_equal(table.of_kind(kind), symbols(table) == kind.symbol)
        numbers = [int(name.rstrip("r").lstrip("ImFBaclsvxyz")) for name in table.names]
        np.testing.assert_array_equal(table.joints, np.array(numbers) - 1)
        np.testing.assert_array_equal(table.of_joint(1), np.array(numbers) == 2)


def test_values_by_kind_and_joint():
    table = ParameterTable.parse(["Izz1r", "Fc2", "Fv1", "Fc1"])
    kinds = (ParameterKind.COULOMB, ParameterKind.VISCOUS, ParameterKind.STRIBECK)
    values = table.of_kinds_by_joint(np.array([9.0, 1.0, 2.0, 3.0]), kinds, 2)
    np.testing.assert_array_equal(values, [[3.0, 1.0], [2.0, 0.0], [0.0, 0.0]])


def test_a_part_of_a_table():
    table = ParameterTable.parse(["m1", "Ia1", "Fc1r", "B1"])
    assert table.take(table.offsets | table.links).names == ("m1", "B1")
    assert table.take(np.array([2, 0])).names == ("Fc1r", "m1")
    assert table[1:3].names == ("Ia1", "Fc1r")
    assert table[2] == Parameter(ParameterKind.COULOMB, 0, regrouped=True)
    assert table[2].symbol == "Fc1"


def test_units_are_those_of_the_kind():
    units = [Parameter.parse(name).unit for name in ("m1", "mx2", "Ixy3", "Ia1", "Fc1", "Fl2")]
    assert units == ["kg", "kg m", "kg m²", "kg m²", "Nm", "Nm/Nm"]


def test_masks_are_read_only():
    table = ParameterTable.parse(["m1", "Fc1"])
    with pytest.raises(ValueError, match="read-only"):
        table.friction[0] = True


@pytest.mark.parametrize("name", ["", "Fc", "Fc0", "Fx1", "1Fc", "Izz1rr", "Fc1 ", "gain1"])
def test_other_names_are_refused(name):
    with pytest.raises(UnknownName, match="is no parameter: names look like"):
        Parameter.parse(name)
