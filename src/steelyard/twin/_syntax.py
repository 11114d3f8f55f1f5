"""URScript: a text becomes tokens, and tokens become a tree of statements.

Line ends do not separate statements, as on a real controller: `x =` on one line and `0` on the next
is an assignment. Only an opening bracket must stand on the line of what it follows, so that a
statement in brackets is not mistaken for the arguments of the line before. `p[...]` with six
entries is a pose; `p[0]` is an element of a variable named p.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, NoReturn

from steelyard.errors import SourceFailed

_TOKEN = re.compile(
    r"(?P<space>[ \t\r\n]+|\#[^\n]*)"
    r"|(?P<number>0x[0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<text>\"[^\"\n]*\"|'[^'\n]*')"
    r"|(?P<sign>==|!=|<=|>=|[-+*/%<>=()\[\],:;.])"
)
_KEYWORDS = frozenset(
    [
        "def",
        "sec",
        "thread",
        "end",
        "if",
        "elif",
        "else",
        "while",
        "return",
        "break",
        "continue",
        "local",
        "global",
        "run",
        "kill",
        "join",
        "and",
        "or",
        "xor",
        "not",
        "True",
        "False",
        "enter_critical",
        "exit_critical",
        "pass",
        "halt",
    ]
)
_CONSTANTS: dict[str, bool] = {"True": True, "False": False}
_COMPARISONS = ("==", "!=", "<", ">", "<=", ">=")
_POSE_SIZE = 6


class Token(NamedTuple):
    """A word of a program.

    Attributes:
        kind: 'number', 'name', 'keyword', 'text', 'sign' or 'end of text'
        text: as written
        line: number of its line, from 1
    """

    kind: str
    text: str
    line: int


# --- expressions
#
# `has_call` says whether a call stands anywhere in an expression. Only calls can wait, so an
# expression without one is evaluated at once, which takes a third of the time of a generator.


def _any_call(parts: Iterable[Expression]) -> bool:
    return any(part.has_call for part in parts)


@dataclass(frozen=True, slots=True)
class Constant:
    """A number, a text, True or False."""

    has_call: ClassVar[bool] = False
    value: float | int | str | bool


@dataclass(frozen=True, slots=True)
class Name:
    """A variable."""

    has_call: ClassVar[bool] = False
    name: str
    line: int


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list, or a pose (`p[...]`)."""

    items: tuple[Expression, ...]
    is_pose: bool = False
    has_call: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "has_call", _any_call(self.items))


@dataclass(frozen=True, slots=True)
class NumberList:
    """A list or a pose of constants, without a node for each of them."""

    has_call: ClassVar[bool] = False
    values: tuple[float | int, ...]
    is_pose: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    """An element of a list, or of a matrix with two indices."""

    of: Expression
    at: tuple[Expression, ...]
    line: int
    has_call: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "has_call", _any_call((self.of, *self.at)))


@dataclass(frozen=True, slots=True)
class Unary:
    """`-x` or `not x`."""

    sign: str
    of: Expression
    line: int
    has_call: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "has_call", self.of.has_call)


@dataclass(frozen=True, slots=True)
class Binary:
    """Two expressions and the operator between them."""

    sign: str
    left: Expression
    right: Expression
    line: int
    has_call: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "has_call", _any_call((self.left, self.right)))


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function; `starts_thread` for `run f()`."""

    has_call: ClassVar[bool] = True
    name: str
    args: tuple[Expression, ...]
    named: tuple[tuple[str, Expression], ...]
    line: int
    starts_thread: bool = False


Expression = Constant | Name | ListOf | NumberList | Index | Unary | Binary | Call


# --- statements


@dataclass(frozen=True, slots=True)
class Assign:
    """`x = ...`; the scope is 'local', 'global' or empty."""

    target: Name | Index
    value: Expression
    scope: str


@dataclass(frozen=True, slots=True)
class If:
    """Conditions with their blocks, and the block of `else`."""

    branches: tuple[tuple[Expression, Block], ...]
    otherwise: Block


@dataclass(frozen=True, slots=True)
class While:
    """A loop."""

    condition: Expression
    body: Block


@dataclass(frozen=True, slots=True)
class Return:
    """The end of a function, with its value."""

    value: Expression | None


@dataclass(frozen=True, slots=True)
class Jump:
    """`break`, `continue` or `halt`."""

    word: str


@dataclass(frozen=True, slots=True)
class ThreadEnd:
    """`kill` or `join` of a thread."""

    word: str
    thread: Expression


@dataclass(frozen=True, slots=True)
class Evaluate:
    """An expression as a statement: a call."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class Define:
    """A function, a thread or a program: 'def', 'thread' or 'sec'."""

    kind: str
    name: str
    parameters: tuple[tuple[str, Expression | None], ...]
    body: Block
    line: int


Statement = Assign | If | While | Return | Jump | ThreadEnd | Evaluate | Define
Block = tuple[Statement, ...]


