"""Transaction ids: their text and their order."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, strategies as st

from storage import TxnID
from storage.errors import InvalidTxnId

numbers = st.integers(1, 10**17)


class TestTxnID:
    """`most:least`, most being 0."""

    @given(numbers)
    def test_all_three_forms_name_the_same_transaction(self, number: int) -> None:
        """`0:42`, `(0,42)` and `42` are one id, printed `0:42`."""
        for text in (f"0:{number}", f"(0,{number})", str(number)):
            parsed = TxnID.parse(text)
            assert parsed == TxnID(number)
            assert str(parsed) == f"0:{number}"
            assert (parsed.most, parsed.least) == (0, number)

    @pytest.mark.parametrize(
        "text",
        ["", "0", "0:0", "1:42", "(1,42)", "-1", "0:-1", "042", "0:042", "(0,42", "0,42", " 42", "42 ", "42\n", "٤٢",
         "4 2", "0:42:1", "9" * 19, "0x2a", "(0;42)"],
    )  # fmt: skip
    def test_anything_else_is_refused(self, text: str) -> None:
        """No transaction is named by another coordinator, by zero, by signs or blanks."""
        with pytest.raises(InvalidTxnId) as caught:
            TxnID.parse(text)
        assert caught.value.exit_code == 2

    @given(numbers, numbers)
    def test_ids_order_as_they_were_issued(self, a: int, b: int) -> None:
        """A larger sequence is a later transaction."""
        assert (TxnID(a) < TxnID(b)) == (a < b)

    @given(numbers)
    def test_an_id_survives_pickling(self, number: int) -> None:
        """It goes to other processes unchanged, type and all."""
        copy = pickle.loads(pickle.dumps(TxnID(number)))
        assert copy == TxnID(number)
        assert type(copy) is TxnID
