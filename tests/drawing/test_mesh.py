"""Surfaces with fewer triangles keep their shape, their edges and their side."""

import base64

import numpy as np
import pytest

from steelyard.drawing import Scene
from steelyard.drawing._mesh import Mesh, simplified

CUBE_FACES = ((0, 1, 2), (1, 2, 0), (2, 0, 1))


def sphere(rings=60):
    """A unit sphere as rings of corners; each quadrangle is two triangles."""
    angles = np.linspace(0, np.pi, rings + 1)
    around = np.linspace(0, 2 * np.pi, 2 * rings, endpoint=False)
    high, turn = (grid.ravel() for grid in np.meshgrid(angles, around, indexing="ij"))
    corners = np.column_stack(
        [np.sin(high) * np.cos(turn), np.sin(high) * np.sin(turn), np.cos(high)]
    )
    n = 2 * rings
    triangles = []
    for i in range(rings):
        for k in range(n):
            a, b = i * n + k, i * n + (k + 1) % n
            triangles += [(a, a + n, b + n), (a, b + n, b)]
    return corners, np.array(triangles)


def cube(steps=30):
    """A cube of 1 m with faces of many triangles, which share no corners with each other."""
    corners, triangles = [], []
    for x, y, z in CUBE_FACES:
        for side in (0.0, 1.0):
            first = len(corners)
            for i in range(steps + 1):
                for k in range(steps + 1):
                    point = np.zeros(3)
                    point[[x, y, z]] = i / steps, k / steps, side
                    corners.append(point)
            for i in range(steps):
                for k in range(steps):
                    a = first + i * (steps + 1) + k
                    quad = (a, a + steps + 1, a + steps + 2, a + 1)
                    if side == 0.0:
                        quad = quad[::-1]
                    triangles += [quad[:3], (quad[0], quad[2], quad[3])]
    return np.array(corners), np.array(triangles)


def volume(corners, triangles):
    a, b, c = corners[triangles].transpose(1, 0, 2)
    return np.einsum("ij,ij->", a, np.cross(b, c)) / 6


def test_a_round_surface_keeps_its_size_with_few_triangles():
    corners, triangles = sphere()
    ((fewer, left),) = simplified([(corners, triangles)], 1000)
    assert 300 < len(left) <= 1000 < len(triangles)
    np.testing.assert_allclose(np.linalg.norm(fewer[np.unique(left)], axis=1), 1.0, atol=0.03)
    assert volume(fewer, left) == pytest.approx(4 / 3 * np.pi, rel=0.06)


def test_edges_stay_where_they_are():
    corners, triangles = cube()
    ((fewer, left),) = simplified([(corners, triangles)], 700)
    assert 100 < len(left) <= 700 < len(triangles)
    assert volume(fewer, left) == pytest.approx(1.0, rel=0.01)
    for corner in np.array(np.meshgrid([0, 1], [0, 1], [0, 1])).reshape(3, -1).T:
        assert np.linalg.norm(fewer - corner, axis=1).min() < 0.01


def test_one_limit_holds_for_all_surfaces_together():
    found = simplified([sphere(), cube()], 900)
    assert 200 < sum(len(triangles) for _, triangles in found) <= 900
    assert min(len(triangles) for _, triangles in found) > 50


def test_normals_are_sharp_at_edges_and_round_elsewhere():
    corners, triangles = cube(4)
    ((corners, triangles),) = simplified([(corners, triangles)], 10_000)
    box = Mesh.of(corners, triangles, frame=0, colour="#808080")
    np.testing.assert_allclose(np.sort(np.abs(box.normals), axis=1), [[0, 0, 1]] * len(box.normals))
    ((corners, triangles),) = simplified([sphere(20)], 10_000)
    ball = Mesh.of(corners, triangles, frame=0, colour="#808080")
    np.testing.assert_allclose(ball.normals, ball.corners, atol=0.05)


def test_a_surface_that_is_turned_inside_out_is_turned_back():
    ((corners, triangles),) = simplified([sphere(10)], 10_000)
    mirrored = corners * [1.0, -1.0, 1.0]
    found = Mesh.of(mirrored, triangles, frame=0, colour="#808080")
    assert volume(mirrored, triangles) < 0 < volume(found.corners, found.triangles)
    assert np.einsum("ij,ij->i", found.normals, found.corners).min() > 0.9


def test_a_page_gets_the_corners_to_a_thousandth_of_the_size():
    corners, triangles = cube(3)
    shifted = 0.2 * corners + [0.5, -0.3, 0.1]
    mesh = Mesh.of(shifted, triangles, frame=3, colour="#224466")
    content = mesh.to_dict()

    def numbers(name, kind):
        return np.frombuffer(base64.b64decode(content[name]), kind).reshape(-1, 3)

    placed = np.array(content["origin"]) + content["unit"] * numbers("corners", "<i2")
    np.testing.assert_allclose(placed, mesh.corners, atol=1e-5)
    np.testing.assert_allclose(numbers("normals", "i1") / 127, mesh.normals, atol=0.005)
    np.testing.assert_array_equal(numbers("triangles", "<u2"), mesh.triangles)
    assert (content["frame"], content["colour"]) == (3, "#224466")


def test_a_view_holds_all_corners_at_all_times():
    corners, triangles = cube(2)
    mesh = Mesh.of(corners, triangles, frame=1, colour="#224466")
    frames = np.tile(np.eye(4), (2, 2, 1, 1))
    frames[1, 1, :3, 3] = [2.0, 0.0, 0.0]
    content = Scene("", [mesh], frames, np.array([0.0, 1.0]), 0, 0.1, 0.1).to_dict()
    np.testing.assert_allclose(content["centre"], [1.5, 0.5, 0.5])
    furthest = np.linalg.norm([1.5, 0.5, 0.5])
    assert furthest < content["reach"] < 1.1 * furthest