class Program(NamedTuple):
    """A parsed program.

    Attributes:
        kind: 'def' replaces the running program, 'sec' runs beside it
        name: name of the program
        body: its statements
        calls: every call in it
    """

    kind: str
    name: str
    body: Block
    calls: tuple[Call, ...]

    @classmethod
    def parsed(cls, text: str) -> Program:
        """The program in a text; raises `SourceFailed` with the line of a mistake.

        Args:
            text: `def NAME(): ... end` or `sec NAME(): ... end`, optionally followed by a call of
                the program; or statements without a frame, as a program without a name
        """
        parser = _Parser(_tokens(text))
        block = parser.program()
        first = block[0]
        if not isinstance(first, Define) or first.kind == "thread":
            return cls("def", "unnamed", block, tuple(parser.calls))
        for other in block[1:]:
            if not _is_call_of(other, first.name):
                raise SourceFailed(f"something follows the end of the program '{first.name}'")
        return cls(first.kind, first.name, first.body, tuple(parser.calls))


def defined_names(block: Block) -> Iterator[str]:
    """The names of all functions and threads that a block defines, nested ones included."""
    for statement in block:
        if isinstance(statement, Define):
            yield statement.name
            yield from defined_names(statement.body)
        elif isinstance(statement, While):
            yield from defined_names(statement.body)
        elif isinstance(statement, If):
            for _, branch in statement.branches:
                yield from defined_names(branch)
            yield from defined_names(statement.otherwise)


def _is_call_of(statement: Statement, name: str) -> bool:
    call = statement.expression if isinstance(statement, Evaluate) else None
    return isinstance(call, Call) and call.name == name


def _tokens(text: str) -> Iterator[Token]:
    at = 0
    line = 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise SourceFailed(f"line {line}: '{text[at]}' is not understood")
        kind = str(match.lastgroup)
        word = match.group()
        if kind == "name" and word in _KEYWORDS:
            kind = "keyword"
        if kind == "space":
            line += word.count("\n")
        else:
            yield Token(kind, word, line)
        at = match.end()
    yield Token("end of text", "the end of the text", line)


