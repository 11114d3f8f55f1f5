"""Arms while they move: sources of rows, recording, tracking, and commands to controllers.

Only this package opens sockets to controllers and knows their clocks. Each name is imported when
it is first used, so that `steelyard stop` sends its command early.
"""

from typing import TYPE_CHECKING

from steelyard._lazy import lazy_attributes

if TYPE_CHECKING:
    from steelyard.live._addresses import source_of as source_of
    from steelyard.live._commands import MotionReport as MotionReport
    from steelyard.live._commands import move as move
    from steelyard.live._commands import restore_payload as restore_payload
    from steelyard.live._commands import set_payload as set_payload
    from steelyard.live._controller import Capabilities as Capabilities
    from steelyard.live._controller import Controller as Controller
    from steelyard.live._controller import ControllerPayload as ControllerPayload
    from steelyard.live._controller import ControllerStatus as ControllerStatus
    from steelyard.live._controller import MotionLink as MotionLink
    from steelyard.live._controller import MovableController as MovableController
    from steelyard.live._controller import Observation as Observation
    from steelyard.live._controller import PathCommand as PathCommand
    from steelyard.live._controller import PayloadRequest as PayloadRequest
    from steelyard.live._controller import ProgramState as ProgramState
    from steelyard.live._controller import SeenMotion as SeenMotion
    from steelyard.live._controller import SettingOutcome as SettingOutcome
    from steelyard.live._controller import SettingState as SettingState
    from steelyard.live._foxglove import Service as Service
    from steelyard.live._franka import FrankaConnection as FrankaConnection
    from steelyard.live._franka import FrankaController as FrankaController
    from steelyard.live._history import PayloadChange as PayloadChange
    from steelyard.live._history import PayloadHistory as PayloadHistory
    from steelyard.live._motion import MotionExtent as MotionExtent
    from steelyard.live._motion import MotionPlan as MotionPlan
    from steelyard.live._motion import MotionRequest as MotionRequest
    from steelyard.live._page_process import LivePage as LivePage
    from steelyard.live._page_process import PageOptions as PageOptions
    from steelyard.live._picks import PickStreamOptions as PickStreamOptions
    from steelyard.live._picks import live_picks as live_picks
    from steelyard.live._picks_page import PicksPage as PicksPage
    from steelyard.live._playing import Confirmation as Confirmation
    from steelyard.live._playing import MotionFailed as MotionFailed
    from steelyard.live._playing import MotionProgress as MotionProgress
    from steelyard.live._playing import MotionRun as MotionRun
    from steelyard.live._playing import MotionState as MotionState
    from steelyard.live._playing import Moved as Moved
    from steelyard.live._recorder import Recorded as Recorded
    from steelyard.live._recorder import Recorder as Recorder
    from steelyard.live._recorder import record as record
    from steelyard.live._replay import ReplaySource as ReplaySource
    from steelyard.live._ros2 import Ros2Controller as Ros2Controller
    from steelyard.live._ros2 import publish_payload as publish_payload
    from steelyard.live._ros2_connection import Ros2Connection as Ros2Connection
    from steelyard.live._ros2_publisher import Ros2Publisher as Ros2Publisher
    from steelyard.live._setting import PayloadSetting as PayloadSetting
    from steelyard.live._setting import Proposal as Proposal
    from steelyard.live._setup import Calibration as Calibration
    from steelyard.live._setup import SamplePath as SamplePath
    from steelyard.live._setup import Traces as Traces
    from steelyard.live._source import Connection as Connection
    from steelyard.live._source import Event as Event
    from steelyard.live._source import EventKind as EventKind
    from steelyard.live._source import Judge as Judge
    from steelyard.live._source import Row as Row
    from steelyard.live._source import Source as Source
    from steelyard.live._source import Stream as Stream
    from steelyard.live._stop import RestState as RestState
    from steelyard.live._stop import StopReport as StopReport
    from steelyard.live._stop import stop as stop
    from steelyard.live._torque import TorqueCalibration as TorqueCalibration
    from steelyard.live._torque import TorqueSetup as TorqueSetup
    from steelyard.live._track import StreamOptions as StreamOptions
    from steelyard.live._track import track as track
    from steelyard.live._track import track_stream as track_stream
    from steelyard.live._track import track_wrist as track_wrist
    from steelyard.live._ur import UrController as UrController
    from steelyard.live._view import Snapshot as Snapshot
    from steelyard.live._weigh_live import LiveWeighing as LiveWeighing
    from steelyard.live._weigh_live import WeighingRequest as WeighingRequest
    from steelyard.live._weigh_live import weigh_live as weigh_live
    from steelyard.live._weigher import LiveWeigher as LiveWeigher
    from steelyard.live._weigher import snapshots_of as snapshots_of
    from steelyard.live._wrist import WristCalibration as WristCalibration
    from steelyard.live._wrist import WristSetup as WristSetup

