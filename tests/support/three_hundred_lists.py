"""What a module that is loaded late leaves in memory."""

from __future__ import annotations

CREATED = [[k] for k in range(300)]
