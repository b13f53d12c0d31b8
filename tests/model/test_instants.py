"""Times of measurement: one instant, however they are written."""

import pytest

from perfdb_git.model.instants import earliest_instant


def test_one_instant_in_three_notations() -> None:
    texts = ("2026-03-29T08:00:00Z", "2026-03-29T10:00:00+02:00", "2026-03-29T03:30:00-04:30")
    assert {earliest_instant(text) for text in texts} == {1774771200}


def test_a_date_without_a_zone_may_have_begun_fourteen_hours_before_utc() -> None:
    midnight = earliest_instant("2026-03-29T00:00:00Z")
    assert earliest_instant("2026-03-29") == midnight - 14 * 3600


@pytest.mark.parametrize("text", ["2026-03-29T02:30:00", "29.03.2026", "yesterday", ""])
def test_times_without_a_zone_and_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        earliest_instant(text)
