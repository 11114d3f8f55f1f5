"""ABB RAPID: a loaddata, principal moments about the centre of gravity and a quaternion of their axes."""

from __future__ import annotations

from steelyard.errors import UnknownName
from steelyard.io.export.load import Load
from steelyard.io.export.principal import principal_inertia, quaternion
from steelyard.io.export.words import decimal, decimals, head

_LONGEST_NAME = 32
_UNITS = (
    "kg; mm; quaternion (scalar first) of the principal axes in this frame; principal moments in kg m^2"
    " about the centre of gravity, which is the centre of mass"
)


def rapid(load: Load) -> str:
    """The declaration of a loaddata.

    Args:
        load: in the frame that RAPID reads it in
    """
    if len(load.name) > _LONGEST_NAME or not load.name[0].isalpha():
        raise UnknownName(
            f"a name in RAPID begins with a letter and has at most {_LONGEST_NAME} characters,"
            f" got '{load.name}'"
        )
    moments, axes = principal_inertia(load.body)
    notes = [
        "loaddata: mass, centre of gravity, axes of moment, ix, iy, iz.",
        "RAPID reads the load of a tool (tload of tooldata) in the wrist frame tool0, but a payload"
        " (GripLoad) in the frame of the active tool: for that give the flange's pose in the tool frame.",
    ]
    told = [f"! {words}" for words in head(load, "ABB RAPID", _UNITS, notes=notes)]
    com, turn = ",".join(decimals(1e3 * load.body.com, 4)), ",".join(decimals(quaternion(axes), 9))
    numbers = f"{decimal(load.body.mass, 6)},[{com}],[{turn}],{','.join(decimals(moments, 9))}"
    return "\n".join([*told, f"PERS loaddata {load.name} := [{numbers}];", ""])
