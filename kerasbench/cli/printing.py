"""What several commands print: a page, or JSON in its place."""

from typing import TYPE_CHECKING

from kerasbench.text import print_document

if TYPE_CHECKING:
    from kerasbench.returns import Shown


def show(shown: "Shown", as_json: bool) -> None:
    if as_json:
        print_json(shown.to_data())
        return
    from kerasbench.report.console import print_page

    print_page(shown.page)


def print_json(data: object, ensure_ascii: bool = True) -> None:
    import json

    print_document(json.dumps(data, indent=2, allow_nan=False, ensure_ascii=ensure_ascii) + "\n")
