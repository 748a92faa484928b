"""Mistakes: the exception, its text, and that nothing crashes."""
import copy
import gc
import os
import re
import subprocess
import sys
import weakref
from typing import Any

import numpy as np
import pytest
from halftone import amp, nn, optim
from models import Array, Mlp, batch
from test_graphs import X, run


class Group(nn.Module):
    pass


def test_inputs_are_checked() -> None:
    with pytest.raises(TypeError, match="input 0: got list, expected a NumPy array"):
        run(nn.relu, [1.0])
    with pytest.raises(TypeError, match="input 0: got dtype complex64; expected float64, float32"):
        run(nn.relu, np.zeros(2, np.complex64))
    with pytest.raises(TypeError, match="input 0: got dtype >f4"):
        run(nn.relu, np.zeros(2, ">f4"))
    with pytest.raises(TypeError, match="got dtype object"):
        run(nn.relu, np.array([None]))
    with pytest.raises(ValueError, match="input 0: .*rank"):
        run(nn.relu, np.zeros((1,) * 9, np.float32))


def test_errors_of_build_name_the_python_line() -> None:
    class Wrong(nn.Graph):
        def build(self, x: nn.Value) -> nn.Value:
            return nn.matmul(x, x)

    with pytest.raises(ValueError) as caught:
        Wrong()(X)
    line = Wrong.build.__code__.co_firstlineno + 1
    assert str(caught.value).startswith(f"test_errors.py:{line}: matmul")
    assert "f32[2,3] x f32[2,3]" in str(caught.value)
    assert caught.traceback[-1].lineno + 1 == line


def test_a_value_is_neither_true_nor_false() -> None:
    class Wrong(nn.Graph):
        def build(self, x: nn.Value) -> nn.Value:
            return x if nn.mean(x) > 1 else -x

    with pytest.raises(TypeError, match="no content while build.. describes the step; nn.where"):
        Wrong()(X)


def test_errors_inside_layers_name_the_call() -> None:
    class Wrong(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(5, 2)

        def build(self, x: nn.Value) -> nn.Value:
            return self.fc(x)

    with pytest.raises(ValueError, match=r"^test_errors.py:\d+: .*linear"):
        Wrong()(X)


def test_exceptions_of_build_come_through() -> None:
    class Odd(Exception):
        pass

    def build(x: nn.Value) -> nn.Value:
        raise Odd("mine")

    for _ in range(2):
        with pytest.raises(Odd, match="mine"):
            run(build, X)
    assert run(nn.relu, X).shape == X.shape  # nothing is left behind


def test_a_caught_error_still_fails_the_call() -> None:
    def build(x: nn.Value) -> nn.Value:
        try:
            nn.matmul(x, x)
        except ValueError:
            pass
        return x

    with pytest.raises(ValueError, match="matmul"):
        run(build, X)


def test_results_of_build_are_checked() -> None:
    with pytest.raises(TypeError, match=r"build\(\) returned an object of type float"):
        run(lambda x: 1.0, X)
    with pytest.raises(TypeError, match=r"build\(\) returned an element of type ndarray"):
        run(lambda x: (x, X), X)


def test_operands_are_checked() -> None:
    with pytest.raises(TypeError):
        run(lambda x: x + "a", X)
    with pytest.raises(TypeError, match="nn.constant"):
        run(lambda x: x + X, X)
    with pytest.raises(TypeError):
        run(lambda x: X + x, X)
    with pytest.raises(TypeError, match=r"stride is 'a'; expected an int or a pair"):
        run(lambda x: nn.max_pool2d(x, 2, stride="a"), X)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="dtype is 'f8x'; expected float64"):
        run(lambda x: nn.cast(x, "f8x"), X)


