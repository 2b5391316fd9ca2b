"""The snippets of the page on many devices print what the page shows."""

from __future__ import annotations

from tests.test_readme import MANY_DEVICES, require_true


def test_every_snippet_of_the_page_on_many_devices_prints_what_it_shows():
    require_true(MANY_DEVICES)
