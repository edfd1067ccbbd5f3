"""Makes the checkout itself the package gaixie, whatever its folder is called."""

from setuptools import find_packages, setup

ROOMS = ("jobs", "research", "service", "training", "udfs")
found = find_packages(include=[*ROOMS, *(f"{room}.*" for room in ROOMS)])
setup(
    packages=["gaixie", *(f"gaixie.{name}" for name in found)],
    package_dir={"gaixie": "."},
    script_name="setup.py",  # which is no module of the package
)
