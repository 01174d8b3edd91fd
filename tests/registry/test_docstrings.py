"""Docstrings in three styles, and whatever else people write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion.registry.docstrings import read

GOOGLE = """Look it up.

    More about it.

    Args:
        order_id (str): Which order;
            it has eight digits.
        *rest: The rest.
        empty:

    Returns:
        The order.

    Note:
        Slow on Mondays.
    """
NUMPY = """Look it up.

    More about it.

    Parameters
    ----------
    order_id : str
        Which order;
        it has eight digits.
    rest, more
        The rest.

    Returns
    -------
    Order
        The order.
    """
SPHINX = """Look it up.

    More about it.

    :param str order_id: Which order;
        it has eight digits.
    :param rest: The rest.
    :type rest: list
    :returns: The order.
    :raises ValueError: never
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX])
def test_each_style_gives_description_and_parameters(text: str) -> None:
    doc = read(text)
    assert doc.parameters["order_id"] == "Which order; it has eight digits."
    assert doc.parameters["rest"] == "The rest."
    assert doc.description.startswith("Look it up.\n\nMore about it.")
    assert "order_id" not in doc.description
    assert "The order" not in doc.description


def test_other_sections_stay() -> None:
    assert "Slow on Mondays." in read(GOOGLE).description
    assert "empty" not in read(GOOGLE).parameters
    assert read("Args: are not a section here").description == "Args: are not a section here"


@pytest.mark.parametrize("text", [None, "", "  \n "])
def test_nothing_is_nothing(text: str | None) -> None:
    assert read(text).description == ""


@given(st.text(st.sampled_from(list("ab :-\n*()`")), max_size=80) | st.text(max_size=80))
def test_no_text_breaks_it(text: str) -> None:
    read(text + "\n\nArgs:\n" + text)
    read(":param " + text)
