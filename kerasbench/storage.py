"""Samples on disk: each way to store them writes them before the clock runs, and has what reads one of them again.

NumPy and what reads a file are imported inside the functions, so that a scenario file can be described without them.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kerasbench.datasets import DataError

MOVED = 8  # a picture is moved by one part in so many of its width


@dataclass(frozen=True)
class Store:
    """What was written, and how a sample of it is read: in Python, and in a graph of TensorFlow's."""

    items: Any  # an array: the path or the number of each sample
    read: Callable[[Any], Any]  # of an item, to an array
    read_tensor: Callable[[Any], Any]  # the same of tensors, by TensorFlow's own decoders


def png(folder: Path, x: Any) -> Store:
    """Write pictures, uint8 of (samples, height, width, 3), each to a file; raise DataError without Pillow."""
    return _pictures("png", folder, x)


def jpeg(folder: Path, x: Any) -> Store:
    """As ``png``. Each is read as JPEG has changed it, which is the same for all that read it."""
    return _pictures("jpeg", folder, x)


def _pictures(kind: str, folder: Path, x: Any) -> Store:
    import numpy as np

    try:
        from PIL import Image
    except ImportError as error:
        raise DataError(
            "pictures are written by Pillow, which is not in this environment: pip install pillow"
        ) from error
    paths = [str(folder / f"{number}.{kind}") for number in range(len(x))]
    for path, pixels in zip(paths, x, strict=True):
        Image.fromarray(pixels).save(path)
    return Store(np.array(paths), _picture, functools.partial(_picture_tensor, kind, x.shape[1:]))


def _picture(path: Any) -> Any:
    import numpy as np
    from PIL import Image

    with Image.open(str(path)) as picture:
        return np.array(picture)


def _picture_tensor(kind: str, shape: tuple[int, ...], path: Any) -> Any:
    import tensorflow as tf

    content = tf.io.read_file(path)
    if kind == "png":
        return tf.ensure_shape(tf.io.decode_png(content, channels=shape[-1]), shape)
    # Not TensorFlow's own approximation: Pillow's numbers.
    return tf.ensure_shape(tf.io.decode_jpeg(content, channels=shape[-1], dct_method="INTEGER_ACCURATE"), shape)


def memory_map(folder: Path, x: Any) -> Store:
    """Write an array to one file, of which a row is read where it is asked for."""
    import numpy as np

    path = str(folder / "x.npy")
    np.save(path, x)
    return Store(np.arange(len(x)), functools.partial(_row, path), functools.partial(_row_tensor, path, x[:1]))


def augmented(write: Callable[[Path, Any], Store]) -> Callable[[Path, Any], Store]:
    """Return what writes pictures as ``write`` does, and reads each mirrored and moved by an eighth of its width.

    As an augmentation by chance would cost, but the same in every epoch: so all feeds give the same rows.
    """
    return functools.partial(_augmented, write)


def _augmented(write: Callable[[Path, Any], Store], folder: Path, x: Any) -> Store:
    store, columns = write(folder, x), x.shape[2] // MOVED
    read = functools.partial(_moved, store.read, columns)  # a worker of its own may have to pickle it
    return Store(store.items, read, functools.partial(_moved_tensor, store.read_tensor, columns))


def _moved(read: Callable[[Any], Any], columns: int, item: Any) -> Any:
    import numpy as np

    return np.roll(read(item)[:, ::-1], columns, axis=1)


def _moved_tensor(read: Callable[[Any], Any], columns: int, item: Any) -> Any:
    import tensorflow as tf

    return tf.roll(tf.image.flip_left_right(read(item)), columns, axis=1)


@functools.cache
def _mapped(path: str) -> Any:
    import numpy as np

    return np.load(path, mmap_mode="r")


def _row(path: str, number: Any) -> Any:
    import numpy as np

    return np.array(_mapped(path)[number])


def _row_tensor(path: str, like: Any, number: Any) -> Any:
    import tensorflow as tf

    row = tf.numpy_function(functools.partial(_row, path), [number], like.dtype, stateful=False)
    return tf.ensure_shape(row, like.shape[1:])


def texts(folder: Path, x: Any) -> Store:
    """Write token ids, int32 of (samples, length), as words with blanks between them, each text to a file."""
    import numpy as np

    paths = [folder / f"{number}.txt" for number in range(len(x))]
    for path, tokens in zip(paths, x.tolist(), strict=True):
        path.write_text(" ".join(map(str, tokens)), "utf-8")
    return Store(np.array([*map(str, paths)]), _text, functools.partial(_text_tensor, x.shape[1:]))


def _text(path: Any) -> Any:
    import numpy as np

    return np.array(Path(str(path)).read_text("utf-8").split(), np.int32)


def _text_tensor(shape: tuple[int, ...], path: Any) -> Any:
    import tensorflow as tf

    tokens = tf.strings.to_number(tf.strings.split(tf.io.read_file(path)), tf.int32)
    return tf.ensure_shape(tokens, shape)
