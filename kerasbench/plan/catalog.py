"""Which scenarios there are. The parent never executes a scenario file: a child describes it."""

import hashlib
import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

import platformdirs

from kerasbench import backends, scenario, sources
from kerasbench.errors import ResultsError, UnusableScenario, UsageError, unknown
from kerasbench.protocol.descriptions import Description, WorkloadDescription
from kerasbench.protocol.requests import NOTHING, ModelConfig, from_dict
from kerasbench.sources.source import Source
from kerasbench.text import blanked, label

PACKAGE_FOLDER = Path(__file__).parents[1]
DEFAULT_SUITE = "published"
BASELINES_FOLDER = scenario.baseline_file(Path("scenario.py"), "").parent.name
OTHER_FORMS = {
    ".pb": "a TensorFlow graph",
    ".onnx": "an ONNX model",
    ".tflite": "a TensorFlow Lite model",
    ".pt": "a PyTorch file",
    ".pth": "a PyTorch file",
    ".ckpt": "a file of weights without the model",
    ".safetensors": "a file of weights without the model",
}
LAST_LINES = 5  # of a traceback: two frames, and the exception
ADDRESS = "://"  # https://, hf://, gs://
DESCRIBED_BY = (
    *("scenario.py", "datasets.py", "protocol/descriptions.py", "protocol/requests.py"),
    *("sources/scenario_file.py", "worker/describe.py"),
)


class BackendNeeded(Exception):
    """Without Keras, a file cannot say what it holds."""


@dataclass(frozen=True)
class Entry:
    file: Path  # or a saved model, or a name such as keras.applications.ResNet50
    file_hash: str
    description: Description
    baselines: dict[str, str] = field(default_factory=dict)  # the hash of each baseline's file by its backend
    model_config: ModelConfig = NOTHING  # of what is no scenario file
    suite: str = ""  # the built-in one that it is of; empty for the user's own

    @cached_property
    def source(self) -> Source:
        return sources.of(self.file)

    @property
    def place(self) -> str:
        return self.source.place

    @property
    def name(self) -> str:
        return self.description.name


@dataclass(frozen=True)
class Selected:
    entry: Entry
    workload: WorkloadDescription
    named: bool = field(default=False, compare=False)  # by its own name, not with all others of its file

    @property
    def label(self) -> str:
        return label(self.entry.name, self.workload.name)

    @property
    def word(self) -> str:
        """How the command line is given it: a built-in one by its label, one of the user's own by its file."""
        return self.label if self.entry.suite else label(shlex.quote(str(self.entry.file)), self.workload.name)

    def of_batch(self, samples: int) -> "Selected":
        return replace(self, workload=self.workload.of_batch(samples))


def builtin_folder() -> Path:
    inside = PACKAGE_FOLDER / "scenarios"  # in a wheel; in a checkout beside the package
    return inside if inside.is_dir() else PACKAGE_FOLDER.parent / "scenarios"


def suites() -> dict[str, Path]:
    folder = builtin_folder()
    inside = {file.parent for file in folder.glob("*/*.py") if file.parent.name != BASELINES_FOLDER}
    return {DEFAULT_SUITE: folder} | {suite.name: suite for suite in sorted(inside)}


def suite_files(suite: str = DEFAULT_SUITE) -> list[Path]:
    folders = suites()
    if suite not in folders:
        raise unknown("suite", suite, list(folders))
    return sorted(file for file in folders[suite].glob("*.py") if not file.name.startswith("_"))


def builtin_files() -> list[Path]:
    return [file for suite in suites() for file in suite_files(suite)]


def select(
    patterns: Sequence[str],
    python: str,
    backend: str | None = None,
    kept: Mapping[str, str] | None = None,
    model_config: ModelConfig = NOTHING,
    suite: str = DEFAULT_SUITE,
    others: Sequence[tuple[str, str]] = (),
    bare: bool = False,
) -> list[Selected]:
    """Return the workloads that the patterns name, each once; all of a suite where there is no pattern.

    A pattern is a file or a model of keras.applications, or matches ``scenario``, with or without ``/workload``.
    ``kept`` are the variables of --keep-env; ``others``, interpreters and backends for a script that does not run with
    the first. Raise UnusableScenario if a file does not load, or two have the same name.
    ``bare``: ask no child that imports Keras; raise BackendNeeded for a file that needs it to say what it holds.
    """
    files, names = _split(patterns, model_config)
    chosen: list[Selected] = []
    for file, workload in files:
        (entry,) = describe([file], python, backend, kept, model_config, others, bare)
        chosen += _match([entry], [f"{entry.name}/{workload}" if workload else entry.name])
    if names or not patterns:
        chosen += _match(describe(_candidates(names, suite), python, kept=kept, bare=bare), names)
    return _once(chosen)


