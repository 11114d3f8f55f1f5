"""URScript programs, executed at the controller's step.

Every thread of a program is a Python generator that yields when it waits: in `sync()`, `sleep()`, a
motion, or a socket. `Interpreter.step` resumes each thread once per control step, in the order in
which they were started, so that nothing interrupts a thread between two waiting calls. A thread
that is killed leaves its generator by `GeneratorExit`, and thereby releases the arm.

A name belongs to the innermost scope that has it: that of the function, those around its
definition, or the program's. An assignment to a new name makes it in the scope of the function,
unless it is declared `global`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from steelyard.errors import SourceFailed
from steelyard.twin._syntax import (
    Assign,
    Binary,
    Block,
    Call,
    Constant,
    Define,
    Evaluate,
    Expression,
    If,
    Index,
    Jump,
    ListOf,
    Name,
    NumberList,
    Program,
    Return,
    Statement,
    ThreadEnd,
    Unary,
    While,
    defined_names,
)

Value: TypeAlias = Any
"""A number, a text, a boolean, a list, or None."""

Waiting: TypeAlias = Generator[None, None, Value]
"""A computation that yields once for each control step that it waits."""

Function: TypeAlias = Callable[..., Value]
"""A function of the controller; one that waits returns a generator (`Waiting`)."""

_MAX_STATEMENTS_PER_STEP = 20_000  # of one thread; more is a loop that never waits
_SIGNS: Mapping[str, Callable[[Value, Value], Value]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


class ProgramFailed(SourceFailed):
    """A program was refused, or stopped by a runtime error."""


class Pose(list[Value]):
    """A position and a rotation vector, `p[x, y, z, rx, ry, rz]`."""


@dataclass
class _Scope:
    """Variables and functions of a block, and the scope around it."""

    around: _Scope | None = None
    variables: dict[str, Value] = field(default_factory=dict)
    functions: dict[str, _UserFunction] = field(default_factory=dict)

    def holder(self, name: str) -> _Scope | None:
        """The innermost scope that has a variable."""
        scope: _Scope | None = self
        while scope is not None and name not in scope.variables:
            scope = scope.around
        return scope

    def function(self, name: str) -> _UserFunction | None:
        """The innermost function with a name."""
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.functions:
                return scope.functions[name]
            scope = scope.around
        return None

    @property
    def outermost(self) -> _Scope:
        """The scope of global variables."""
        scope = self
        while scope.around is not None:
            scope = scope.around
        return scope


@dataclass(frozen=True)
class _UserFunction:
    """A function of the program, and the scope around its definition."""

    definition: Define
    scope: _Scope


class _Returned(Exception):
    """Leaves a function with its value."""

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


class _Jumped(Exception):
    """Leaves a loop (`break`), or its body (`continue`)."""

    def __init__(self, word: str) -> None:
        super().__init__(word)
        self.word = word


class _Halted(Exception):
    """Ends the whole program."""


class Interpreter:
    """A program while it runs.

    Args:
        program: the parsed program
        functions: functions of the controller, by their names

    Raises:
        ProgramFailed: the program calls a function that does not exist
    """

    def __init__(self, program: Program, functions: Mapping[str, Function]) -> None:
        self.program = program
        self._functions = functions
        self._threads: dict[int, Waiting] = {}
        self._started = 0
        self._present = 0  # number of the thread that is being resumed
        self._left = 0  # statements that the present thread may still execute in this step
        self._require_known(program)
        self._start(self._block(program.body, _Scope()))

    @property
    def running(self) -> bool:
        """Whether the program has not ended."""
        return bool(self._threads)

    def step(self) -> None:
        """Resumes every thread until it waits; raises `ProgramFailed` on a runtime error."""
        for number in list(self._threads):
            if number in self._threads:
                self._resume(number)
        if 1 not in self._threads:  # the program ends with its main thread
            self.stop()

    def stop(self) -> None:
        """Ends all threads."""
        threads = list(self._threads.values())
        self._threads.clear()
        for thread in threads:
            thread.close()

    def _require_known(self, program: Program) -> None:
        known = {*self._functions, *defined_names(program.body)}
        for call in program.calls:
            if call.name not in known and call.name != program.name:
                raise ProgramFailed(f"line {call.line}: there is no function '{call.name}'")

    # --- threads

    def _start(self, thread: Waiting) -> int:
        self._started += 1
        self._threads[self._started] = thread
        return self._started

    def _resume(self, number: int) -> None:
        self._left = _MAX_STATEMENTS_PER_STEP
        self._present = number
        try:
            next(self._threads[number])
        except (StopIteration, _Returned):
            self._threads.pop(number, None)
        except _Halted:
            self.stop()

    def _kill(self, number: Value) -> None:
        if number in self._threads and number != self._present:
            self._threads.pop(number).close()

    # --- statements

    def _block(self, block: Block, scope: _Scope) -> Waiting:
        for statement in block:
            if isinstance(statement, Define):
                scope.functions[statement.name] = _UserFunction(statement, scope)
        for statement in block:
            self._left -= 1
            if self._left < 0:
                raise ProgramFailed("a loop never waits: call sync() or sleep() in it")
            yield from self._execute(statement, scope)

    def _execute(self, statement: Statement, scope: _Scope) -> Waiting:
        if isinstance(statement, Evaluate):
            yield from self._value(statement.expression, scope)
        elif isinstance(statement, Assign):
            value = yield from self._value(statement.value, scope)
            yield from self._assign(statement, value, scope)
        elif isinstance(statement, If):
            yield from self._branch(statement, scope)
        elif isinstance(statement, While):
            yield from self._loop(statement, scope)
        elif isinstance(statement, Return):
            value = None
            if statement.value is not None:
                value = yield from self._value(statement.value, scope)
            raise _Returned(value)
        elif isinstance(statement, Jump):
            if statement.word == "halt":
                raise _Halted
            raise _Jumped(statement.word)
        elif isinstance(statement, ThreadEnd):
            yield from self._end_thread(statement, scope)

    def _assign(self, statement: Assign, value: Value, scope: _Scope) -> Waiting:
        target = statement.target
        if isinstance(value, list):
            value = type(value)(value)  # a variable holds a copy
        if isinstance(target, Index):
            items = yield from self._value(target.of, scope)
            at = yield from self._indices(target, scope)
            for index in at[:-1]:
                items = items[index]
            items[at[-1]] = value
            return
        place: _Scope | None = scope
        if statement.scope == "global":
            place = scope.outermost
        elif not statement.scope:
            place = scope.holder(target.name) or scope
        if place is not None:
            place.variables[target.name] = value

    def _branch(self, statement: If, scope: _Scope) -> Waiting:
        for condition, block in statement.branches:
            if (yield from self._value(condition, scope)):
                yield from self._block(block, scope)
                return
        yield from self._block(statement.otherwise, scope)

    def _loop(self, statement: While, scope: _Scope) -> Waiting:
        while (yield from self._value(statement.condition, scope)):
            self._left -= 1
            if self._left < 0:
                raise ProgramFailed("a loop never waits: call sync() or sleep() in it")
            try:
                yield from self._block(statement.body, scope)
            except _Jumped as jump:
                if jump.word == "break":
                    return

    def _end_thread(self, statement: ThreadEnd, scope: _Scope) -> Waiting:
        number = yield from self._value(statement.thread, scope)
        if statement.word == "kill":
            self._kill(number)
        while statement.word == "join" and number in self._threads:
            yield

    # --- expressions

    def _value(self, expression: Expression, scope: _Scope) -> Waiting:
        """The value of an expression; calls in it may wait."""
        if not expression.has_call:
            return self._value_at_once(expression, scope)
        if isinstance(expression, Call):
            return (yield from self._call(expression, scope))
        if isinstance(expression, Binary):
            left = yield from self._value(expression.left, scope)
            if _is_decided(expression.sign, left):
                return bool(left)
            right = yield from self._value(expression.right, scope)
            return _combined(expression, left, right)
        if isinstance(expression, ListOf):
            items = []
            for item in expression.items:
                items.append((yield from self._value(item, scope)))
            return _list_or_pose(items, expression.is_pose)
        if isinstance(expression, Index):
            items = yield from self._value(expression.of, scope)
            return _element(expression, items, (yield from self._indices(expression, scope)))
        if isinstance(expression, Unary):
            return _signed(expression.sign, (yield from self._value(expression.of, scope)))
        return None

    def _value_at_once(self, expression: Expression, scope: _Scope) -> Value:
        """The value of an expression without calls."""
        if isinstance(expression, Name):
            return self._variable(expression, scope)
        if isinstance(expression, Constant):
            return expression.value
        if isinstance(expression, Binary):
            left = self._value_at_once(expression.left, scope)
            if _is_decided(expression.sign, left):
                return bool(left)
            return _combined(expression, left, self._value_at_once(expression.right, scope))
        if isinstance(expression, Index):
            items = self._value_at_once(expression.of, scope)
            indices = [int(self._value_at_once(index, scope)) for index in expression.at]
            return _element(expression, items, indices)
        if isinstance(expression, NumberList):
            return _list_or_pose(expression.values, expression.is_pose)
        if isinstance(expression, ListOf):
            values = [self._value_at_once(item, scope) for item in expression.items]
            return _list_or_pose(values, expression.is_pose)
        if isinstance(expression, Unary):
            return _signed(expression.sign, self._value_at_once(expression.of, scope))
        return None

    def _variable(self, expression: Name, scope: _Scope) -> Value:
        holder = scope.holder(expression.name)
        if holder is None:
            raise ProgramFailed(f"line {expression.line}: there is no variable '{expression.name}'")
        return holder.variables[expression.name]

    def _indices(self, expression: Index, scope: _Scope) -> Waiting:
        found = []
        for index in expression.at:
            found.append(int((yield from self._value(index, scope))))
        return found

    def _call(self, call: Call, scope: _Scope) -> Waiting:
        args = []
        for argument in call.args:
            args.append((yield from self._value(argument, scope)))
        named = {}
        for name, argument in call.named:
            named[name] = yield from self._value(argument, scope)
        function = scope.function(call.name)
        if function is not None:
            body = self._user_call(function, call, args, named)
            if call.starts_thread:
                return self._start(body)
            return (yield from body)
        try:
            value = self._functions[call.name](*args, **named)
            if isinstance(value, Generator):
                value = yield from value
        except (TypeError, ValueError, IndexError, ZeroDivisionError) as error:
            raise ProgramFailed(f"line {call.line}: {call.name}: {error}") from error
        return value

    def _user_call(
        self, function: _UserFunction, call: Call, args: list[Value], named: Mapping[str, Value]
    ) -> Waiting:
        scope = _Scope(function.scope)
        definition = function.definition
        given = dict(zip((name for name, _ in definition.parameters), args, strict=False))
        given.update(named)
        for name, default in definition.parameters:
            if name not in given:
                if default is None:
                    raise ProgramFailed(f"line {call.line}: {call.name} needs '{name}'")
                given[name] = yield from self._value(default, function.scope)
        scope.variables.update(given)
        try:
            yield from self._block(definition.body, scope)
        except _Returned as returned:
            return returned.value
        return None


def _is_decided(sign: str, left: Value) -> bool:
    """Whether `and` or `or` need no second value."""
    if sign == "or":
        return bool(left)
    return sign == "and" and not left


def _combined(expression: Binary, left: Value, right: Value) -> Value:
    """Both values with the operator between them."""
    sign = expression.sign
    if sign in ("and", "or"):
        return bool(right)
    if sign == "xor":
        return bool(left) != bool(right)
    try:
        return _SIGNS[sign](left, right)
    except (TypeError, ZeroDivisionError) as error:
        raise ProgramFailed(f"line {expression.line}: {error}") from error


def _element(expression: Index, items: Value, indices: Iterable[int]) -> Value:
    """An element of a list, or of a list in a list."""
    for index in indices:
        if not isinstance(items, list) or not 0 <= index < len(items):
            raise ProgramFailed(f"line {expression.line}: there is no element {index}")
        items = items[index]
    return items


def _list_or_pose(values: Iterable[Value], is_pose: bool) -> list[Value]:
    if is_pose:
        return Pose(values)
    return list(values)


def _signed(sign: str, value: Value) -> Value:
    if sign == "not":
        return not value
    return -value