def test_values_do_not_outlive_their_build() -> None:
    kept: list[nn.Value] = []

    def keep(x: nn.Value) -> nn.Value:
        kept.append(x)
        return x

    run(keep, X)
    assert "another call" in repr(kept[0])
    only = r"functions and modules of nn work inside build\(\) only, on the values that it is given"
    with pytest.raises(RuntimeError, match=only):
        nn.relu(kept[0])
    with pytest.raises(RuntimeError, match=only):
        kept[0].backward()
    with pytest.raises(RuntimeError, match=r"belongs to another call of build\(\)"):
        run(lambda x: x + kept[0], X)


def test_constructors_report_their_mistakes() -> None:
    with pytest.raises(ValueError, match="Linear: in_features is -3; expected at least 1"):
        nn.Linear(-3, 2)
    with pytest.raises(ValueError, match="growth_factor = 1"):
        amp.GradScaler(growth_factor=1)
    with pytest.raises(ValueError, match="SGD: lr = -1"):
        optim.SGD([nn.Parameter(X)], lr=-1)
    with pytest.raises(ValueError, match='skip is "none"; expected own or any'):
        optim.SGD([nn.Parameter(X)], skip="none")
    with pytest.raises(ValueError, match="step_size = 0"):
        optim.StepLR(0)
    with pytest.raises(RuntimeError, match="belongs to no module of this graph"):
        Mlp(None).add_optimizer(optim.SGD([nn.Parameter(X)]))


