"""From files to answers: what Python and the command line share."""

from steelyard.workflow.arm import Identification, KnownMass, identification, identify
from steelyard.workflow.contacts import collisions
from steelyard.workflow.data import Data, Run, drive_for, runs_of
from steelyard.workflow.payload import Weighing, weigh, weighing
from steelyard.workflow.stream import OnlineWeighing, weigh_online
from steelyard.workflow.wrist import WristRig, WristWeighing, contact, weigh_wrist, wrist_weighing

__all__ = [
    "Data",
    "Identification",
    "KnownMass",
    "OnlineWeighing",
    "Run",
    "Weighing",
    "WristRig",
    "WristWeighing",
    "collisions",
    "contact",
    "drive_for",
    "identification",
    "identify",
    "runs_of",
    "weigh",
    "weigh_online",
    "weigh_wrist",
    "weighing",
    "wrist_weighing",
]
