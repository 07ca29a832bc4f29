# SPDX-License-Identifier: MIT
"""The set-up where a reader's machine differs: what configuring refuses, which commit it names, how it calls pip."""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*command, cwd, env=None):
    return subprocess.run([str(word) for word in command], cwd=cwd, env=env, capture_output=True, text=True)


class Configuring(unittest.TestCase):
    """One configuration: of a copy without a history of its own, inside somebody's repository, with a wrong name."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        outer = Path(folder.name)
        cls.copy = outer / "unpacked"
        files = ["CMakeLists.txt", "CMakePresets.json", "chapters/CMakeLists.txt",
                 *(p.relative_to(ROOT) for p in (ROOT / "common").rglob("*") if p.is_file())]
        for file in files:
            (cls.copy / file).parent.mkdir(parents=True, exist_ok=True)
            (cls.copy / file).write_bytes((ROOT / file).read_bytes())
        (cls.copy / "common/cmake/nvcc-launcher").chmod(0o755)
        for words in (["init", "-q"], ["-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-q",
                                       "--allow-empty", "-m", "theirs"]):
            run("git", *words, cwd=outer).check_returncode()
        cls.done = run("cmake", "--preset", "default", "-DGG_CHAPTERS=01;02,zz;03", cwd=cls.copy)

    def test_a_chapter_that_is_not_there_is_named(self):
        said = " ".join(self.done.stderr.split())
        self.assertNotEqual(self.done.returncode, 0, said)
        self.assertIn("GG_CHAPTERS=01;02,zz;03: 02,zz starts no chapter's name. Several are a list with semicolons, "
                      '"01;03"; the names are: 01_naive 02_tiled', said)

    def test_another_repositorys_commit_is_not_ours(self):
        self.assertIn('return "unknown";', (self.copy / "build/common/commit.cpp").read_text())


class Toolkits(unittest.TestCase):
    """The tree with its tests, configured with the toolkit that the build has, and with one that lacks NVRTC. The machine's CMake
    configured it already; here PyPI's newest does, where PyPI is there."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        done = run(sys.executable, "-m", "venv", cls.folder / "newest", cwd=cls.folder)
        if not done.returncode:
            done = run(cls.folder / "newest/bin/pip", "install", "--quiet", "--disable-pip-version-check", "cmake", cwd=cls.folder)
        if done.returncode:
            raise unittest.SkipTest(f"no CMake from PyPI: {done.stderr.strip()[-200:]}")

    def configured(self, nvcc):
        build = self.folder / f"tree by {nvcc.parent.parent.name}"
        done = run(self.folder / "newest/bin/cmake", "--preset", "check", "-DGG_FIGURES=OFF", "-S", ROOT, "-B", build, cwd=ROOT,
                   env=os.environ | {"CUDACXX": str(nvcc), "GG_CHAPTERS": "01;07l;09c"})
        self.assertEqual(done.returncode, 0, f"{done.stdout[-1000:]}\n{done.stderr[-2000:]}")

    def test_the_builds_own(self):
        self.configured(Path(os.environ["CUDACXX"]))

    def test_one_without_nvrtc(self):
        # The build's nvcc may be a script that starts one elsewhere, in the toolkit's folder.
        whole = Path(os.environ["GG_TOOLKIT"]).resolve()
        shutil.copytree(whole, self.folder / "toolkit", copy_function=os.symlink, ignore=shutil.ignore_patterns("*nvrtc*"))
        self.configured(self.folder / "toolkit/bin/nvcc")
        self.assertFalse(list(self.folder.glob("tree by toolkit/tests/emu/CMakeFiles/links_nvrtc.dir")))