def _once(chosen: Sequence[Selected]) -> list[Selected]:
    """Those of one file share its entry, by which it is known; links to it by other names are other scenarios."""
    entries: dict[tuple[str, Path], Entry] = {}
    kept: dict[tuple[str, Path, str], Selected] = {}
    for selected in chosen:
        file = (selected.entry.name, selected.entry.file.resolve())
        key, entry = (*file, selected.workload.name), entries.setdefault(file, selected.entry)
        named = selected.named or (key in kept and kept[key].named)
        kept[key] = Selected(entry, selected.workload, named)
    for name, count in Counter(name for name, _ in entries).items():
        if count > 1:
            why = "scenarios are told apart by the names of their files; rename one"
            raise UnusableScenario(f"{count} files are called {name}: {why}")
    return list(kept.values())


def own_files(patterns: Sequence[str]) -> list[str]:
    """Return those that are not public; a result may name what is none, so no file is looked at."""
    places = [named[0] for named in map(sources.split, patterns) if named]
    return [place for place in dict.fromkeys(places) if not sources.kinds_of(place)[0].prefix]


def means_scenario(word: str) -> bool:
    """Tell whether a word is meant as a scenario: the name of a file, be it there or not, or of what is built in."""
    is_file = sources.split(word) is not None or Path(word).suffix in OTHER_FORMS or ADDRESS in word
    is_file = is_file or _form_of_folder(Path(word)) is not None
    names = [pattern.partition("/")[0] for pattern in word.split(",")]
    return is_file or any(fnmatchcase(file.stem, name) for file in builtin_files() for name in names)


def file_suffixes() -> list[str]:
    """Return the ends of names of all files that may be named in place of a scenario."""
    return list(dict.fromkeys(suffix for source in sources.SOURCES for suffix in source.suffixes))


def models_beside(word: str) -> str:
    """Return the files that a word means if it lacks their suffix, and what to type; empty where there is none."""
    suffixes = file_suffixes()
    names = [f"{word}{suffix}" for suffix in suffixes if Path(f"{word}{suffix}").is_file()]
    return f"{' and '.join(names)}: kerasbench {shlex.quote(names[0])}" if names else ""


def require_known(patterns: Sequence[str], model_config: ModelConfig = NOTHING, suite: str = DEFAULT_SUITE) -> None:
    """Raise, as ``select`` would, for a file that cannot be read or a name that means nothing; start no child."""
    files, names = _split(patterns, model_config)
    for place in (*(str(file) for file, _ in files), model_config.custom):
        if place.encode(errors="replace").decode() != place:  # as it could not stand in the result
            raise UsageError(f"{blanked(place)}: its name is not UTF-8: rename it")
    for file, _ in files:
        with _as_unusable():
            source = sources.of(file)
            source.hash(source.config(model_config))
            source.require_usable()
    _candidates(names, suite)


@contextmanager
def _as_unusable() -> Iterator[None]:
    try:
        yield
    except scenario.ScenarioError as error:
        raise UnusableScenario(str(error)) from None


def _split(patterns: Sequence[str], model_config: ModelConfig) -> tuple[list[tuple[Path, str]], list[str]]:
    """Return the files among the patterns, each with its workload if one is named, and the names of built-in ones."""
    for pattern in patterns:
        _refuse_other_forms(pattern)
    split = {pattern: sources.split(pattern) for pattern in patterns}
    files = [(Path(named[0]), named[1]) for named in map(split.get, patterns) if named]
    taken = {name for file, _ in files for name in sources.of(file).takes} if model_config != NOTHING else set()
    if model_config.script is not None and "script" not in taken:
        raise UsageError(f"-- ARGUMENTS, --fit and --callbacks are for {sources.nouns('script')}: name one")
    if replace(model_config, script=None) != NOTHING and "inputs" not in taken:
        raise UsageError(
            f"--input, --batch-size, --custom and --trust are for {sources.nouns('inputs')}: "
            "a scenario file contains all of that (for other batch sizes, use kerasbench sweep)"
        )
    return files, [pattern for pattern in patterns if not split[pattern]]


def _refuse_other_forms(pattern: str) -> None:
    path, what = Path(pattern), OTHER_FORMS.get(Path(pattern).suffix)
    if ADDRESS in pattern:
        raise UnusableScenario(f"{pattern}: kerasbench downloads no models: download the file yourself, and name it")
    what = what or _form_of_folder(path)
    if what is not None:
        raise UnusableScenario(f"{pattern}: this is {what}: save the Keras model itself, model.save('model.keras')")


def _form_of_folder(path: Path) -> str | None:
    if (path / "saved_model.pb").exists():
        return "a SavedModel, which only TensorFlow can run"
    return "a folder" if (path / "config.json").exists() and path.name else None


def _candidates(patterns: Sequence[str], suite: str) -> list[Path]:
    """Return the built-in files that the patterns can mean, so that no other is loaded; a suite's without patterns."""
    if not patterns:
        return suite_files(suite)
    files, names = builtin_files(), {pattern: pattern.partition("/")[0] for pattern in patterns}
    for pattern, name in names.items():
        if not any(fnmatchcase(file.stem, name) for file in files):
            if beside := models_beside(pattern):
                raise UsageError(f"unknown scenario {pattern!r}: there is {beside}")
            if Path(pattern).is_dir():
                raise UsageError(f"{pattern}: a folder: name a scenario file (.py) or a saved model (.keras) in it")
            raise unknown("scenario", pattern, [file.stem for file in files])
    return [file for file in files if any(fnmatchcase(file.stem, name) for name in names.values())]


