from dccm.training.agreement import disagreement


def test_equal_notes_let_all_begin() -> None:
    assert disagreement([("process 0 on a", {"seed": 1}), ("process 1 on b", {"seed": 1})]) is None


def test_what_differs_is_named_with_the_processes_that_have_it() -> None:
    places = [(0, "a", 1), (1, "a", 1), (2, "b", 5)]
    notes = [(f"process {rank} on {node}", {"settings": {"k": 3, "seed": seed}}) for rank, node, seed in places]
    assert disagreement(notes) == (
        "All processes must have the same settings, such as seed, and process 0 on a has 1, process 2 on b has 5. "
        "Begin all of them with the same command, on the same images and with the same dccm."
    )


def test_a_mistake_that_all_made_is_told_as_by_one() -> None:
    assert disagreement([("process 0 on a", {"error": "No."}), ("process 1 on b", {"error": "No."})]) == "No."


def test_the_process_that_cannot_go_on_is_named() -> None:
    notes: list[tuple[str, dict[str, object]]] = [
        ("process 0 on a", {"settings": {}}),
        ("process 1 on b", {"error": "No images."}),
    ]
    assert disagreement(notes) == "In process 1 on b: No images."


def test_another_version_is_named() -> None:
    notes = [("process 0 on a", {"version of dccm": "1"}), ("process 1 on b", {"version of dccm": "2"})]
    assert "the same version of dccm, and process 0 on a has 1, process 1 on b has 2" in str(disagreement(notes))
