"""Why a child ended that gave no answer, as a failure."""

import dataclasses
import os
import re
import signal

from kerasbench.children import process
from kerasbench.children.limits import Limits
from kerasbench.exchange.messages import EXIT_PIPE_LOST, Code, Failure
from kerasbench.text import printable, size

SMALLER = "a smaller batch or regime, or a machine with more memory"


def failure_of(ended: process.Exit, phase: str, limits: Limits) -> Failure:
    """Say why a child that gave no answer ended."""
    return shown(dataclasses.replace(_cause(ended, phase, limits), phase=phase, detail=process.last_lines(ended)))


def over_limit(used_bytes: int, limit_bytes: int, where: str) -> Failure:
    """Say that a trial held more than it may."""
    cause = f"used {size(used_bytes)} {where}, the limit is {size(limit_bytes)} (--memory-limit)"
    return Failure(Code.OOM, cause, "a smaller batch or regime, or a higher --memory-limit", own_limit=True)


def shown(failure: Failure) -> Failure:
    """Return a failure whose texts, which may come from a scenario, are fit for a terminal and a published file."""
    texts = (failure.cause, failure.remedy, failure.detail)
    cause, remedy, detail = (_without_home(printable(text)) for text in texts)
    return dataclasses.replace(failure, cause=cause, remedy=remedy, detail=detail)


def _without_home(text: str) -> str:
    """Return a text with ``~`` for the user's home folder, whose name is mostly the user's own."""
    home = os.path.expanduser("~").rstrip("/")
    return re.sub(rf"(?<![\w./-]){re.escape(home)}(?=/)", "~", text) if home else text


def _cause(ended: process.Exit, phase: str, limits: Limits) -> Failure:
    where = f"in phase {phase!r}"
    if ended.broke_protocol:
        cause = f"something other than kerasbench wrote to the result pipe {where}"
        return Failure(Code.INVALID, cause, "the scenario must not write to inherited file descriptors")
    if ended.exceeded_bytes is not None and limits.memory_bytes is not None:
        return over_limit(ended.exceeded_bytes, limits.memory_bytes, where)
    if ended.timed_out:
        return Failure(Code.TIMEOUT, f"stopped {where} by {limits.timeout}", limits.remedy)
    if ended.status < 0:
        return _death(-ended.status, where, ended.shortage)
    if ended.status == EXIT_PIPE_LOST:
        remedy = "the scenario must not close or replace inherited file descriptors"
        return Failure(Code.INVALID, f"the result pipe was taken from kerasbench {where}", remedy)
    cause = f"left with exit status {ended.status} {where} without a result"
    return Failure(Code.CRASH, cause, "the scenario must not end the process")


def _death(number: int, where: str, shortage: str) -> Failure:
    if number != signal.SIGKILL:
        known = {one.value: one.name for one in signal.Signals}
        name = known.get(number, f"signal {number}")
        return Failure(Code.CRASH, f"died from {name} {where}", "see its last lines, if it had any")
    if shortage:
        return Failure(Code.OOM, f"killed for want of memory {where}: {shortage}", SMALLER)
    remedy = "find who killed it: the scenario itself, a supervisor, or somebody by hand"
    return Failure(Code.CRASH, f"killed by SIGKILL from outside {where}", remedy)
