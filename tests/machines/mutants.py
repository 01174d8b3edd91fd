"""Breaks the machines on purpose, one place at a time, and says whether the tests notice.

Run by hand: ``python -m tests.machines.mutants [name …]``. Each mutant is a copy of the source with one text replaced; the
tests run on the copy, in a process of their own. A mutant that survives is a promise that no test holds anybody to.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
SEED: Final = "7"
PASSED: Final = 40
FAILED: Final = 41
LIMIT: Final = 600
"""Seconds; a mutant that makes the tests run longer has been noticed too."""


class Mutant(NamedTuple):
    """One change."""

    name: str
    file: str
    """Below ``src/stanchion``."""
    old: str
    new: str
    tests: str = ""
    """Paths below ``tests``; by default those of the machine itself."""


EXECUTION: Final = "server/test_kernel_calls.py server/test_kernel_bounds.py server/test_kernel_endings.py server/test_kernel_property.py"
KERNEL: Final = "server/test_kernel.py server/test_kernel_notices.py server/test_kernel_endings.py server/test_kernel_property.py"

MUTANTS: Final = (
    # -- session, classify
    Mutant("a repeated initialize may change the version", "machines/session.py", "session.profile is not None and session.profile is not profile", "False"),
    Mutant("a fresh session hears", "machines/session.py", "if session.heard or session.profile is None:", "if session.heard:"),
    Mutant("the connection decides the era", "machines/classify.py", "if meta is not None and meta.protocol_version is not UNSET:\n        return _modern", "if session.profile is None and meta is not None and meta.protocol_version is not UNSET:\n        return _modern"),
    Mutant("capabilities are not asked for", "machines/classify.py", "if meta.client_capabilities is UNSET:", "if False:"),
    Mutant("a handshake revision describes itself", "machines/classify.py", "if profile is None or not profile.modern:", "if profile is None:"),
    Mutant("the handshake is not enforced", "machines/classify.py", "if enforce:", "if False:"),
    # -- calls
    Mutant("an id may be in use twice", "machines/calls.py", "if key in self._by_request:", "if False:"),
    Mutant("an id is never free again", "machines/calls.py", "if self._by_request.get(key) == ref:", "if False:"),
    Mutant("another's id is set free", "machines/calls.py", "if self._by_request.get(key) == ref:", "if key in self._by_request:"),
    Mutant("a deadline outlives its call", "machines/calls.py", "        self.unset_deadline(call)\n        call.state = State.ENDED", "        call.state = State.ENDED"),
    Mutant("a deadline is due only afterwards", "machines/calls.py", "if at > now:", "if at >= now:"),
    Mutant("only the first queue has deadlines", "machines/calls.py", "return min((next(iter(queue.values())) for queue in self._due.values()), default=None)", "return next((next(iter(queue.values())) for queue in self._due.values()), None)"),
    Mutant("a new deadline keeps the old place", "machines/calls.py", "        self.unset_deadline(call)\n        call.deadline = seconds", "        call.deadline = seconds"),
    Mutant("the eras share their ids", "machines/calls.py", "(call.connection, call.profile.modern, call.id)", "(call.connection, False, call.id)"),
    Mutant("a call goes back", "machines/calls.py", "if state <= self.state:", "if state < self.state:"),
    # -- admission
    Mutant("one slot too many", "machines/admission.py", "len(self._holders) - len(self._written_off) >= self._total", "len(self._holders) - len(self._written_off) > self._total"),
    Mutant("one of a share too many", "machines/admission.py", "if charged >= share:", "if charged > share:"),
    Mutant("written-off work keeps its slot", "machines/admission.py", "if len(self._holders) - len(self._written_off) >= self._total:", "if len(self._holders) >= self._total:"),
    Mutant("written-off work is not charged", "machines/admission.py", "        self._written_off.add(ref)\n", "        self._written_off.add(ref)\n        self._charged[self._holders[ref]] -= 1\n"),
    Mutant("the end of written-off work is forgotten", "machines/admission.py", "        self._written_off.discard(ref)\n", ""),
    # -- clients
    Mutant("live clients are forgotten first", "machines/clients.py", "self._idle or self._live", "self._live or self._idle"),
    Mutant("one client too many is remembered", "machines/clients.py", "len(self._idle) + len(self._live) > self._limit", "len(self._idle) + len(self._live) > self._limit + 1"),
    Mutant("the newest is forgotten", "machines/clients.py", "next(iter(line))", "next(reversed(line))"),
    Mutant("initialising again keeps the old place", "machines/clients.py", "        self._forget(client.connection)\n        client.abilities", "        client.abilities"),
    Mutant("the anonymous are remembered", "machines/clients.py", "if client.connection is ANONYMOUS:", "if False:"),
    # -- changes, listeners, batches, throttle
    Mutant("the last change is lost", "machines/changes.py", "            self._pending.add(kind)\n", ""),
    Mutant("no window after a late notice", "machines/changes.py", "            self._quiet_until[kind] = now + self._window\n        return kinds", "        return kinds"),
    Mutant("a late change is told twice", "machines/changes.py", "        self._pending.discard(kind)\n        self._quiet_until[kind] = now + self._window\n        return True", "        self._quiet_until[kind] = now + self._window\n        return True"),
    Mutant("a notice is due only afterwards", "machines/changes.py", "self._quiet_until[kind] <= now", "self._quiet_until[kind] < now"),
    Mutant("one listener too many", "machines/listeners.py", "if count >= self._limit:", "if count > self._limit:"),
    Mutant("listeners are never counted down", "machines/listeners.py", "self._counts[listener.connection] - 1", "self._counts[listener.connection]"),
    Mutant("a batch is answered early", "machines/batches.py", "None if batch.left else", "None if batch.left > 1 else"),
    Mutant("no answer counts as one", "machines/batches.py", "if answer is not None:", "if True:"),
    Mutant("a rest fills the bucket without end", "machines/throttle.py", "min(max(1.0, self._rate), self._tokens + (now - self._at) * self._rate)", "self._tokens + (now - self._at) * self._rate"),
    # -- execution
    Mutant("a slot is lost with a denial", "server/execution.py", "        self.admission.release(call.ref)\n        match verdict:", "        match verdict:", EXECUTION),
    Mutant("a raising authorizer allows", "server/execution.py", "isinstance(outcome, Judged) else Deny()", "isinstance(outcome, Judged) else Allow()", EXECUTION),
    Mutant("nobody is judged", "server/execution.py", "if self._policy.authorizer is not None and isinstance(errand.work, RunTool) and not errand.raw:", "if False:", EXECUTION),
    Mutant("a cancelled call works on", "server/execution.py", "            out.append(Kill(ref))\n", "", EXECUTION),
    Mutant("work told to end is not watched", "server/execution.py", "            self._ending[ref] = now + self._config.kill_grace\n", "", EXECUTION),
    Mutant("work is written off and charged no more", "server/execution.py", "if self.admission.write_off(ref):", "if self.admission.release(ref):", EXECUTION),
    Mutant("a late end keeps its slot", "server/execution.py", "            self._ending.pop(ref, None)\n            self.admission.release(ref)", "            self._ending.pop(ref, None)", EXECUTION),
    Mutant("the authorizer has all the time there is", "server/execution.py", "        self.ledger.set_deadline(call, self._config.callback_timeout, now)\n", "", EXECUTION),
    Mutant("the tool has what the authorizer left", "server/execution.py", "        self.ledger.set_deadline(call, errand.timeout, now)\n", "", EXECUTION),
    Mutant("a hidden denial is told", "server/execution.py", "case Deny(hide=True):", "case Deny(hide=True, reason='\\0'):", EXECUTION),
    # -- the kernel around them
    Mutant("a closed connection's calls go on", "server/kernel.py", "        for call in self._execution.ledger.of(connection):\n            self._cancel(call.ref, now, out)", "        self._execution.ledger.of(connection)", KERNEL),
    Mutant("a stopping server takes work", "server/kernel.py", "if self._stopping:\n                raise", "if False:\n                raise", KERNEL),
    Mutant("a batch's end leaves its listeners", "server/kernel.py", "            self._handlers.listeners.remove(part)\n", "", KERNEL),
    Mutant("progress after the end", "server/notices.py", "if call is None or call.token is None:", "if call is not None and call.token is None:", KERNEL),
    Mutant("a falsy token is none", "server/handlers.py", "if token is not None and client.has_channel:", "if token and client.has_channel:", KERNEL),
    Mutant("listeners stay when they are cancelled", "server/kernel.py", "        self._handlers.listeners.remove(ref)\n", "", KERNEL),
    Mutant("anyone may name the anonymous' ids", "server/kernel.py", "shared = client.connection is ANONYMOUS", "shared = False", KERNEL),
)  # fmt: skip


def run(mutant: Mutant) -> str:
    """Whether the tests notice: ``killed``, ``survived``, or why that can't be said."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        source = Path(folder, "src")
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        path = source / "stanchion" / mutant.file
        text = path.read_text(encoding="utf-8")
        if text.count(mutant.old) < 1:
            return "STALE: the text to replace is not there"
        path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        stem = Path(mutant.file).stem
        tests = [f"tests/{one}" for one in (mutant.tests or f"machines/test_{stem}.py").split()]
        environment = os.environ | {
            "PYTHONPATH": str(source),
            "HYPOTHESIS_STORAGE_DIRECTORY": str(Path(folder, "hypothesis")),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = [sys.executable, "-m", "tests.machines.mutants", "--pytest", *tests]
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, timeout=LIMIT, check=False, text=True
            )
        except subprocess.TimeoutExpired:
            return "killed"
        verdicts = {PASSED: "SURVIVED", FAILED: "killed"}
        return verdicts.get(done.returncode, f"BROKEN: {done.stdout[-300:]}{done.stderr[-300:]}")


