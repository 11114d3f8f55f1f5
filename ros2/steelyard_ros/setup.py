"""The ament_python package steelyard_ros: launch files for the command `steelyard track`."""

from glob import glob

from setuptools import setup

NAME = "steelyard_ros"

setup(
    name=NAME,
    version="0.1.0",
    packages=[NAME],
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        (f"share/{NAME}/launch", glob("launch/*.launch.py")),
    ],
    install_requires=["setuptools", "steelyard"],
    zip_safe=True,
    license="BSD-3-Clause",
    description="Weighs what a robot arm carries while it moves, and publishes the payload.",
)
