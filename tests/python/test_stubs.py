"""Stubs against the module, beyond what mypy.stubtest can see: parameters and defaults of bound functions,
which pybind11 tells only in the first line of a docstring."""
import ast
import re
from pathlib import Path
from typing import Any, Iterator, NamedTuple, Optional

import halftone
import pytest


# Called in __new__, with the name of the class; a subclass calls super().__init__().
MADE_IN_NEW = ("nn.Graph.__init__", "nn.Module.__init__")


class Parameter(NamedTuple):
    name: str
    keyword_only: bool
    default: Any  # None: none; a NotLiteral: one that is no literal


class NotLiteral(NamedTuple):
    pass


def literal(text: str) -> Any:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return NotLiteral()
    # A pair is a list to pybind11.
    return [list(value) if isinstance(value, tuple) else value]


def split(text: str) -> Iterator[str]:
    """At the commas outside brackets and quotes."""
    depth, start, quoted = 0, 0, False
    for i, c in enumerate(text):
        quoted ^= c == "'"
        depth += (c in "[({") - (c in "])}")
        if c == "," and depth == 0 and not quoted:
            yield text[start:i].strip()
            start = i + 1
    yield text[start:].strip()


def of_docstring(doc: str) -> Optional[list[Parameter]]:
    signature = re.match(r"\w+\((.*)\) -> ", doc.split("\n")[0])
    if signature is None or "*args" in signature[1]:
        return None
    parameters = []
    keyword_only = False
    for part in split(signature[1]) if signature[1] else []:
        if part == "*":
            keyword_only = True
            continue
        name, _, rest = part.partition(":")
        default = rest.partition(" = ")[2]
        parameters.append(Parameter(name, keyword_only, literal(default) if default else None))
    return parameters


def of_stub(arguments: ast.arguments) -> list[Parameter]:
    def default(node: Optional[ast.expr]) -> Any:
        return None if node is None else literal(ast.unparse(node))

    plain = arguments.posonlyargs + arguments.args
    defaults: list[Optional[ast.expr]] = [None] * (len(plain) - len(arguments.defaults))
    defaults += arguments.defaults
    return [Parameter(a.arg, False, default(d)) for a, d in zip(plain, defaults)] + [
        Parameter(a.arg, True, default(d))
        for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults)
    ]


def functions() -> Iterator[tuple[str, ast.arguments, Any]]:
    package = Path(halftone.__file__).parent
    for stub in sorted(package.glob("*.pyi")):
        module = halftone if stub.stem == "__init__" else getattr(halftone, stub.stem)
        for node in ast.parse(stub.read_text()).body:
            if isinstance(node, ast.FunctionDef):
                yield f"{stub.stem}.{node.name}", node.args, getattr(module, node.name)
            if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
                continue
            for member in node.body:
                if not isinstance(member, ast.FunctionDef) or member.decorator_list:
                    continue
                bound = getattr(getattr(module, node.name), member.name)
                yield f"{stub.stem}.{node.name}.{member.name}", member.args, bound


def differences(stub: list[Parameter], bound: list[Parameter]) -> list[str]:
    if len(stub) != len(bound):
        return [f"{len(stub)} parameters in the stub, {len(bound)} in the module"]
    found = []
    for mine, theirs in zip(stub, bound):
        # pybind11 calls unnamed operands arg0, arg1.
        if not re.fullmatch(r"self|arg\d", theirs.name) and mine.name != theirs.name:
            found.append(f"{mine.name} in the stub, {theirs.name} in the module")
        if mine.keyword_only != theirs.keyword_only:
            found.append(f"{mine.name} is keyword-only in one of them")
        # "..." in a stub: some default that is no literal.
        written = NotLiteral() if mine.default == [...] else mine.default
        if written != theirs.default:
            found.append(f"{mine.name} = {mine.default} in the stub, {theirs.default} in the module")
    return found


def test_parameters_and_defaults_agree() -> None:
    wrong = {}
    compared = 0
    for name, arguments, bound in functions():
        runtime = of_docstring(bound.__doc__ or "")
        if runtime is None or name in MADE_IN_NEW:
            continue
        compared += 1
        if different := differences(of_stub(arguments), runtime):
            wrong[name] = different
    assert wrong == {}, "\n".join(f"{name}: {text}" for name, text in wrong.items())
    assert compared > 120


def test_docstrings_of_what_cpp_declares_agree() -> None:
    stub = ast.parse((Path(halftone.__file__).parent / "nn.pyi").read_text())
    named = [node for node in stub.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    compared = 0
    for node in named:
        if isinstance(node, ast.ClassDef) and "_Layer" not in map(ast.unparse, node.bases):
            continue
        if node.name == "Buffer":
            continue
        doc = getattr(halftone.nn, node.name).__doc__
        if isinstance(node, ast.FunctionDef):
            doc = doc.partition("\n\n")[2]  # behind the signature
        written = ast.get_docstring(node)
        assert written and written.split() == doc.split(), node.name
        compared += 1
    assert compared > 70


@pytest.mark.parametrize(
    "stub, fault",
    [
        ("def f(a, b=2): ...", "b = .* in the stub"),
        ("def f(a, b): ...", "b = None in the stub"),
        ("def f(a, c=1): ...", "c in the stub, b in the module"),
        ("def f(a, *, b=1): ...", "b is keyword-only"),
        ("def f(a): ...", "1 parameters in the stub, 2"),
        ("def f(a, b=...): ...", "b = .*Ellipsis"),
    ],
)
def test_a_wrong_stub_is_found(stub: str, fault: str) -> None:
    function = ast.parse(stub).body[0]
    assert isinstance(function, ast.FunctionDef)
    bound = of_docstring("f(a: int, b: int = 1) -> None")
    assert bound is not None
    assert re.match(fault, differences(of_stub(function.args), bound)[0])
