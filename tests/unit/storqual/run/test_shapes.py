# SPDX-License-Identifier: Apache-2.0
"""What a run's files hold has declared shapes: a value of another type is damage, whoever reads it."""

from storqual.run.shapes import file_shapes, shape_problem
from tests.support.event_examples import made, mistakes_of


def test_a_value_of_another_type_is_told() -> None:
    for kind, shape in file_shapes().items():
        wrong = dict(mistakes_of(shape))
        assert shape_problem(made(shape), kind) == ""
        assert [what for what, value in wrong.items() if not shape_problem(value, kind)] == []
        assert wrong
