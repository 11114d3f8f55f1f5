"""`steelyard robots`: the bundled arms."""

from steelyard.cli.output import JsonFlag, print_json, print_table


def command(as_json: JsonFlag = False) -> None:
    """Lists the bundled arms."""
    from steelyard.robot import load_robot, robot_names

    arms = [load_robot(name) for name in robot_names()]
    if as_json:
        print_json({"robots": [{"name": a.name, "joints": a.n, "source": a.source} for a in arms]})
        return
    rows = [(arm.name, str(arm.n), arm.source.split(". ")[0]) for arm in arms]
    title = "Bundled arms (a .urdf or .toml file will do as well)"
    print_table(title, ("name", "joints", "arm"), rows, words=(0, 2))
