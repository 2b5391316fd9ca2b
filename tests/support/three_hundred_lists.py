"""A stand-in for a module that is loaded late: it leaves objects in memory."""

from __future__ import annotations

CREATED = [[k] for k in range(300)]
