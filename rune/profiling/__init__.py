"""Profiles: what a program did, when, for how long, and with how much memory.

    events.py      an event, which took time
    threads.py     how long each thread computed and waited
    memory.py      when buffers were allocated and freed
    profile.py     adds events up and prints them
    gathering.py   the current profile, and blocks that report to it
    trace_file.py  a file for Perfetto and Chrome
    view.py        what a notebook shows

A profile records events inside `with rune.debug.profile():`, or during the whole process if
RUNE_PROFILE=1 or RUNE_DEBUG=profile is set.
"""

from __future__ import annotations

from rune.profiling.events import HOST, Event, Kind, Moment, Row, current_row, ended, moment
from rune.profiling.gathering import current, gathering, gathers, is_asked_for, profile_process, span, within
from rune.profiling.memory import Allocation
from rune.profiling.profile import PlanProfile, Profile, StepProfile, plan_text
from rune.profiling.texts import aligned, bytes_text, counted, time_text
from rune.profiling.threads import ThreadTime, Workers

__all__ = ["HOST", "Allocation", "Event", "Kind", "Moment", "PlanProfile", "Profile", "Row", "StepProfile"]
__all__ += ["ThreadTime", "Workers", "aligned", "bytes_text", "counted", "current", "current_row", "ended"]
__all__ += ["gathering", "gathers", "is_asked_for", "moment", "plan_text", "profile_process", "span", "time_text"]
__all__ += ["within"]
