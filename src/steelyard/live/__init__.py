"""Arms while they move: sources of rows, recording, tracking, and commands to controllers.

Only this package opens sockets to controllers and knows their clocks.
"""

from steelyard.live._addresses import source_of
from steelyard.live._commands import (
    MotionReport,
    move,
    restore_payload,
    set_payload,
)
from steelyard.live._controller import (
    Capabilities,
    Controller,
    ControllerPayload,
    ControllerStatus,
    MovableController,
    SettingOutcome,
    SettingState,
)
from steelyard.live._franka import FrankaController
from steelyard.live._history import PayloadChange, PayloadHistory
from steelyard.live._motion import MotionExtent, MotionPlan, MotionRequest
from steelyard.live._page_process import LivePage, PageOptions
from steelyard.live._picks import PickStreamOptions, live_picks
from steelyard.live._picks_page import PicksPage
from steelyard.live._playing import MotionFailed, MotionProgress, MotionRun, MotionState, Moved
from steelyard.live._recorder import Recorded, Recorder, record
from steelyard.live._replay import ReplaySource
from steelyard.live._ros2 import Ros2Controller, publish_payload
from steelyard.live._ros2_publisher import Ros2Publisher
from steelyard.live._setting import PayloadSetting, Proposal
from steelyard.live._source import Event, EventKind, Row, Source, Stream
from steelyard.live._stop import RestState, StopReport, stop
from steelyard.live._torque import TorqueSetup
from steelyard.live._track import StreamOptions, track, track_stream, track_wrist
from steelyard.live._ur import UrController
from steelyard.live._view import Snapshot
from steelyard.live._weigh_live import LiveWeighing, WeighingRequest, weigh_live
from steelyard.live._weigher import LiveWeigher, snapshots_of
from steelyard.live._wrist import WristSetup

__all__ = [
    "Capabilities",
    "Controller",
    "ControllerPayload",
    "ControllerStatus",
    "Event",
    "EventKind",
    "FrankaController",
    "LivePage",
    "LiveWeigher",
    "LiveWeighing",
    "MotionExtent",
    "MotionFailed",
    "MotionPlan",
    "MotionProgress",
    "MotionReport",
    "MotionRequest",
    "MotionRun",
    "MotionState",
    "MovableController",
    "Moved",
    "PageOptions",
    "PayloadChange",
    "PayloadHistory",
    "PayloadSetting",
    "PickStreamOptions",
    "PicksPage",
    "Proposal",
    "Recorded",
    "Recorder",
    "ReplaySource",
    "RestState",
    "Ros2Controller",
    "Ros2Publisher",
    "Row",
    "SettingOutcome",
    "SettingState",
    "Snapshot",
    "Source",
    "StopReport",
    "Stream",
    "StreamOptions",
    "TorqueSetup",
    "UrController",
    "WeighingRequest",
    "WristSetup",
    "live_picks",
    "move",
    "publish_payload",
    "record",
    "restore_payload",
    "set_payload",
    "snapshots_of",
    "source_of",
    "stop",
    "track",
    "track_stream",
    "track_wrist",
    "weigh_live",
]
