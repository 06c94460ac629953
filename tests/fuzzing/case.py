"""One random call: what it draws, what holds of every call, and how a failure is told."""

from __future__ import annotations

import contextlib
import dis
import os
import signal
import sys
import threading
import types
import warnings
from pathlib import Path

import numpy as np

import sklearn_rankcal

try:
    import resource
except ImportError:  # Windows
    resource = None

#: Seconds and bytes that one call may take. Inputs are small, so both are generous.
SECONDS = 10
BYTES = 512 * 2**20
_PACKAGE = Path(sklearn_rankcal.__file__).resolve().parent
_RAISE = dis.opmap["RAISE_VARARGS"]


class Finding(Exception):
    """Something is wrong: `kind` in a few words, then what happened."""

    def __init__(self, kind, text=""):
        super().__init__(f"{kind}: {text}" if text else kind)
        self.kind = kind


class TooSlow(BaseException):
    """Raised by the clock. Not an Exception, so that no handler of the package catches it."""


class Case:
    """A source of random choices, and the calls made so far.

    Parameters
    ----------
    seed, number : int
        Which case.
    size : int
        How large inputs are: queries, documents and entries grow with it.
    folder : path
        Where files may be written.
    """

    def __init__(self, seed, number, size, folder, attempt=0):
        self.rng = np.random.default_rng([seed, number, size, attempt])
        self.size = size
        self.folder = Path(folder)
        self.log = []
        self.n_calls = 0

    # ---------------------------------------------------------------- choices

    def chance(self, probability):
        return bool(self.rng.random() < probability)

    def whole(self, low, high):
        """A whole number from low to high, both possible."""
        return int(self.rng.integers(low, high + 1))

    def choose(self, options):
        options = list(options)
        return options[int(self.rng.integers(len(options)))]

    # ---------------------------------------------------------------- calls

    def call(self, function, *args, **kwargs):
        """The value of a call, which must not raise."""
        outcome = self.attempt(function, *args, **kwargs)
        if outcome.error is not None:
            raise Finding("refuses good input", f"{outcome.describe()}") from outcome.error
        return outcome.value

    def refuses(self, function, *args, words=(), what="bad input", **kwargs):
        """A call that must raise, and name the argument by one of `words`."""
        outcome = self.attempt(function, *args, **kwargs)
        if outcome.error is None:
            raise Finding(f"accepts {what}", f"and returns {short(outcome.value)}")
        outcome.names(words)

    def attempt(self, function, *args, words=(), **kwargs):
        """What a call gives, error or value; with the checks that hold of every call."""
        self.n_calls += 1
        self.log.append(_source(function, args, kwargs))
        before = [_snapshot(value) for value in (*args, *kwargs.values())]
        outcome = Outcome()
        with warnings.catch_warnings(record=True) as caught, bounded():
            warnings.simplefilter("always")
            try:
                outcome.value = function(*args, **kwargs)
            except TooSlow:
                raise Finding("too slow", f"more than {SECONDS} s") from None
            except MemoryError as error:
                raise Finding("too much memory", f"more than {BYTES >> 20} MB") from error
            except Exception as error:
                outcome.error = error
        if outcome.error is not None:
            check_error(outcome.error)
            outcome.names(words)
        for warning in caught:
            if issubclass(warning.category, (RuntimeWarning, DeprecationWarning)):
                where = Path(warning.filename).name
                raise Finding(f"{warning.category.__name__} of {where}", str(warning.message))
        after = [_snapshot(value) for value in (*args, *kwargs.values())]
        if before != after:
            raise Finding("changes its input")
        outcome.warnings = caught
        return outcome

    # ---------------------------------------------------------------- judgements

    def expect(self, condition, kind, text=""):
        if not condition:
            raise Finding(kind, text)

    def equal(self, value, wanted, kind, rtol=1e-9, atol=1e-12):
        """Numbers that agree, NaN where NaN is wanted."""
        value, wanted = np.asarray(value, dtype=float), np.asarray(wanted, dtype=float)
        same = value.shape == wanted.shape and np.allclose(
            value, wanted, rtol=rtol, atol=atol, equal_nan=True
        )
        self.expect(same, kind, f"{value.tolist()} for {wanted.tolist()}")

    def file(self, name, content):
        """Write a file; its path."""
        path = self.folder / name
        path.write_bytes(content)
        shown = repr(content)
        if len(content) > 600:
            shown = f"{content[:80]!r} ... {len(content)} bytes"
        self.log.append(f"pathlib.Path({name!r}).write_bytes({shown})")
        return path


