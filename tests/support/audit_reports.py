# SPDX-License-Identifier: Apache-2.0
"""Small published reports for the audit's tests."""

from collections.abc import Mapping
from contextlib import chdir
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent, indent

from storqual.audit import AuditedAssertion, audit_report
from storqual.audit.assertion import StatedNumber
from storqual.inputs.expression import parse_expression
from storqual.inputs.figures import Figures, load_published
from storqual.inputs.published import Assertion, Figure, Printed, Published, decimal_text

HEAD = """\
schema: storqual.published/1
report: {name: paper, title: A paper, publisher: Nobody, pages: numbered}
"""


def report_text(figures: str, assertions: str) -> str:
    return f"{HEAD}figures:\n{indent(dedent(figures), '  ')}assertions:\n{indent(dedent(assertions), '  ')}"


def published(text: str) -> Published:
    """A report's file with this text, called `paper.yml`."""
    with TemporaryDirectory() as folder, chdir(folder):
        path = Path("paper.yml")
        path.write_text(text, encoding="utf-8")
        return load_published(path)


def claims_of(figures: str, assertions: str) -> dict[str, AuditedAssertion]:
    claims = audit_report(published(report_text(figures, assertions)))
    return {claim.id.removeprefix("paper."): claim for claim in claims}


def printed(value: Fraction, decimals: int) -> Printed:
    """`value` rounded to nearest and printed with so many decimals."""
    return Printed.parse(decimal_text(value, Fraction(1, 10**decimals)))


def comparison_of(
    stated: Printed, expression: str, figures: Mapping[str, Printed], *, relation: str = "is", copy: bool = False
) -> StatedNumber:
    """A comparison without a file around it."""
    known = [Figure.model_construct(id=name, page=1, what=name, value=value) for name, value in figures.items()]
    assertion = Assertion.model_construct(id="claim", page=1, text="a claim", stated=stated, relation=relation)
    return StatedNumber(assertion, None, stated, parse_expression(expression), Figures(known), copy)