class Processor(unittest.TestCase):
    """What is compiled for another processor than x86-64."""

    def test_no_source_and_no_flag_of_x86_is_left(self):
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "processor.cmake"
            script.write_text(f"set(CMAKE_SYSTEM_PROCESSOR aarch64)\nset(CMAKE_SOURCE_DIR {ROOT})\n"
                              f'include("{ROOT}/common/cmake/flags.cmake")\n'
                              f'file(GLOB sources RELATIVE "{ROOT}/common/emu" "{ROOT}/common/emu/core/units/fused*.cpp")\n'
                              "gg_for_this_cpu(sources)\n"
                              'message("${sources}|${gg_this_cpu}|${gg_exact_sums}")\n')
            done = run("cmake", "-P", script, cwd=folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        sources, flags, exact = done.stderr.strip().split("|")
        self.assertEqual(sources.split(";"), ["core/units/fused_sum.cpp", "core/units/fused_sums_any.cpp"])
        self.assertEqual((flags, exact), ("", "-ffp-contract=off"))


class Pip(unittest.TestCase):
    """gg_pip_install, with a package of this test's own in a folder. The first call makes the virtual environment, which
    takes long: it is the call that must not heed where the user's settings send packages, and the others come after it."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        (cls.folder / "wheels").mkdir()
        cls.make_wheel("gg_nothing", "any", "")
        for machine in ("x86_64", "aarch64"):
            cls.make_wheel("gg_compiler", f"manylinux2014_{machine}", f"MACHINE = '{machine}'\n")
        text = (ROOT / "common/cmake/prerequisites.cmake").read_text()
        function = text[text.index("# gg_pip_install("):]
        cls.script = cls.folder / "call.cmake"
        cls.script.write_text(f'set(Python3_EXECUTABLE "{sys.executable}")\nset(CMAKE_BINARY_DIR "{cls.folder}/build")\n'
                              f"{function}\ngg_pip_install(\"The package\" ${{WHAT}})\n")
        settings = {"PIP_USER": "1", "PIP_TARGET": str(cls.folder / "elsewhere"), "PIP_REQUIRE_HASHES": "1",
                    "PYTHONPATH": str(cls.folder), "PIP_NO_INDEX": "1"}
        configuration = f"[global]\nfind-links = {cls.folder}/wheels\ntarget = {cls.folder}/there\n[install]\nuser = true\n"
        cls.first = cls.install("gg-nothing", settings, configuration)

    @classmethod
    def make_wheel(cls, name, tag, code):
        with zipfile.ZipFile(cls.folder / f"wheels/{name}-1.0-py3-none-{tag}.whl", "w") as wheel:
            about = f"{name}-1.0.dist-info"
            wheel.writestr(f"{name}.py", code)
            wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
            wheel.writestr(f"{about}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-{tag}\n")
            wheel.writestr(f"{about}/RECORD", "")

    @classmethod
    def install(cls, what, settings, configuration):
        """Calls it with the user's settings of pip, in the environment and in a file."""
        file = cls.folder / "pip.conf"
        file.write_text(configuration)
        env = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
        return run("cmake", f"-DWHAT={what}", "-P", cls.script, cwd=cls.folder,
                   env={**env, "PIP_CONFIG_FILE": str(file), **settings})

    def test_the_users_settings_say_where_from_and_not_where_to(self):
        self.assertEqual(self.first.returncode, 0, self.first.stderr)
        self.assertTrue(list(self.folder.glob("build/python/lib/python3*/site-packages/gg_nothing.py")))
        self.assertFalse((self.folder / "elsewhere").exists() or (self.folder / "there").exists())

    def test_a_wheel_is_this_machines(self):
        done = self.install("gg-compiler", {"PIP_NO_INDEX": "1"}, f"[global]\nfind-links = {self.folder}/wheels\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        code, = self.folder.glob("build/python/lib/python3*/site-packages/gg_compiler.py")
        self.assertEqual(code.read_text(), f"MACHINE = '{platform.machine()}'\n")

    def test_says_why_pip_failed(self):
        done = self.install("gg-nothing==2", {"PIP_NO_INDEX": "1"}, f"[global]\nfind-links = {self.folder}/wheels\n")
        said = " ".join(done.stderr.split())
        self.assertIn("The package could not be fetched from PyPI: pip says: No matching distribution found for "
                      "gg-nothing==2; or install it by hand", said)

    def test_says_when_it_is_the_network(self):
        done = self.install("gg-something", {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_DEFAULT_TIMEOUT": "1"}, "")
        self.assertIn("connect this machine to the network", " ".join(done.stderr.split()))


if __name__ == "__main__":
    unittest.main()
