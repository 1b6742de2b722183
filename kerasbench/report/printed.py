"""A page on stdout: drawn for a terminal where it is one, markdown where it is piped."""

import sys

from rich.console import Console

from kerasbench.report import console, markdown
from kerasbench.report.sections import Page


def print_page(page: Page) -> None:
    """Print a page."""
    if sys.stdout.isatty():
        console.show(page, Console(highlight=False))
    else:
        print(markdown.rendered(page))