_MODULES = {
    "Calibration": "_setup",
    "Capabilities": "_controller",
    "Confirmation": "_playing",
    "Connection": "_source",
    "Controller": "_controller",
    "ControllerPayload": "_controller",
    "ControllerStatus": "_controller",
    "Event": "_source",
    "EventKind": "_source",
    "FrankaConnection": "_franka",
    "FrankaController": "_franka",
    "Judge": "_source",
    "LivePage": "_page_process",
    "LiveWeigher": "_weigher",
    "LiveWeighing": "_weigh_live",
    "MotionExtent": "_motion",
    "MotionFailed": "_playing",
    "MotionLink": "_controller",
    "MotionPlan": "_motion",
    "MotionProgress": "_playing",
    "MotionReport": "_commands",
    "MotionRequest": "_motion",
    "MotionRun": "_playing",
    "MotionState": "_playing",
    "MovableController": "_controller",
    "Moved": "_playing",
    "Observation": "_controller",
    "PageOptions": "_page_process",
    "PathCommand": "_controller",
    "PayloadChange": "_history",
    "PayloadHistory": "_history",
    "PayloadRequest": "_controller",
    "PayloadSetting": "_setting",
    "PickStreamOptions": "_picks",
    "PicksPage": "_picks_page",
    "ProgramState": "_controller",
    "Proposal": "_setting",
    "Recorded": "_recorder",
    "Recorder": "_recorder",
    "ReplaySource": "_replay",
    "RestState": "_stop",
    "Ros2Connection": "_ros2_connection",
    "Ros2Controller": "_ros2",
    "Ros2Publisher": "_ros2_publisher",
    "Row": "_source",
    "SamplePath": "_setup",
    "SeenMotion": "_controller",
    "Service": "_foxglove",
    "SettingOutcome": "_controller",
    "SettingState": "_controller",
    "Snapshot": "_view",
    "Source": "_source",
    "StopReport": "_stop",
    "Stream": "_source",
    "StreamOptions": "_track",
    "TorqueCalibration": "_torque",
    "TorqueSetup": "_torque",
    "Traces": "_setup",
    "UrController": "_ur",
    "WeighingRequest": "_weigh_live",
    "WristCalibration": "_wrist",
    "WristSetup": "_wrist",
    "live_picks": "_picks",
    "move": "_commands",
    "publish_payload": "_ros2",
    "record": "_recorder",
    "restore_payload": "_commands",
    "set_payload": "_commands",
    "snapshots_of": "_weigher",
    "source_of": "_addresses",
    "stop": "_stop",
    "track": "_track",
    "track_stream": "_track",
    "track_wrist": "_track",
    "weigh_live": "_weigh_live",
}

__all__ = sorted(_MODULES)

if not TYPE_CHECKING:  # a type checker sees the imports above
    __getattr__ = lazy_attributes(__name__, _MODULES)
