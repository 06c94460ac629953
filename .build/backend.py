"""The build backend: setuptools, plus the compiled kernels.

pyproject.toml names this module. It finds every Cython file of the package, so a kernel can move or
be split without a change here, and it chooses the options of the compiler at hand.

The environment variable ``SKLEARN_RANKCAL_KERNELS`` decides what is built. It has the same values
when the package is imported.

unset
    Build the kernels. Without a C compiler, install the package without them.
``compiled``
    Build the kernels. Without a C compiler, fail.
``numpy``
    Build no kernels. The wheel is pure Python (``py3-none-any``).
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import setuptools
from setuptools.build_meta import _BuildMetaBackend
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

PACKAGE = "sklearn_rankcal"


def kernels() -> list[setuptools.Extension]:
    """One extension module for every ``.pyx`` file of the package."""
    wanted = os.environ.get("SKLEARN_RANKCAL_KERNELS", "")
    if wanted not in ("", "numpy", "compiled"):
        raise SystemExit(
            f"SKLEARN_RANKCAL_KERNELS must be 'numpy', 'compiled' or unset; it is {wanted!r}."
        )
    if wanted == "numpy":
        return []
    shared = [path.as_posix() for path in sorted(Path(PACKAGE).rglob("*.px[di]"))]
    return [
        setuptools.Extension(
            ".".join(path.with_suffix("").parts),
            [path.as_posix()],
            depends=shared,
            optional=wanted != "compiled",
        )
        for path in sorted(Path(PACKAGE).rglob("*.pyx"))
    ]


def compiler_options(compiler: str, system: str) -> tuple[list[str], list[str]]:
    """Options for compiling and for linking, for one type of compiler on one system.

    The kernels have NumPy twins with the same results, so no multiplication may be contracted with
    an addition. Debugging information and local symbols are left out: they are four fifths of the
    file.

    Parameters
    ----------
    compiler : str
        The ``compiler_type`` of setuptools: "msvc", "unix", "mingw32" or "cygwin".
    system : str
        The value of `sys.platform`.
    """
    if compiler == "msvc":
        return ["/O2", "/fp:precise"], []
    strip = "-Wl,-x" if system == "darwin" else "-Wl,-s"
    return ["-O3", "-g0", "-ffp-contract=off"], [strip]


class BuildKernels(build_ext):
    """Compile with the options of the compiler that setuptools found."""

    def build_extensions(self) -> None:
        compile_args, link_args = compiler_options(self.compiler.compiler_type, sys.platform)
        for extension in self.extensions:
            extension.extra_compile_args = compile_args
            extension.extra_link_args = link_args
        super().build_extensions()


class BuildModules(build_py):
    """Start from an empty folder: modules of an earlier build must not get into this one."""

    def run(self) -> None:
        if not self.editable_mode:
            shutil.rmtree(Path(self.build_lib, PACKAGE), ignore_errors=True)
        super().run()


class Backend(_BuildMetaBackend):
    """The backend of setuptools, which reads setup.cfg and pyproject.toml, with our commands."""

    def run_setup(self, setup_script: str = "setup.py") -> None:
        setuptools.setup(
            ext_modules=kernels(),
            cmdclass={"build_ext": BuildKernels, "build_py": BuildModules},
        )


_backend = Backend()
build_editable = _backend.build_editable
build_sdist = _backend.build_sdist
build_wheel = _backend.build_wheel
get_requires_for_build_editable = _backend.get_requires_for_build_editable
get_requires_for_build_sdist = _backend.get_requires_for_build_sdist
get_requires_for_build_wheel = _backend.get_requires_for_build_wheel
prepare_metadata_for_build_editable = _backend.prepare_metadata_for_build_editable
prepare_metadata_for_build_wheel = _backend.prepare_metadata_for_build_wheel
