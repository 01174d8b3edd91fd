"""URI templates: what they refuse, what they take, and that a match gives back what was expanded."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion.registry.uri import MAX_URI, TemplateError, UriTemplate, Variable, is_template, parse, problem

LITERAL = st.text(string.ascii_lowercase + "-._~/", min_size=1, max_size=5)
SIMPLE = st.text(
    st.characters(exclude_characters="/\x00", exclude_categories=["Cs"]), min_size=1, max_size=12
).filter(lambda value: value != ".." and ".." not in value.replace("\\", "/").split("/"))
WIDE = st.text(
    st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1, max_size=20
).filter(lambda value: ".." not in value.replace("\\", "/").split("/"))


@st.composite
def templates(draw: st.DrawFn) -> tuple[UriTemplate, dict[str, str]]:
    """A template and values for it, where no value holds a character of the literals."""
    count = draw(st.integers(1, 4))
    wide = draw(st.one_of(st.none(), st.integers(0, count - 1)))
    text, values = "x://", {}
    for number in range(count):
        name = f"v{number}"
        text += ("" if number == 0 else draw(LITERAL)) + ("{+" if number == wide else "{") + name + "}"
        values[name] = draw(WIDE if number == wide else SIMPLE)
    if draw(st.booleans()):
        text += "{?q,r}"
        values |= draw(st.dictionaries(st.sampled_from(["q", "r"]), WIDE, max_size=2))
    return parse(text), values


@given(templates())
def test_what_was_expanded_expands_from_its_match_again(case: tuple[UriTemplate, dict[str, str]]) -> None:
    # A value may hold a literal's characters, so the cut may fall elsewhere; but it is a cut of the same URI.
    template, values = case
    uri = template.expand(values)
    found = template.match(uri)
    assert found is not None or any(".." in value or "/" in value for value in values.values())
    if found is not None:
        assert template.expand(found) == uri


@given(
    st.lists(SIMPLE, min_size=1, max_size=4), st.dictionaries(st.sampled_from(["q", "r"]), WIDE, max_size=2)
)
def test_segments_come_back_as_they_were(segments: list[str], query: dict[str, str]) -> None:
    template = parse("notes://" + "/".join(f"{{v{i}}}" for i in range(len(segments))) + "{?q,r}")
    values = {f"v{i}": segment for i, segment in enumerate(segments)} | query
    assert template.match(template.expand(values)) == values


@given(WIDE)
def test_a_wide_variable_comes_back_as_it_was(value: str) -> None:
    template = parse("files://{+path}/end")
    assert template.match(template.expand({"path": value})) == {"path": value}


@given(st.text(max_size=60))
def test_anything_parses_or_says_where_it_does_not(text: str) -> None:
    try:
        parse(text)
    except TemplateError as error:
        told = str(error)
        assert "character" in told


@given(st.text(max_size=60))
def test_a_match_never_hands_out_what_is_not_safe(tail: str) -> None:
    for text in ("x://{a}", "x://{+a}", "x://{b}/{+a}/c", "x://y{?a}"):
        found = parse(text).match("x://" + tail)
        for name, value in (found or {}).items():
            assert "\x00" not in value
            assert ".." not in value.replace("\\", "/").split("/")
            if f"{{{name}}}" in text:
                assert "/" not in value


@pytest.mark.parametrize(
    ("text", "uri", "found"),
    [
        ("notes://{name}", "notes://a%20b", {"name": "a b"}),
        ("notes://{name}", "notes://", None),
        ("notes://{name}", "notes://a/b", None),
        ("notes://{name}", "notes://a%2Fb", None),
        ("notes://{name}", "notes://a?x=1", None),
        ("notes://{name}", "NOTES://a", None),
        ("notes://{name}", "notes://%", None),
        ("notes://{name}", "notes://%ff", None),
        ("notes://{name}", "notes://..", None),
        ("notes://{name}", "notes://%2e%2e", None),
        ("notes://{name}", "notes://..%5Cx", None),
        ("notes://{name}", "notes://a%00", None),
        ("notes://{name}", "notes://a..b", {"name": "a..b"}),
        ("f://{+path}", "f://a/b/c", {"path": "a/b/c"}),
        ("f://{+path}", "f://a/../c", None),
        ("f://{+path}", "f://a/%2E%2E/c", None),
        ("f://{+path}-{x}", "f://a-b/c-d", {"path": "a-b/c", "x": "d"}),
        ("f://{x}-{+path}", "f://a-b/c-d", {"path": "b/c-d", "x": "a"}),
        ("f://{x}.txt", "f://a.txt.txt", {"x": "a.txt"}),
        ("f://{x}a", "f://aaa", {"x": "aa"}),
        ("f://{x}a{y}", "f://aab", {"x": "a", "y": "b"}),
        ("f://{x}/{y}", "f://a/b", {"x": "a", "y": "b"}),
        ("s://find{?q,limit}", "s://find?limit=3&q=a+b%2B", {"q": "a b+", "limit": "3"}),
        ("s://find{?q,limit}", "s://find", {}),
        ("s://find{?q}", "s://find?", {}),
        ("s://find{?q}", "s://find?q=1&q=2", None),
        ("s://find{?q}", "s://find?other=1", None),
        ("s://{a}{?q}", "s://x?q=1", {"a": "x", "q": "1"}),
    ],
)
def test_matches(text: str, uri: str, found: dict[str, str] | None) -> None:
    assert parse(text).match(uri) == found


@pytest.mark.parametrize(
    ("text", "at", "hint"),
    [
        ("x://{a", 5, "never closed"),
        ("x://a}", 6, "closes nothing"),
        ("x://{}", 6, "letter"),
        ("x://{a}{b}", 8, "between"),
        ("x://{a,b}", 6, "{a}/{b}"),
        ("x://{a*}", 6, "{+name}"),
        ("x://{a:3}", 6, "modifier"),
        ("x://{/a}", 6, "/{name}"),
        ("x://{#a}", 6, "fragment"),
        ("x://{+a}/{+b}", 10, "only one"),
        ("x://{?a}/b", 9, "nothing may follow"),
        ("x://{a}/{a}", 10, "twice"),
        ("x://a", 1, "resource"),
        ("{a}", 1, "scheme"),
        ("x://a?b={b}{?c}", 6, "before"),
    ],
)
def test_a_bad_template_is_refused_with_the_place_and_a_way_out(text: str, at: int, hint: str) -> None:
    with pytest.raises(TemplateError) as caught:
        parse(text)
    assert f"character {at}:" in str(caught.value)
    assert hint in str(caught.value)


def test_a_long_uri_matches_nothing() -> None:
    assert parse("x://{a}").match("x://" + "a" * MAX_URI) is None


def test_expand_refuses_what_match_would() -> None:
    template = parse("x://{a}{?q}")
    for values in ({}, {"a": ""}, {"a": "b/c"}, {"a": ".."}, {"a": "b", "q": "x/../y"}):
        with pytest.raises(ValueError, match="x://"):
            template.expand(values)


def test_names_are_in_order_with_the_query_last() -> None:
    template = parse("x://{b}/{+a}{?z,y}")
    assert template.names == ("b", "a", "z", "y")
    assert template.parts[1] == Variable("b")
    assert is_template(template.text)


@pytest.mark.parametrize(
    ("uri", "hint"),
    [
        ("config", "scheme"),
        ("a://b c", "space"),
        ("a://\n", "print"),
        ("a://{b}", "template"),
        ("a:" + "b" * MAX_URI, "characters"),
    ],
)
def test_a_bad_uri_is_told_why(uri: str, hint: str) -> None:
    assert hint in (problem(uri) or "")
    assert problem("a://b") is None
