"""The page of checks names every check and rule, as they are."""

from __future__ import annotations

import re

from perfdb_git.checks.registry import CHECKS, RULES
from tests.docs.checks_page import PAGE, page


def test_page_is_what_the_table_says() -> None:
    assert PAGE.read_text() == page(), "run: python tests/docs/checks_page.py"


def test_every_check_and_rule_has_one_section() -> None:
    headings = re.findall(r"^##+ (.+)$", PAGE.read_text(), re.MULTILINE)
    for name in (*(check.id for check in CHECKS), *(rule.code for rule in RULES)):
        assert headings.count(name) == 1, name


def test_links_lead_somewhere() -> None:
    text = PAGE.read_text()
    headings = {
        re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    }
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= headings