def test_modules_must_be_registered() -> None:
    loose = nn.Linear(3, 2)
    with pytest.raises(RuntimeError, match="Linear.* is not part of this graph"):
        run(lambda x: loose(x), X)

    class Twice(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(3, 2)
            self.fc = nn.Linear(3, 2)

    with pytest.raises(ValueError, match="fc"):
        Twice()


def test_a_module_cannot_contain_itself() -> None:
    outer, inner = Group(), Group()
    with pytest.raises(ValueError, match="a module cannot contain itself"):
        outer.me = outer
    outer.inner = inner
    with pytest.raises(ValueError, match="a module cannot contain itself"):
        inner.outer = outer


def test_graph_without_build() -> None:
    text = r"has no build\(\); expected a subclass of nn.Graph that defines it"
    with pytest.raises(NotImplementedError, match=text):
        nn.Graph()(X)


def test_a_graph_does_not_call_itself() -> None:
    class Loop(nn.Graph):
        def build(self, x: nn.Value) -> Any:
            return self(X)

    text = "graph @Loop was called inside its own build()"
    with pytest.raises(RuntimeError, match=re.escape(text)):
        Loop()(X)


def test_build_does_not_change_the_mode() -> None:
    class Modes(nn.Graph):
        def build(self, x: nn.Value) -> Any:
            self.train(not self.is_training)
            return x

    with pytest.raises(RuntimeError, match=r"eval\(\) was called inside build\(\)"):
        Modes()(X)
    assert run(nn.relu, X).shape == X.shape


def test_an_exception_of_a_second_build_is_not_kept() -> None:
    class Flaky(nn.Graph):
        def build(self, x: nn.Value) -> Any:
            if not self.is_training:
                raise KeyError("second")
            return x

    flaky = Flaky()
    flaky(X)
    flaky.eval()
    with pytest.raises(KeyError, match="second"):
        flaky(X)
    assert run(nn.relu, X).shape == X.shape


def test_objects_without_init_cannot_be_made() -> None:
    classes: list[Any] = [nn.Linear, nn.Value, nn.Parameter, nn.Graph, optim.SGD, amp.GradScaler]
    for made in classes:
        with pytest.raises(TypeError, match="not safe"):
            made.__new__(made)
    with pytest.raises(TypeError, match="cannot pickle"):
        copy.copy(nn.Linear(1, 1))


def test_circles_are_collected() -> None:
    class Circle(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.me = self

        def build(self, x: nn.Value) -> nn.Value:
            return x

    graph = Circle()
    graph(X)
    gone = weakref.ref(graph)
    del graph
    gc.collect()
    assert gone() is None


def test_super_init_may_be_late_or_missing() -> None:
    class Late(nn.Graph):
        def __init__(self) -> None:
            self.fc = nn.Linear(3, 2)
            super().__init__()

        def build(self, x: nn.Value) -> Any:
            return self.fc(x)

    class Missing(nn.Module):
        def __init__(self) -> None:
            self.fc = nn.Linear(3, 2)

    assert Late()(X).shape == (2, 2)
    assert [name for name, _ in Missing().named_parameters()] == ["fc.weight", "fc.bias"]


def test_modules_live_as_long_as_their_graph() -> None:
    class Net(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            inner = Group()
            inner.fc = nn.Linear(3, 2)
            self.add_module("inner", inner)
            self.add_module("tail", nn.Sequential(nn.Linear(2, 2)))
            self.kept = weakref.ref(inner)

        def build(self, x: nn.Value) -> Any:
            module: Any = self.kept()
            return module.fc(x)

    net = Net()
    gc.collect()
    w, b = net.state_dict()["inner.fc.weight"], net.state_dict()["inner.fc.bias"]
    np.testing.assert_allclose(net(X), X @ w.T + b, rtol=1e-5, atol=1e-6)
    assert "tail.0.weight" in net.state_dict()


def test_a_deleted_attribute_keeps_its_module() -> None:
    graph = Mlp()
    fc1, x_y = weakref.ref(graph.fc1), batch()
    first = graph(*x_y)[0]
    with pytest.raises(AttributeError):
        del graph.fc1, graph.fc1
    gc.collect()
    assert fc1() is not None
    assert np.isfinite(first) and np.isfinite(graph(*x_y)[0])


def test_handles_outlive_their_graph_safely() -> None:
    graph = Mlp()
    scaler = graph.set_grad_scaler(amp.GradScaler())
    optimizer, config, kept = graph.optimizer, graph.config, weakref.ref(graph)
    del graph
    gc.collect()
    config.seed = 3  # keeps the graph
    assert kept() is not None and optimizer.lr == pytest.approx(0.1)
    del config
    gc.collect()
    assert kept() is None  # handles do not, though the graph had them as attributes
    with pytest.raises(RuntimeError, match="optimizer0: its graph no longer exists"):
        optimizer.lr
    with pytest.raises(RuntimeError, match="scaler0: its graph no longer exists"):
        scaler.scale = 2


def test_arrays_outlive_everything() -> None:
    graph = Mlp()
    x, y = batch()
    loss, logits = graph(x, y)
    state = graph.state_dict()
    copies: list[Array] = [logits.copy(), state["fc1.weight"].copy()]
    for _ in range(3):
        graph(x, y)
    del graph
    gc.collect()
    np.testing.assert_array_equal(logits, copies[0])
    np.testing.assert_array_equal(state["fc1.weight"], copies[1])


def test_labels_out_of_range() -> None:
    graph = Mlp()
    x, y = batch()
    before = graph.state_dict()["fc1.weight"]
    with pytest.raises(IndexError, match="models.py:.*7"):
        graph(x, np.full_like(y, 7))
    np.testing.assert_array_equal(graph.state_dict()["fc1.weight"], before)


def test_the_call_of_a_step_that_fails_on_a_device_raises() -> None:
    graph = Mlp()
    graph.to("cuda")
    x, y = batch()
    try:
        graph(x, y)
    except (NotImplementedError, RuntimeError, ValueError) as absent:
        assert str(absent).startswith("device cuda:0: ")
        pytest.skip(str(absent))
    before = graph.state_dict()["fc1.weight"]
    for _ in range(2):  # launched one by one, and recorded
        with pytest.raises(IndexError, match="models.py:.*7"):
            graph(x, np.full_like(y, 7))
        np.testing.assert_array_equal(graph.state_dict()["fc1.weight"], before)
    graph(x, y)
    assert not graph.last_step_skipped()


WAITING = """
import sys, threading, time
import numpy as np
from halftone import nn

class Square(nn.Graph):
    def build(self, x: nn.Value) -> nn.Value:
        return nn.matmul(x, x)

graph = Square()
graph.to("cuda")
x = np.ones((200, 200), np.float32)
try:
    graph(x)
except (NotImplementedError, RuntimeError, ValueError) as absent:
    print("absent", absent)
    sys.exit()
ticks, stop = 0, False

def count() -> None:
    global ticks
    while not stop:
        ticks += 1
        time.sleep(0)

sys.setswitchinterval(1000)  # a thread gives way where it says so only
other = threading.Thread(target=count)
other.start()
before = ticks
graph(x)
print(ticks - before)
stop = True
other.join()
"""


def test_other_threads_run_while_a_call_waits_for_the_device() -> None:
    environment = {**os.environ, "HALFTONE_EMULATION_LAZY": "1"}  # of an emulated device: work takes time
    done = subprocess.run(
        [sys.executable, "-c", WAITING], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    if done.stdout.startswith("absent"):
        pytest.skip(done.stdout)
    assert int(done.stdout) > 0


def test_devices_and_files_that_do_not_exist() -> None:
    graph = Mlp()
    with pytest.raises(ValueError, match='device is "tpu"; expected cpu, reference, cuda or cuda:0..999'):
        graph.to("tpu")
    with pytest.raises(TypeError, match="got a key of type int"):
        graph.load_state_dict({1: X})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match='state "fc1.weight": got list'):
        graph.load_state_dict({"fc1.weight": [1]})  # type: ignore[dict-item]


def test_f68_a_mistake_is_over_once_it_was_raised() -> None:
    module: Any = Group()
    with pytest.raises(ValueError, match="cannot name a member"):
        module.add_module("a.b", nn.Linear(2, 2))
    module.fc = nn.Linear(2, 2)
    with pytest.raises(ValueError, match='two members named "fc"'):
        module.register_parameter("fc", nn.Parameter(X))
    with pytest.raises(ValueError, match="a module cannot contain itself"):
        module.add_module("me", module)
    module.head = nn.Linear(2, 1)
    assert [name for name, _ in module.named_parameters()] == [
        "fc.weight",
        "fc.bias",
        "head.weight",
        "head.bias",
    ]

    graph: Any = Mlp(optimizer=None)
    with pytest.raises(ValueError, match="cannot name a module"):
        graph.add_module("a/b", nn.Linear(2, 2))
    with pytest.raises(ValueError, match="two variables are named"):
        graph.add_module("fc1", nn.Linear(3, 4))
    with pytest.raises(RuntimeError, match="belongs to no module of this graph"):
        graph.add_optimizer(optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1))
    graph.set_grad_scaler(amp.GradScaler())
    with pytest.raises(ValueError, match="set_grad_scaler was called twice"):
        graph.set_grad_scaler(amp.GradScaler())
    with pytest.raises(ValueError, match="matches no parameter"):
        graph.split_parameters(["nothing/*"])
    optimizer = graph.add_optimizer(optim.SGD(graph.parameters(), lr=0.1))
    assert optimizer.name == "optimizer0" and graph.grad_scaler().name == "scaler0"
    loss, _ = graph(*batch())
    assert np.isfinite(loss) and optimizer.applied_steps == 1
    assert len(graph.parameters()) == 4


def test_modules_nested_without_end() -> None:
    # From the inside out and from the outside in; half a thousand levels are enough for anybody.
    block: Any = nn.ReLU()
    with pytest.raises(ValueError, match="expected at most 500 modules in one another"):
        for _ in range(50_000):
            block = nn.Sequential(block)
    outer: Any = Group()
    inner = outer
    with pytest.raises(ValueError, match="expected at most 500 modules in one another"):
        for _ in range(50_000):
            deeper = Group()
            inner.add_module("m", deeper)
            inner = deeper
    assert len(outer.named_parameters()) == 0
