"""Complaints: the right type, one line, and the four things a reader needs."""

import numpy as np
import pytest

from transpl._utils.errors import (
    InputError,
    InputTypeError,
    UnreadableFile,
    check_choice,
    check_int,
    check_not_negative,
    check_positive,
    first_repeated,
    invalid,
    unreadable_file,
)


def test_an_input_error_can_be_caught_as_a_value_error():
    assert issubclass(InputError, ValueError)


def test_an_unreadable_file_can_be_caught_as_an_input_error():
    assert issubclass(UnreadableFile, InputError)


def test_wrong_names_the_argument_what_was_expected_what_came_and_what_to_do():
    error = invalid("sigma", expected="a positive number", got=-1, advice="Try 0.2.")
    assert type(error) is InputError
    assert str(error) == "sigma: expected a positive number, got -1. Try 0.2."


def test_unreadable_names_the_path_the_problem_and_what_to_do(tmp_path):
    error = unreadable_file(tmp_path / "a.json", problem="no such file", advice="Check the path.")
    assert type(error) is UnreadableFile
    assert str(error) == f"{tmp_path / 'a.json'}: no such file. Check the path."


def test_wrong_stays_on_one_line_when_the_value_prints_over_several():
    assert "\n" not in str(invalid("prior", expected="3 numbers", got=np.zeros((3, 3)), advice="One per class."))


def test_unreadable_stays_on_one_line_when_the_cause_has_several():
    assert "\n" not in str(unreadable_file("a.npz", problem="damaged (first\nsecond)", advice="Write it anew."))


@pytest.mark.parametrize("name", ["floor", "additive"])
def test_one_of_accepts_every_allowed_name(name):
    assert check_choice("smoothing", name, ("floor", "additive")) is None


@pytest.mark.parametrize("value", ["Floor", "", None, 0, ["floor"]])
def test_one_of_refuses_anything_else_and_lists_the_choices(value):
    with pytest.raises(InputError, match=r"\Asmoothing: expected one of 'floor', 'additive', got .*\Z") as caught:
        check_choice("smoothing", value, ("floor", "additive"))
    assert repr(value) in str(caught.value)


def test_what_would_steer_a_terminal_or_cannot_be_printed_is_escaped():
    message = str(invalid("label", expected="a word", got="\x1b[31m\0\u2028\ud800é", advice="Write one."))
    assert message.isprintable()
    assert r"\x1b[31m\x00" in message
    assert "é" in message


def test_a_long_list_is_cut_and_the_advice_stays():
    names = ", ".join(map(repr, range(100_000)))
    for error in (
        invalid("column", expected=f"one of {names}", got=names, advice="Check it."),
        unreadable_file("a.csv", problem=names, advice="Check it."),
    ):
        assert len(str(error)) < 1200
        assert str(error).endswith("Check it.")


def test_a_wrong_type_can_be_caught_as_either():
    assert issubclass(InputTypeError, InputError)
    assert issubclass(InputTypeError, TypeError)


@pytest.mark.parametrize("number", [10**400, 2**63])
def test_whole_numbers_beyond_64_bits_are_refused(number):
    with pytest.raises(InputError, match=r"\Astep: "):
        check_int("step", number, least=1)


@pytest.mark.parametrize("check", [check_positive, check_not_negative])
def test_numbers_beyond_floats_are_refused(check):
    with pytest.raises(InputError, match=r"\Agap: "):
        check("gap", 10**400)


def test_the_first_repeated_name():
    assert first_repeated(["a", "b", "c", "b", "a"]) == "b"
    assert first_repeated("abc") is None
    assert first_repeated([]) is None


def test_the_first_repeated_name_of_very_many():
    names = [str(i) for i in range(300_000)]  # 45,000,000,000 pairs
    assert first_repeated([*names, "77"]) == "77"
