"""A scenario to begin with: a file of the user's own, which can be measured as it stands."""

from pathlib import Path

from kerasbench.errors import UsageError
from kerasbench.scenario import ScenarioError, require_scenario_name

TEMPLATE = Path(__file__).parents[1] / "data" / "scenario.txt"


def begin(file: Path) -> None:
    """Write a commented scenario.

    Raises:
        UsageError: there is such a file already, its name is no scenario's, or it cannot be written.
    """
    if file.suffix != ".py":
        raise UsageError(f"a scenario is a Python file: {file.with_suffix('.py')}, not {file}")
    try:
        require_scenario_name(file)
        with file.open("x", encoding="utf-8") as stream:
            stream.write(TEMPLATE.read_text("utf-8"))
    except ScenarioError as error:
        raise UsageError(str(error)) from None
    except FileExistsError:
        raise UsageError(f"{file} already exists, and was left as it is: choose another name") from None
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}") from None
