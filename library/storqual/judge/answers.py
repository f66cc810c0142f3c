# SPDX-License-Identifier: Apache-2.0
"""Answers to all questions of a run: what cannot be judged first, then each kind of criterion by its own rule.

A fail is measured afresh before it counts: two fails are a FAIL, a fail and a pass decide nothing.
"""

from collections.abc import Sequence
from dataclasses import replace

from storqual.judge.against_baseline import Histories, judge_against_baseline
from storqual.judge.against_others import (
    judge_against_limits,
    judge_against_peers,
    judge_against_scaling,
    judge_counts,
)
from storqual.judge.decision import History
from storqual.judge.numbers import as_change
from storqual.judge.question import LIMITS, Judged, Question, is_suspect
from storqual.statistics.comparison import Looks


def answer(questions: Sequence[Question], looks: Looks, histories: Histories) -> list[Judged]:
    """One answer for each question; what is missing or unusable is an ERROR, never a PASS.

    Suspect launches are no evidence. Where they would turn a pass into a fail, nothing is decided: what made them
    suspect may be the candidate's doing.
    """
    answers = _answers(questions, looks, histories)
    doubtful = [
        index
        for index, question in enumerate(questions)
        if question.launches.whole is not None and answers[index].outcome in ("PASS", "MARGINAL")
    ]
    if doubtful:
        # all of them, so that the points lend each other as much noise as before
        with_all = _answers([_whole(question) for question in questions], looks, histories)
        for index in doubtful:
            if with_all[index].outcome == "FAIL":
                passed, failed = answers[index].reason, with_all[index].reason
                reason = f"{passed}; with the suspect launches included it fails ({failed}), so it is undecided"
                answers[index] = replace(answers[index], outcome="INCONCLUSIVE", reason=reason)
    for index, question in enumerate(questions):
        doubts = suspects_sentence(question)
        if doubts and answers[index].outcome == "INCONCLUSIVE":
            answers[index] = replace(answers[index], reason=f"{answers[index].reason}; {doubts}")
    return answers


def _whole(question: Question) -> Question:
    """The same question with its suspect launches as evidence."""
    return question if question.launches.whole is None else replace(question, launches=question.launches.whole)


def suspects_sentence(question: Question) -> str:
    """How many launches of a point are suspect, and why the first of them is; empty when none is."""
    launches = [launch for arm in ("baseline", "candidate") for launch in question.launches.every(arm)]
    suspect = [launch for launch in launches if is_suspect(launch)]
    if not suspect:
        return ""
    share, doubt = f"{len(suspect)} of {len(launches)}", suspect[0].suspect[0]
    return f"{share} launches are suspect and do not count as evidence ({doubt})"


def _answers(questions: Sequence[Question], looks: Looks, histories: Histories) -> list[Judged]:
    answers: dict[int, Judged] = {}
    compared: list[int] = []
    for index, question in enumerate(questions):
        metric = question.metric
        if metric is None:
            answers[index] = Judged("ERROR", f"there is no metric called {question.criterion.metric!r}")
            continue
        unusable, unclean = _unusable(question), _all_suspect(question)
        if question.excused:
            answers[index] = Judged("SKIPPED", question.excused)
        elif unusable:
            answers[index] = Judged("ERROR", unusable)
        elif unclean:
            answers[index] = Judged("INCONCLUSIVE", f"no launch of the {unclean} is left as evidence")
        elif question.criterion.against in LIMITS:
            answers[index] = judge_against_limits(question, metric)
        elif question.criterion.against == "peers":
            answers[index] = judge_against_peers(question, metric)
        elif question.criterion.against == "scaling":
            answers[index] = judge_against_scaling(question, metric)
        elif question.criterion.against != "baseline":
            answers[index] = Judged("ERROR", f"a criterion against {question.criterion.against!r} cannot be judged")
        elif metric.kind == "count":
            answers[index] = judge_counts(question, metric, looks)
        else:
            compared.append(index)
    made = judge_against_baseline([questions[index] for index in compared], looks, histories)
    answers.update(zip(compared, made, strict=True))
    return [answers[index] for index in range(len(questions))]


def _arms(question: Question) -> tuple[str, ...]:
    return ("candidate", "baseline") if question.criterion.against == "baseline" else ("candidate",)


def _unusable(question: Question) -> str:
    """Why the launches of a point cannot be judged; empty when they can."""
    for arm in _arms(question):
        if not question.launches.every(arm):
            return f"the {arm} has no sample at this point"
        for launch in question.launches.of(arm):
            if launch.status != "ok":
                why = launch.suspect[0] if launch.suspect else "no reason was recorded"
                return f"{arm} launch {launch.id} was {launch.status.replace('_', ' ')}: {why}"
    return ""


def _all_suspect(question: Question) -> str:
    """The arm whose launches are all suspect, or partners of suspect ones; empty when there is none."""
    return next((arm for arm in _arms(question) if not question.launches.of(arm)), "")


def confirm(
    questions: Sequence[Question], answers: Sequence[Judged], looks: Looks, histories: Histories
) -> list[Judged]:
    """Answers in which a FAIL that was measured afresh is one of the fresh launches too, or none.

    Shift and interval stay those of the first launches; the fresh ones have their own (`Judged.again`).
    """
    confirmed = list(answers)
    for index, second in measured_afresh(questions, answers, looks, histories).items():
        confirmed[index] = replace(_both(answers[index], second), again=second)
    return confirmed


def measured_afresh(
    questions: Sequence[Question], answers: Sequence[Judged], looks: Looks, histories: Histories
) -> dict[int, Judged]:
    """What the fresh launches alone say of each FAIL that has some, by the index of its question.

    The level of the first launches counts for nothing; their noise is lent, because the point is the same.
    """
    fresh: dict[int, Question] = {}
    noise = dict(histories)
    for index, (question, first) in enumerate(zip(questions, answers, strict=True)):
        launches = question.launches.confirming()
        if first.outcome != "FAIL" or launches is None:
            continue
        fresh[index] = replace(question, launches=launches)
        if first.unit == "pair" and first.sd is not None:
            # what history and the other points know of it is part of the noise of the first launches
            noise[*question.point.key, question.criterion.metric] = History(sd_pair=first.sd, df_pair=first.df)
    return dict(zip(fresh, answer(list(fresh.values()), looks, noise), strict=True))


def _both(first: Judged, second: Judged) -> Judged:
    shift = as_change(second.shift) if second.shift is not None else "no shift"
    if second.ci95 is not None:
        shift += f", {as_change(*second.ci95)}"
    if second.outcome == "FAIL":
        # two independent fails: no correction for many criteria is needed any more
        return replace(first, reason=f"{first.reason}; confirmed on fresh launches ({shift})", loss_p=0.0)
    if second.outcome == "ERROR":
        return replace(first, outcome="ERROR", reason=f"{first.reason}; measured again: {second.reason}")
    if second.outcome == "INCONCLUSIVE":
        return replace(
            first,
            outcome="INCONCLUSIVE",
            reason=f"{first.reason}; measured again it is undecided: {second.reason}",
        )
    return replace(
        first,
        outcome="INCONCLUSIVE",
        reason=f"{first.reason}; measured again it passes ({shift}), so it is undecided",
    )
