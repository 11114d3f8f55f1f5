"""HTML from templates: every value is escaped, unless a template says otherwise.

The templates, style sheets and scripts of a package are the files of its folder `assets`. A package
may also use those of another one, such as the frame of a page in `document.html` of `report`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from steelyard.errors import MissingExtra

if TYPE_CHECKING:
    import jinja2
    from markupsafe import Markup


def render(packages: Sequence[str], template: str, values: Mapping[str, Any]) -> str:
    """The text of a template.

    Args:
        packages: whose templates to look in, in this order, as 'steelyard.fleet'
        template: name of the file
        values: what the template mentions, by name
    """
    return _environment(tuple(packages)).get_template(template).render(values)


@cache
def _environment(packages: tuple[str, ...]) -> jinja2.Environment:
    try:
        import jinja2
    except ModuleNotFoundError as error:
        raise MissingExtra.of("jinja2", "report") from error
    loader = jinja2.ChoiceLoader([jinja2.PackageLoader(name, "assets") for name in packages])
    environment = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_typeset,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    environment.filters["breakable"] = _breakable

    def asset(name: str) -> Markup:
        """A style sheet or script as it is."""
        from markupsafe import Markup

        return Markup(loader.get_source(environment, name)[0])

    environment.globals["asset"] = asset
    return environment


def _typeset(value: Any) -> Any:
    """A value of a template: plain text with ± for +-, m² for m^2 and no break before %."""
    if type(value) is str:
        signs = value.replace(" +- ", " ± ").replace(" m^2", " m²").replace("/s^2", "/s²")
        return re.sub(r"(?<=\d) (?=%)", "\u00a0", signs)
    return value


def _breakable(words: str) -> Markup:
    """Escaped words that may be broken into lines after the underscores and slashes of a name."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"([_/])(?=\w)", r"\1<wbr>", str(escape(_typeset(words)))))
