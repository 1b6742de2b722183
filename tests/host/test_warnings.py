import re
from pathlib import Path

from kerasbench.host import noise
from kerasbench.host.noise import WORDS, Warned


def test_every_warning_has_words_and_a_remedy() -> None:
    assert WORDS.keys() == set(Warned)
    assert all(words.meaning and words.remedy for words in WORDS.values())


def test_every_signal_is_a_warning() -> None:
    source = Path(noise.__file__).read_text()
    names = set(re.findall(r'(?:_WARN, |Signal\()"([a-z ]+)", ', source))
    assert {"power", "load", "gpu clock"} & names and names <= set(Warned)
