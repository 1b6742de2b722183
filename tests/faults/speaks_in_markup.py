"""# <script>alert(1)</script> | [click](javascript:alert(1)) \x1b[31m *red* \x07

| a | b |
"""

from base import scenario


def build(workload):
    raise ValueError("</td><img src=x> | \x1b]0;title\x07 \x1b[2J *bold* \udcff")


spoiled = scenario(build=build, source="<b>\x1b[31m</b>")