class Outcome:
    """Value or error of a call."""

    def __init__(self):
        self.value = self.error = None
        self.warnings = []

    def describe(self):
        return f"{type(self.error).__name__}: {short(self.error)}"

    def names(self, words):
        """The error must name the argument that is wrong."""
        text = str(self.error).lower()
        if self.error is not None and words and not any(word in text for word in words):
            raise Finding("error does not name its argument", self.describe()) from self.error


def check_error(error):
    """An error that a user may see: of the right type, raised on purpose, with a text."""
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    frame = frames[-1]
    code, place = frame.tb_frame.f_code, Path(frame.tb_frame.f_code.co_filename)
    name = f"{type(error).__name__} in {code.co_name}"
    if not isinstance(error, (ValueError, TypeError, OSError)):
        raise Finding(f"leaks {name}", str(error)) from error
    if len(str(error)) < 12:
        raise Finding(f"an error without a text: {name}", repr(error)) from error
    if isinstance(error, OSError) and error.filename is not None:
        return  # of the system, and it names the file
    scikit_learn = "sklearn" in place.parts  # its own checks of X and parameters are known to all
    raised = code.co_code[frame.tb_lasti] == _RAISE and _PACKAGE in place.resolve().parents
    if not (scikit_learn or raised):
        raise Finding(f"leaks {name}", short(error)) from error


@contextlib.contextmanager
def bounded():
    """Stop what takes too long or too much memory (where the system can)."""
    main = threading.current_thread() is threading.main_thread() and hasattr(signal, "SIGALRM")
    if sys.platform == "linux":
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * os.sysconf("SC_PAGE_SIZE") + BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit if hard < 0 else min(limit, hard), hard))
    if main:
        previous = signal.signal(signal.SIGALRM, _stop)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        if main:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)
        if sys.platform == "linux":
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _stop(number, frame):
    raise TooSlow


def short(value):
    text = str(value)
    return text if len(text) < 300 else f"{text[:300]} ..."


def _source(function, args, kwargs):
    """The call as a line of Python."""
    owner = getattr(function, "__self__", None)
    name = getattr(function, "__qualname__", repr(function))
    if owner is not None and not isinstance(owner, (type, types.ModuleType)):
        name = f"{literal(owner)}.{getattr(function, '__name__', name)}"
    shown = [literal(value) for value in args]
    shown += [f"{key}={literal(value)}" for key, value in kwargs.items()]
    return f"{name}({', '.join(shown)})"


def _snapshot(value):
    """Something that changes when the value does."""
    if isinstance(value, np.ndarray):
        inside = repr(value.tolist()) if value.dtype.hasobject else value.tobytes()
        mask = np.ma.getmaskarray(value).tobytes() if isinstance(value, np.ma.MaskedArray) else b""
        return value.shape, str(value.dtype), inside, mask
    if isinstance(value, (list, tuple, dict, str, int, float)):
        return short(repr(value))
    if hasattr(value, "equals") and hasattr(value, "shape"):  # frames and series
        return str(value.shape), repr(value)
    return None


def literal(value):
    """Source of a value; `np`, `pd` and `pl` are NumPy, pandas and polars."""
    if isinstance(value, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(value).tolist()
        return f"np.ma.array({literal(np.ma.getdata(value))}, mask={mask})"
    if isinstance(value, np.ndarray):
        text = _array(value)
        return text if len(text) < 4000 else f"{text[:4000]} ..."
    if isinstance(value, dict):
        return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    if type(value) is tuple:
        return "(" + "".join(f"{literal(v)}, " for v in value) + ")"
    kind = type(value)
    if kind.__module__.startswith("pandas") and hasattr(value, "to_dict"):
        if value.ndim == 2:
            return f"pd.DataFrame({literal(value.to_dict('list'))})"
        return f"pd.Series({literal(value.tolist())}, dtype={str(value.dtype)!r})"
    if kind.__module__.startswith("polars") and hasattr(value, "to_numpy"):
        if hasattr(value, "columns"):
            return f"pl.DataFrame({literal(value.to_dict(as_series=False))})"
        return f"pl.Series({literal(value.to_list())}, dtype=pl.{value.dtype})"
    if hasattr(value, "toarray"):
        return f"scipy.sparse.{kind.__name__}({literal(value.toarray())})"
    if hasattr(value, "__name__"):
        return value.__name__
    text = repr(value)
    return text if len(text) < 2000 else f"{text[:200]} ... {len(text)} characters"


def _array(value):
    if value.dtype.names is not None:
        return f"np.array({value.tolist()!r}, dtype={value.dtype.descr!r})"
    if value.dtype.kind in "mM":
        return f"np.array({value.astype(str).tolist()!r}, dtype={str(value.dtype)!r})"
    text = f"np.array({value.tolist()!r}, dtype={str(value.dtype)!r})"
    if value.dtype.kind != "f":
        return text
    return text.replace("nan", "np.nan").replace("inf", "np.inf")
