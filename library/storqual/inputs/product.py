# SPDX-License-Identifier: Apache-2.0
"""Spec sheets: what the maker of an adapter or a drive states of a model, as limits that a suite asks for by name."""

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field

from storqual.inputs.fields import (
    ManyOf,
    Text,
    doubtful_limits,
    fitting_units,
    limit_value,
    metric_facts,
    metric_names,
)
from storqual.inputs.shape import Shape, raise_all, shaped, shown, unknown
from storqual.inputs.suite import EffectiveCriterion, Levels, Limit, PointLike, Suite, applies, effective
from storqual.inputs.yaml_file import Document, Keys, read_yaml
from storqual_core.kit.errors import BadInputError

SUFFIX = ".product.yml"
AGAINST = "product"


class ProductLimit(Shape):
    """One figure of a spec sheet: a metric at workloads and levels, and the least or the most that is stated."""

    metric: Text
    workloads: ManyOf[Text] = Field(default=(), description="patterns of workloads of a suite (default: all)")
    at: Levels = Field(default={}, description="only at these levels of factors")
    min: Limit | None = None
    max: Limit | None = None
    source: Text | None = Field(default=None, description="page or table of the sheet's source")


class Product(Shape):
    """The spec sheet of a model. With both patterns it holds for that drive behind that adapter only."""

    adapter: Text | None = Field(default=None, description="a pattern of the adapter's model in the inventory")
    drive: Text | None = Field(default=None, description="a pattern that the models of all its drives match")
    source: Text = Field(description="the document that states it")
    limits: ManyOf[ProductLimit]

    def is_of(self, adapter: Mapping[str, Any]) -> bool:
        """Whether it is about this adapter of an inventory and the drives behind it."""
        drives = [str(drive.get("model") or "") for drive in adapter.get("drives") or ()]
        own = self.adapter is None or fnmatch.fnmatchcase(str(adapter.get("model") or ""), self.adapter)
        theirs = self.drive is None or (
            bool(drives) and all(fnmatch.fnmatchcase(model, self.drive) for model in drives)
        )
        return own and theirs


def load_product(path: Path) -> Product:
    """Read one spec sheet. Raises BadInputError with every problem."""
    product, problems = _read(path)
    raise_all(problems)
    assert product is not None  # noqa: S101 - there is one when nothing was wrong
    return product


def _read(path: Path, *, new: bool = True) -> tuple[Product | None, list[str]]:
    sheet = read_yaml(path)
    product, problems = shaped(Product, sheet)
    if product is not None:
        problems += _sheet_problems(product, sheet)
        problems += [
            sheet.about(("limits", number, name), sentence)
            for number, limit in enumerate(product.limits if new else ())
            for name, sentence in doubtful_limits(limit.metric, limit.min, limit.max)
        ]
    return product, problems


def product_file(suite: Path, name: str) -> Path:
    """The spec sheet `name`, which lies beside the suite that asks for it."""
    return suite.parent / f"{name}{SUFFIX}"


def product_files(suite: Path, names: Sequence[str]) -> dict[str, Path]:
    """All spec sheets of a suite, by the names that they have among the inputs of a run."""
    return {f"product:{name}": product_file(suite, name) for name in names}


def read_products(
    suite: Suite, path: Path, document: Document, *, new: bool = True
) -> tuple[dict[str, Product], list[str]]:
    products: dict[str, Product] = {}
    problems: list[str] = []
    for name in suite.products:
        file = product_file(path, name)
        if not file.is_file():
            problems.append(
                document.about(("products",), f"spec sheet {name!r} needs the file {file}, which does not exist")
            )
            continue
        try:
            product, wrong = _read(file, new=new)
        except BadInputError as problem:
            product, wrong = None, problem.problems
        problems += wrong
        if product is not None:
            products[name] = product
    stated = {limit.metric for product in products.values() for limit in product.limits}
    for number, criterion in enumerate(suite.criteria):
        if criterion.against == AGAINST and not problems and criterion.metric not in stated:
            keys = ("criteria", number)
            sheets = ", ".join(suite.products)
            sentence = (
                f"no spec sheet of this suite states a limit of {criterion.metric}; it names {sheets}"
                if sheets
                else f"{criterion.metric} is judged against spec sheets; name them under `products`"
            )
            problems.append(document.about(keys, sentence))
    return products, problems


def _sheet_problems(product: Product, document: Document) -> Iterator[str]:
    if product.adapter is None and product.drive is None:
        yield document.about((), "a spec sheet needs `adapter` or `drive`: the model that it is about")
    for number, limit in enumerate(product.limits):
        keys: Keys = ("limits", number)
        facts = metric_facts(limit.metric)
        if facts is None:
            yield document.about((*keys, "metric"), unknown("metric", limit.metric, metric_names()))
            continue
        if limit.min is None and limit.max is None:
            yield document.about(keys, f"{limit.metric} has no limit; give `min` or `max`")
        for name, text in (("min", limit.min), ("max", limit.max)):
            try:
                _ = None if text is None else limit_value(text, limit.metric)
            except ValueError as problem:
                units = " or ".join(fitting_units(facts.unit)) or "no unit"
                value = f"{name} {shown(text)} for {facts.name} ({units})"
                yield document.problem((*keys, name), value, str(problem))


def criteria_at(
    suite: Suite, point: PointLike, profile: str, adapter: Mapping[str, Any], kind: str
) -> tuple[EffectiveCriterion, ...]:
    """The criteria that are judged at a point, with what they inherit from the profile and take from spec sheets.

    `adapter` is the point's adapter as the inventory describes it, `kind` that of its bench.
    """
    rules = (
        effective(criterion, suite.profiles[profile], kind)
        for criterion in suite.criteria
        if criterion.is_asked(profile) and applies(criterion, point.workload, point.factors, point.adapter)
    )
    return tuple(
        criterion
        for rule in rules
        for criterion in (_by_product(rule, point, adapter, suite.sheets) if rule.against == AGAINST else (rule,))
    )


def _by_product(
    rule: EffectiveCriterion, point: PointLike, adapter: Mapping[str, Any], products: Mapping[str, Product]
) -> Iterator[EffectiveCriterion]:
    """A criterion against spec sheets as one for each limit that they state of this adapter at this point.

    Where none does it stays one, which says so: nothing is judged there.
    """
    of_model = {name: product for name, product in products.items() if product.is_of(adapter)}
    limits = [
        (name, product, limit)
        for name, product in of_model.items()
        for limit in product.limits
        if limit.metric == rule.metric and _is_at(limit, point)
    ]
    if not limits:
        model = adapter.get("model") or "this adapter"
        sentence = f"the spec sheet {', '.join(of_model)} states no limit of {rule.metric} for this point"
        yield replace(rule, unstated=sentence if of_model else f"there is no spec sheet of {model}")
    for name, product, limit in limits:
        low, high = (None if text is None else limit_value(text, rule.metric) for text in (limit.min, limit.max))
        source = ", ".join(filter(None, [product.source, limit.source]))
        ident = rule.id if len(limits) == 1 else f"{rule.id}-{name}"
        yield replace(rule, id=ident, min=low, max=high, source=f"{name}: {source}")


def _is_at(limit: ProductLimit, point: PointLike) -> bool:
    named = not limit.workloads or any(fnmatch.fnmatchcase(point.workload, pattern) for pattern in limit.workloads)
    return named and all(point.factors.get(name) in levels for name, levels in limit.at.items())
