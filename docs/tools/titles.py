"""A hook of the site's builder: the title of a page, which may have names of a result file in it, stays text.

The theme writes ``page.title | striptags`` into <title>. That filter turns ``&lt;`` back into ``<``, and a name with
``</title>`` in it would end the element. What a page says of its title itself is written as it stands.
"""

from typing import Any


def on_page_context(context: Any, page: Any, config: Any, nav: Any) -> Any:
    """Give a page its title, in which markup is escaped already, as one of its own."""
    if page.title and not page.is_homepage:
        page.meta.setdefault("title", page.title)
    return context
