"""Threads, fork, the end of the interpreter, and limits of memory."""
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable

import halftone
import numpy as np
import pytest
from halftone import nn, optim
from models import Mlp, batch


def program(text: str, timeout: float = 120) -> "subprocess.CompletedProcess[str]":
    """Runs a program of its own, which may import what tests may."""
    here = os.path.dirname(os.path.abspath(__file__))
    path = os.pathsep.join([here, *sys.path])
    return subprocess.run(
        [sys.executable, "-c", text],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=timeout,
    )


class Product(nn.Graph):
    def build(self, x: nn.Value, y: nn.Value) -> nn.Value:
        return nn.matmul(x, y)


def in_threads(*functions: Callable[[], Any]) -> list[Any]:
    """Their results, or the first exception."""
    results: list[Any] = [None] * len(functions)
    errors: list[BaseException] = []

    def work(i: int) -> None:
        try:
            results[i] = functions[i]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def test_f03_a_call_lets_other_threads_run() -> None:
    """Counted: turns that a thread gets while one call is under way."""
    graph = Product()
    x = np.ones((1536, 1536), np.float32)
    graph.compile(x, x)
    turns = 0
    done = False

    def idle() -> None:
        time.sleep(0.2)

    def call() -> None:
        graph(x, x)

    def count() -> None:
        nonlocal turns
        while not done:
            turns += 1

    counter = threading.Thread(target=count)
    counter.start()
    rates = []
    try:
        for work in (idle, call):
            before, start = turns, time.perf_counter()
            work()
            rates.append((turns - before) / (time.perf_counter() - start))
    finally:
        done = True
        counter.join()
    assert rates[1] >= 0.2 * rates[0]


def test_f03_arrays_may_change_once_the_call_has_copied_them() -> None:
    """build() runs after that, and so does every thread that gets a turn during the call."""

    class Careless(nn.Graph):
        def build(self, a: nn.Value) -> nn.Value:
            x.fill(7)
            return nn.matmul(a, a)

    x = np.ones((512, 512), np.float32)
    np.testing.assert_array_equal(Careless()(x), np.full((512, 512), 512, np.float32))


def test_f03_threads_may_share_a_graph() -> None:
    x, y = batch()
    alone = Mlp()
    shared = Mlp()
    shared.load_state_dict(alone.state_dict())
    for _ in range(40):
        alone(x, y)

    def work() -> None:
        for _ in range(10):
            shared(x, y)
            assert shared.optimizer.lr > 0 and shared.run_count <= 40
            assert shared.notes() == [] and shared.state_dict() and shared.compiled_text()

    in_threads(work, work, work, work)
    assert shared.run_count == 40
    for name, value in alone.state_dict().items():
        np.testing.assert_array_equal(value, shared.state_dict()[name], err_msg=name)


def test_f03_graphs_that_share_a_module_take_turns() -> None:
    """w -= 1 in each step of each graph: none is lost."""

    class Down(nn.Graph):
        def __init__(self, w: nn.Parameter) -> None:
            super().__init__()
            self.w = w
            self.add_optimizer(optim.SGD([w], lr=1.0))

        def build(self) -> nn.Value:
            loss = nn.sum(nn.Value(self.w))
            loss.backward()
            return loss

    w = nn.Parameter(np.zeros(1000, np.float32))
    graphs = [Down(w) for _ in range(4)]

    def steps(graph: Down) -> Callable[[], None]:
        def work() -> None:
            for _ in range(50):
                graph()
                assert np.ptp(w.value()) == 0, "half of a step was seen"

        return work

    in_threads(*(steps(graph) for graph in graphs))
    np.testing.assert_array_equal(w.value(), np.full(1000, -200, np.float32))


def test_f03_build_of_several_threads() -> None:
    """build() has the interpreter lock while other threads wait for the graph's."""
    x, y = batch()

    def work() -> float:
        graph = Mlp()
        return float(graph(x, y)[0])

    shared = Mlp()

    def on_shared() -> float:
        return float(shared(x, y)[0])

    assert all(loss > 0 for loss in in_threads(work, work, on_shared, on_shared))


FORK = """
import os
import halftone
from models import Mlp, batch
halftone.set_num_threads(2)
x, y = batch(rows=4096)
graph = Mlp("adam")
graph(x, y)
def one_more(graph):
    graph(x, y)
    return b"".join(v.tobytes() for v in graph.state_dict().values())
def other(rows):
    graph = Mlp()
    graph(*batch(rows=rows))
    return b"".join(v.tobytes() for v in graph.state_dict().values())
child = os.fork()
if child == 0:
    ours = one_more(graph) + other(7)
    with open(os.environ["RESULT"], "wb") as file:
        file.write(ours)
    os._exit(0)
_, status = os.waitpid(child, 0)
assert status == 0, status
parents = one_more(graph) + other(7)
with open(os.environ["RESULT"], "rb") as file:
    assert file.read() == parents
print("same bits")
"""


