"""A device over a driver that does not exist, by pycuda and by cuda-bindings."""

from __future__ import annotations

from typing import Any

import pytest

from tests.backends.cuda.fake import FakeCuda, opened


@pytest.fixture
def fake() -> FakeCuda:
    return FakeCuda()


@pytest.fixture(params=["pycuda", "cuda-bindings"])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, fake: FakeCuda) -> Any:
    return opened(monkeypatch, fake, request.param)
