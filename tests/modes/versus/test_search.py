"""What is said of a search, where the golden files do not have it."""

from kerasbench.modes.versus.bisect import bisect
from kerasbench.modes.versus.search import of_search
from tests import made
from tests.records import exactly


def test_a_search_that_finds_nothing_has_no_versions_between() -> None:
    names = [f"keras==3.{minor}" for minor in range(6)]
    none = made.known(of_search(bisect(6, exactly([1.0] * 6)), names, None).search)
    assert (none.outcome, none.last_fast, none.first_slow, none.case) == ("none", None, None, None)