def test_f02_a_child_of_fork_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESULT", str(tmp_path / "result"))
    done = program(FORK, timeout=60)
    assert (done.returncode, done.stdout) == (0, "same bits\n"), done.stderr


def test_f02_a_graph_that_was_in_a_call_cannot_go_on_in_the_child() -> None:
    text = """
import os, threading
import numpy as np
from halftone import nn
class Slow(nn.Graph):
    def build(self, x):
        inside.set()
        ready.wait()
        return x
inside, ready = threading.Event(), threading.Event()
graph = Slow()
x = np.zeros(2, np.float32)
thread = threading.Thread(target=lambda: graph(x))
thread.start()
inside.wait()
child = os.fork()
if child == 0:
    try:
        graph(x)
    except RuntimeError as error:
        os._exit(0 if "fork()" in str(error) else 2)
    os._exit(3)
ready.set()
thread.join()
print(os.waitpid(child, 0)[1])
"""
    done = program(text, timeout=60)
    assert done.stdout == "0\n", done.stderr


def test_f08_exit_while_a_daemon_thread_is_in_a_call() -> None:
    text = """
import threading, time
import numpy as np
from halftone import nn
class Product(nn.Graph):
    def build(self, x, y):
        return nn.matmul(x, y)
graph = Product()
x = np.ones((1024, 1024), np.float32)
graph(x, x)
started = threading.Event()
def work():
    while True:
        started.set()
        graph(x, x)
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
started.wait()
time.sleep(0.1)
print("end")
"""
    for _ in range(3):
        done = program(text)
        assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def test_f57_a_number_of_threads_that_is_out_of_range() -> None:
    for count in (100000, 2**31 - 1, -1):
        with pytest.raises(ValueError, match=f"set_num_threads: got {count}, expected 0..1024"):
            halftone.set_num_threads(count)


LIMITED = """
import resource
import numpy as np
import halftone
from halftone import nn
class Product(nn.Graph):
    def build(self, x, y):
        return nn.matmul(x, y)
def used():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
def limit(more):
    # Reading what is used takes memory.
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_AS, (used() + more, resource.RLIM_INFINITY))
"""


def test_f58_state_that_does_not_fit_is_a_memory_error() -> None:
    text = LIMITED + """
class Wide(nn.Graph):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(np.zeros(1 << 24, np.float32))
    def build(self):
        return nn.mean(nn.Value(self.w))
graph = Wide()
graph()
limit(32 << 20)
for f in (graph.state_dict, lambda: graph.w.value(), lambda: graph.save_checkpoint("/dev/null")):
    try:
        f()
        print("no error")
    except MemoryError as error:
        print("MemoryError:", error)
"""
    done = program(text)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) == 3, done.stderr
    for line in lines:
        assert line.startswith("MemoryError: ") and "cannot allocate 67108864 bytes" in line


def test_f58_threads_that_the_system_refuses_are_a_memory_error() -> None:
    text = LIMITED + """
halftone.set_num_threads(64)
graph = Product()
x = np.ones((4, 4), np.float32)
limit(128 << 20)
try:
    graph(x, x)
    print("no error")
except MemoryError as error:
    print("MemoryError:", error)
"""
    done = program(text)
    expected = "MemoryError: the system refuses 64 threads for kernels; expected a lower number"
    assert done.stdout.startswith(expected), (done.stdout, done.stderr)


def test_f58_kernels_that_do_not_fit_are_a_memory_error() -> None:
    # Graphs that stay, of a shape each: whatever the heap has left is used up at some time.
    text = LIMITED + """
halftone.set_num_threads(1)
x, y = np.ones((2000, 64), np.float32), np.ones((64, 64), np.float32)
graphs = []
def product():
    graphs.append(Product())
    return graphs[-1](x[: len(graphs)], y)
product()  # the C library ends a process that has no memory for a library's thread-local data
for more in (0, 1 << 20, 4 << 20):
    limit(more)
    try:
        while len(graphs) < 2000:
            product()
        print("fits")
    except MemoryError:
        print("MemoryError")
limit(1 << 30)
print(product()[0, 0])
"""
    done = program(text)
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert done.stdout == "MemoryError\n" * 3 + "64.0\n"