def judge(tests: list[str]) -> int:
    """Run tests without shrinking: that they fail is all we want to know.

    Returns:
        ``PASSED`` or ``FAILED``, which a program that ends otherwise does not say by accident.
    """
    import pytest

    import stanchion

    assert Path(stanchion.__file__).parents[2] != ROOT, "these are not the mutant's modules"

    class Unshrunk:
        @staticmethod
        def pytest_collection() -> None:
            from hypothesis import Phase, settings

            base = settings.get_profile(settings.get_current_profile_name())
            phases = [Phase.explicit, Phase.generate]
            settings.register_profile("unshrunk", base, phases=phases, report_multiple_bugs=False)
            settings.load_profile("unshrunk")

    options = ["-x", "-q", "-p", "no:cacheprovider", f"--hypothesis-seed={SEED}", *tests]
    code = pytest.main(options, plugins=[Unshrunk()])
    return {pytest.ExitCode.OK: PASSED, pytest.ExitCode.TESTS_FAILED: FAILED}.get(code, int(code))


def main(names: list[str]) -> int:
    """Try all mutants, or those whose names hold one of the words given."""
    chosen = [one for one in MUTANTS if not names or any(name in one.name for name in names)]
    began = time.monotonic()
    for tests in sorted({one.tests for one in chosen if one.tests}):
        verdict = run(Mutant("nothing", "__init__.py", "\n", "\n", tests))
        if verdict != "SURVIVED":
            raise SystemExit(f"without any change already, {tests}: {verdict}")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        verdicts = list(pool.map(run, chosen))
    for mutant, verdict in zip(chosen, verdicts, strict=True):
        print(f"{verdict:<10} {mutant.file:<24} {mutant.name}")
    killed = verdicts.count("killed")
    print(f"{killed} of {len(chosen)} killed, {time.monotonic() - began:.0f} s")
    return int(killed != len(chosen))


if __name__ == "__main__":
    arguments = sys.argv[1:]
    raise SystemExit(judge(arguments[1:]) if arguments[:1] == ["--pytest"] else main(arguments))