class _Parser:
    """A recursive-descent parser; one method for each rule of the grammar."""

    def __init__(self, tokens: Iterator[Token]) -> None:
        self._tokens = tokens  # not kept: a long program has hundreds of thousands
        self._last = Token("", "", 0)
        self._next = next(tokens)
        self.calls: list[Call] = []

    def program(self) -> Block:
        """All statements of the text."""
        block = self._block(("the end of the text",))
        if not block:
            self._refuse("a program has at least one statement")
        return block

    # --- tokens

    def _take(self) -> Token:
        self._last = self._next
        self._next = next(self._tokens, self._last)
        return self._last

    def _accept(self, *words: str) -> str:
        """The next word if it is one of these, which is taken; otherwise ''."""
        token = self._next
        if token.text in words and token.kind != "text":
            self._take()
            return token.text
        return ""

    def _expect(self, word: str) -> None:
        if not self._accept(word):
            self._refuse(f"'{word}' is expected before '{self._next.text}'")

    def _name(self) -> str:
        if self._next.kind != "name":
            self._refuse(f"a name is expected before '{self._next.text}'")
        return self._take().text

    def _refuse(self, words: str) -> NoReturn:
        raise SourceFailed(f"line {self._next.line}: {words}")

    def _opens(self, bracket: str) -> bool:
        """Whether this bracket follows on the line of the last token."""
        return self._next.text == bracket and self._next.line == self._last.line

    # --- statements

    def _block(self, ends: Sequence[str]) -> Block:
        """Statements up to one of some words, which is not taken."""
        found: list[Statement] = []
        while self._next.text not in ends:
            if self._next.kind == "end of text":
                self._refuse(f"'{ends[0]}' is missing")
            if self._accept("enter_critical", "exit_critical", "pass", ";"):
                continue  # a thread is never interrupted between two waiting calls
            found.append(self._statement())
        return tuple(found)

    def _statement(self) -> Statement:
        line = self._next.line
        if kind := self._accept("def", "sec", "thread"):
            return self._define(kind, line)
        if self._accept("if"):
            return self._if()
        if self._accept("while"):
            condition = self._condition()
            return While(condition, self._closed_block())
        if self._accept("return"):
            return self._return(line)
        if word := self._accept("break", "continue", "halt"):
            if word == "halt" and self._accept("("):
                self._expect(")")
            return Jump(word)
        if word := self._accept("kill", "join"):
            return ThreadEnd(word, self._expression())
        if scope := self._accept("local", "global"):
            return self._assign(scope)
        return self._assign("")

    def _define(self, kind: str, line: int) -> Define:
        name = self._name()
        self._expect("(")
        parameters: list[tuple[str, Expression | None]] = []
        while not self._accept(")"):
            parameter = self._name()
            default = None
            if self._accept("="):
                default = self._expression()
            parameters.append((parameter, default))
            self._accept(",")
        self._expect(":")
        return Define(kind, name, tuple(parameters), self._closed_block(), line)

    def _closed_block(self) -> Block:
        block = self._block(("end",))
        self._expect("end")
        return block

    def _condition(self) -> Expression:
        condition = self._expression()
        self._expect(":")
        return condition

    def _if(self) -> If:
        branches = []
        otherwise: Block = ()
        word = "if"
        while word in ("if", "elif"):
            condition = self._condition()
            branches.append((condition, self._block(("end", "elif", "else"))))
            word = self._take().text
        if word == "else":
            self._expect(":")
            otherwise = self._closed_block()
        return If(tuple(branches), otherwise)

    def _return(self, line: int) -> Return:
        if self._next.line != line or self._next.text == "end":
            return Return(None)
        return Return(self._expression())

    def _assign(self, scope: str) -> Assign | Evaluate:
        target = self._expression()
        if self._accept("="):
            if not isinstance(target, Name | Index):
                self._refuse("only a variable or an element of a list can be assigned")
            return Assign(target, self._expression(), scope)
        if scope or not isinstance(target, Call):
            self._refuse(f"'=' is expected before '{self._next.text}'")
        return Evaluate(target)

    # --- expressions, from the loosest operator to the tightest

    def _expression(self) -> Expression:
        left = self._conjunction()
        while sign := self._accept("or", "xor"):
            left = self._binary(sign, left, self._conjunction)
        return left

    def _binary(self, sign: str, left: Expression, right: Callable[[], Expression]) -> Binary:
        """The operation whose operator was just taken."""
        line = self._last.line
        return Binary(sign, left, right(), line)

    def _conjunction(self) -> Expression:
        left = self._negation()
        while self._accept("and"):
            left = self._binary("and", left, self._negation)
        return left

    def _negation(self) -> Expression:
        line = self._next.line
        if self._accept("not"):
            return Unary("not", self._negation(), line)
        left = self._sum()
        while sign := self._accept(*_COMPARISONS):
            left = self._binary(sign, left, self._sum)
        return left

    def _sum(self) -> Expression:
        left = self._product()
        while sign := self._accept("+", "-"):
            left = self._binary(sign, left, self._product)
        return left

    def _product(self) -> Expression:
        left = self._signed()
        while sign := self._accept("*", "/", "%"):
            left = self._binary(sign, left, self._signed)
        return left

    def _signed(self) -> Expression:
        line = self._next.line
        if self._accept("-"):
            value = self._signed()
            if isinstance(value, Constant) and isinstance(value.value, int | float):
                return Constant(-value.value)
            return Unary("-", value, line)
        if self._accept("+"):
            return self._signed()
        return self._element()

    def _element(self) -> Expression:
        value = self._atom()
        while self._opens("["):
            line = self._take().line
            value = Index(value, self._items("]"), line)
        return value

    def _atom(self) -> Expression:
        token = self._take()
        if token.kind == "number":
            return Constant(_number(token.text))
        if token.kind == "text":
            return Constant(token.text[1:-1])
        if token.text in _CONSTANTS and token.kind == "keyword":
            return Constant(_CONSTANTS[token.text])
        if token.text == "(":
            inner = self._expression()
            self._expect(")")
            return inner
        if token.text == "[":
            return _list_of(self._items("]"))
        if token.text == "run":
            return self._call(self._name(), token.line, starts_thread=True)
        if token.kind == "name":
            return self._named(token)
        raise SourceFailed(f"line {token.line}: '{token.text}' is not understood")

    def _named(self, token: Token) -> Expression:
        if self._opens("("):
            return self._call(token.text, token.line)
        if token.text == "p" and self._opens("["):
            self._take()
            items = self._items("]")
            if len(items) == _POSE_SIZE:
                return _list_of(items, is_pose=True)
            return Index(Name("p", token.line), items, token.line)
        return Name(token.text, token.line)

    def _call(self, name: str, line: int, *, starts_thread: bool = False) -> Call:
        self._expect("(")
        args: list[Expression] = []
        named: list[tuple[str, Expression]] = []
        while not self._accept(")"):
            value = self._expression()
            if isinstance(value, Name) and self._accept("="):
                named.append((value.name, self._expression()))
            else:
                args.append(value)
            if not self._accept(",") and self._next.text != ")":
                self._refuse(f"')' is expected before '{self._next.text}'")
        call = Call(name, tuple(args), tuple(named), line, starts_thread)
        self.calls.append(call)
        return call

    def _items(self, end: str) -> tuple[Expression, ...]:
        """Expressions between commas, up to a closing bracket."""
        found = []
        while not self._accept(end):
            found.append(self._expression())
            if not self._accept(",") and self._next.text != end:
                self._refuse(f"'{end}' is expected before '{self._next.text}'")
        return tuple(found)


def _list_of(items: tuple[Expression, ...], *, is_pose: bool = False) -> ListOf | NumberList:
    numbers = [
        item.value
        for item in items
        if isinstance(item, Constant) and not isinstance(item.value, bool | str)
    ]
    if len(numbers) == len(items):
        return NumberList(tuple(numbers), is_pose)
    return ListOf(items, is_pose)


def _number(text: str) -> float | int:
    if text.startswith("0x"):
        return int(text, 16)
    if text.isdecimal():
        return int(text)
    return float(text)
