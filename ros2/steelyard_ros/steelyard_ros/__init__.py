"""Launch files of steelyard for ROS 2; the node is the command `steelyard track`."""