def _match(entries: Sequence[Entry], patterns: Sequence[str]) -> list[Selected]:
    workloads = [Selected(entry, workload) for entry in entries for workload in entry.description.workloads]
    for pattern in patterns:
        if not any(_names(pattern, selected) for selected in workloads):
            raise unknown("workload", pattern, [f"{there.entry.name}/{there.workload.name}" for there in workloads])
    naming = [[pattern for pattern in patterns if _names(pattern, selected)] for selected in workloads]
    return [
        replace(selected, named=any("/" in pattern for pattern in by))
        for selected, by in zip(workloads, naming, strict=True)
        if by or not patterns
    ]


def _names(pattern: str, selected: Selected) -> bool:
    name, slash, workload = pattern.partition("/")
    return fnmatchcase(selected.entry.name, name) and (not slash or fnmatchcase(selected.workload.name, workload))


def describe(
    files: Sequence[Path],
    python: str,
    backend: str | None = None,
    kept: Mapping[str, str] | None = None,
    model_config: ModelConfig = NOTHING,
    others: Sequence[tuple[str, str]] = (),
    bare: bool = False,
) -> list[Entry]:
    """One child describes what is not remembered: built-in files are, the user's own may import what has changed."""
    custom, rows = (str(Path(file).absolute()) if file else "" for file in (model_config.custom, model_config.rows))
    model_config = replace(model_config, custom=custom, rows=rows)
    found = {file: sources.of(file) for file in files}
    configs = {file: source.config(model_config) for file, source in found.items()}
    with _as_unusable():
        hashes = {file: source.hash(configs[file]) for file, source in found.items()}
    of_folder = {folder.resolve(): suite for suite, folder in suites().items()}
    of_file = {file: of_folder.get(file.resolve().parent, "") for file in files}
    caches = _cache_files({file: hashes[file] for file in files if of_file[file]})
    about = {file: description for file, cache in caches.items() if (description := _read_cached(cache))}
    if left := [file for file in hashes if file not in about]:
        for file in left:
            with _as_unusable():
                found[file].require_usable()
        runs = any(found[file].runs for file in left)
        if runs and bare:
            raise BackendNeeded
        # Late: where all is remembered, as in `list`, there is no child.
        from kerasbench.processes import questions
        from kerasbench.protocol.messages import Code

        for interpreter, name in [(python, backend), *(others if runs else [])]:
            places, config = [found[file].place for file in left], configs[left[0]]  # several are scenario files
            answer = questions.describe(places, interpreter, name, kept or {}, config, bare)
            if isinstance(answer, list) or (runs and answer.code is Code.INVALID):
                break  # what it is, or that none of its kind can be measured; else another backend may do
        if not isinstance(answer, list):
            if bare and answer.code is Code.UNAVAILABLE:
                raise BackendNeeded
            lines = answer.detail.splitlines()[-LAST_LINES:] if answer.code is Code.ERROR else []
            message = "\n".join([f"{answer.cause}; {answer.remedy}", *lines])
            raise UnusableScenario(f"{', '.join(map(str, left))} cannot be used: {message}")
        about |= zip(left, answer, strict=True)
        for file in caches.keys() & left:
            _write_cached(caches[file], about[file])
    return [Entry(file, hashes[file], about[file], baselines(file), configs[file], of_file[file]) for file in files]


def baselines(file: Path) -> dict[str, str]:
    beside = {backend: scenario.baseline_file(file, backend) for backend in backends.names()}
    with _as_unusable():
        return {backend: scenario.file_hash(baseline) for backend, baseline in beside.items() if baseline.is_file()}


def _cache_files(hashes: Mapping[Path, str]) -> dict[Path, Path]:
    """Return where each file's description is remembered, by what it is made of: name, content, and code here."""
    makers = [scenario.file_hash(PACKAGE_FOLDER / name) for name in DESCRIBED_BY]
    folder = Path(platformdirs.user_cache_dir("kerasbench")) / "descriptions"
    keys = {file: "\0".join([file.stem, file_hash, *makers]) for file, file_hash in hashes.items()}
    return {file: folder / f"{hashlib.sha256(key.encode()).hexdigest()}.json" for file, key in keys.items()}


def _read_cached(file: Path) -> Description | None:
    try:  # what was written here, under a name that says all of its contents, needs no msgspec, which is slow to load
        return from_dict(Description, json.loads(file.read_bytes()))
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def _write_cached(file: Path, description: Description) -> None:
    from kerasbench import files  # late: mostly all is remembered

    with suppress(OSError, ResultsError):  # a cache that cannot be written costs 50 ms the next time
        file.parent.mkdir(parents=True, exist_ok=True)
        files.replace(file, json.dumps(asdict(description)).encode())
