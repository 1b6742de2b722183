"""What travels to a machine: files of the user's own, environment variables, and the words of a command line."""

import dataclasses
import getpass
import hashlib
import io
import platform
import re
import shlex
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kerasbench import sources
from kerasbench.errors import UsageError
from kerasbench.host import COMMIT, commit
from kerasbench.modes.command import options_of, value
from kerasbench.plan import catalog
from kerasbench.processes import variables
from kerasbench.results.run import RunConfig
from kerasbench.settings import Settings

MOST_FILES_BYTES = 256 << 20  # of all files that travel: larger models are copied by other means
HASH_LENGTH = 12  # hexadecimal digits
VARIABLES = "variables"  # a script of a shell that sets them, for no command line shows what may be a secret


@dataclass(frozen=True)
class RemoteBundle:
    archive: bytes = b""
    names: Mapping[str, str] = field(default_factory=dict)  # by what its user calls a file, in the folder there
    variables: Mapping[str, str] = field(default_factory=dict)  # of --keep-env

    def with_names_here(self, config: RunConfig, folder: str) -> RunConfig:
        """Return the configuration of a run in a folder there with the names that its files have here."""
        here = {there: name for name, there in self.names.items()}

        def name(pattern: str) -> str:
            _, slash, there = pattern.rpartition(f"{folder}/")
            return _renamed(there, here) if slash else pattern

        model = config.model_config
        named = dataclasses.replace(model, custom=name(model.custom), rows=name(model.rows))
        return dataclasses.replace(config, scenarios=list(map(name, config.scenarios)), model_config=named)


def _renamed(pattern: str, names: Mapping[str, str]) -> str:
    file = next((file for file in names if pattern == file or pattern.startswith(f"{file}/")), "")
    return names[file] + pattern.removeprefix(file) if file else pattern


def folder_name(results: str) -> str:
    host = re.sub(r"[^a-z0-9-]", "-", platform.node().lower())[:40]
    place = f"{platform.node()} {getpass.getuser()} {Path(results).resolve()}"
    return f"{host}-{hashlib.sha256(place.encode()).hexdigest()[:HASH_LENGTH]}"


def packed(settings: Settings) -> RemoteBundle:
    """Pack the user's own files that these settings name, and variables; raise UsageError where that cannot be."""
    names: dict[str, str] = {}
    contents: dict[str, bytes] = {}
    places = {place: sources.of(Path(place)).files for place in catalog.own_files(settings.scenarios)}
    places |= {place: [Path(place)] for place in (settings.custom, settings.rows) if place}
    for place, files in places.items():
        file = Path(place)
        group = f"files/{hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:HASH_LENGTH]}"
        for source in files:
            try:
                contents[f"{group}/{source.relative_to(file.parent).as_posix()}"] = source.read_bytes()
            except OSError as error:
                raise UsageError(f"{source}: cannot be read: {error.strerror}") from None
        names |= {place: f"{group}/{file.name}"} if files else {}
    if sum(map(len, contents.values())) > MOST_FILES_BYTES:
        remedy = "copy them to each machine by other means, and run kerasbench there"
        raise UsageError(f"files of more than {MOST_FILES_BYTES >> 20} MiB are not sent: {remedy}")
    kept = variables.kept(settings.keep_env)
    if not settings.resume:  # a run that goes on has those that it began with
        exported = kept | ({COMMIT: asked_in} if (asked_in := commit()) else {})
        lines = (f"export {name}={shlex.quote(value)}\n" for name, value in exported.items())
        contents[VARIABLES] = "".join(lines).encode()
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o600
            tar.addfile(member, io.BytesIO(content))
    return RemoteBundle(archive.getvalue(), names, kept)


def shell_words(settings: Settings, bundle: RemoteBundle) -> list[str]:
    """Return settings as words of a shell there, in whose variable F is the folder."""

    def there(value: object) -> str:
        name = _renamed(str(value), bundle.names)
        return f'"$F"/{shlex.quote(name)}' if name != str(value) else shlex.quote(name)

    offered = options_of(type(settings))
    shell = ['--results="$F"/results'] if "results" in offered else []
    for name, option in offered.items():
        setting = value(settings, name, option)
        if option.many:
            shell += [f"{option.flag}={there(part)}" for part in setting]
        elif name != "results" and setting != option.default:
            shell.append(option.flag if setting is True else f"{option.flag}={there(setting)}")
    if settings.rows:
        shell += [f"--rows={there(settings.rows)}", f"--samples={settings.samples}"]
    arguments = list(map(shlex.quote, settings.arguments))
    arguments += [] if "scenarios" in offered else map(there, settings.scenarios)
    own = list(map(shlex.quote, settings.script_arguments))
    return [*shell, *arguments, *(["--", *own] if own else [])]
