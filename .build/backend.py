"""The build backend: setuptools, plus the compiled kernels and a release that can be repeated.

pyproject.toml names this module. It compiles the kernels into one extension module, and chooses the
options of the compiler at hand.

The environment variable ``SKLEARN_RANKCAL_KERNELS`` decides what is built. It has the same values
when the package is imported.

unset
    Build the kernels. Without a C compiler, install the package without them.
``compiled``
    Build the kernels. Without a C compiler, fail.
``numpy``
    Build no kernels. The wheel is pure Python (``py3-none-any``).

With ``SOURCE_DATE_EPOCH``, a time in seconds, the source archive and the pure Python wheel are the
same bytes whenever and wherever they are built from the same files.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import shutil
import sys
import tarfile
from pathlib import Path
from typing import Any

import setuptools
from setuptools.build_meta import _BuildMetaBackend
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

PACKAGE = "sklearn_rankcal"


def kernels() -> list[setuptools.Extension]:
    """Return the one extension module, or none if the kernels are not wanted."""
    wanted = os.environ.get("SKLEARN_RANKCAL_KERNELS", "")
    if wanted not in ("", "numpy", "compiled"):
        raise SystemExit(
            f"SKLEARN_RANKCAL_KERNELS must be 'numpy', 'compiled' or unset; it is {wanted!r}."
        )
    if wanted == "numpy":
        return []
    folder = Path(PACKAGE, "_kernels")
    return [
        setuptools.Extension(
            f"{PACKAGE}._kernels._compiled",
            [(folder / "_compiled.pyx").as_posix()],
            depends=[path.as_posix() for path in sorted(folder.glob("*.px[di]"))],
            optional=wanted != "compiled",
        )
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


def absolute_links(text: str, urls: dict[str, str]) -> str:
    """Rewrite the relative links of the README, which lead nowhere on a package index.

    A page of ``doc/`` leads to the site, which is ``Documentation`` in the ``project_urls`` of
    setup.cfg, and the rest leads to the repository, ``Source``. A link whose address is not known
    becomes plain text.
    """
    site, source = (urls.get(name, "").rstrip("/") for name in ("Documentation", "Source"))

    def absolute(match: re.Match[str]) -> str:
        image, label, target = match.groups()
        page = re.fullmatch(r"doc/(.+)\.rst(#.*)?", target)
        if page and site:
            return f"[{label}]({site}/{page[1]}.html{page[2] or ''})"
        if not source:
            return label
        folder = "" if target.startswith("#") else "/raw/HEAD/" if image else "/blob/HEAD/"
        return f"{image}[{label}]({source}{folder}{target})"

    return re.sub(r"(!?)\[([^\]]*)\]\((?![a-z]+:)([^)\s]+)\)", absolute, text)


class Distribution(setuptools.Distribution):
    """What setup.cfg says, with the README as a package index needs it."""

    def parse_config_files(self, *args: Any, **keywords: Any) -> None:
        super().parse_config_files(*args, **keywords)
        metadata = self.metadata
        metadata.long_description = absolute_links(
            metadata.long_description, metadata.project_urls or {}
        )


def fix_times(archive: Path, seconds: int) -> None:
    """Write a ``.tar.gz`` again, without what depends on the time and the machine of its build."""
    with tarfile.open(archive) as old:
        members = [
            (member, old.extractfile(member).read() if member.isfile() else b"")
            for member in sorted(old.getmembers(), key=lambda member: member.name)
        ]
    with (
        archive.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=seconds) as packed,
        tarfile.open(fileobj=packed, mode="w") as new,
    ):
        for member, content in members:
            again = tarfile.TarInfo(member.name)
            again.type, again.size, again.mtime = member.type, len(content), seconds
            again.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            new.addfile(again, io.BytesIO(content))


class Backend(_BuildMetaBackend):
    """The backend of setuptools, which reads setup.cfg and pyproject.toml, with our commands."""

    def build_sdist(self, sdist_directory: str, config_settings: Any = None) -> str:
        name = super().build_sdist(sdist_directory, config_settings)
        if seconds := os.environ.get("SOURCE_DATE_EPOCH"):
            fix_times(Path(sdist_directory, name), int(seconds))
        return name

    def run_setup(self, setup_script: str = "setup.py") -> None:
        setuptools.setup(
            distclass=Distribution,
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
