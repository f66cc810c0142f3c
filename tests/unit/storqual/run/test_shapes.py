# SPDX-License-Identifier: Apache-2.0
"""What a run's files hold has declared shapes: a value of another type is damage, whoever reads it."""

from storqual.run.files import LIMITS
from storqual.run.shapes import file_shapes, shape_problem
from tests.support.event_examples import made, mistakes_of


def test_a_value_of_another_type_is_told() -> None:
    for kind, shape in file_shapes().items():
        wrong = dict(mistakes_of(shape))
        assert shape_problem(made(shape), kind) == ""
        assert [what for what, value in wrong.items() if not shape_problem(value, kind)] == []
        assert wrong


def test_each_shape_is_of_a_kind_of_file_that_is_read() -> None:
    """A shape under a name that no reader asks for holds nobody to it; `run` is asked for by that of plans."""
    assert {*file_shapes()} - {*LIMITS} == {"run", "inputs/inventory.json"}
