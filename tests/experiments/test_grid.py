import errno
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from dccm.errors import UserError
from dccm.experiments.data_sets import DataSets
from dccm.experiments.grid import Unseen, failed, merged, run_grid, unfinished
from dccm.experiments.making import make_all, require_same_images
from dccm.experiments.results import Results
from dccm.experiments.spec import RunSpec
from dccm.experiments.targets import Need, Target, chosen_targets
from dccm.experiments.worker import Outcome, Work, do
from dccm.locks import locked_file
from dccm.training.progress import OnProgress
from tests.experiments.stand_ins import COUNT, QUICK, Here, made_runs, make_run, opened, worked

FIRST, SECOND = (QUICK.spec("kmeans", "digits", seed) for seed in (0, 1))


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return opened(tmp_path / "results")


def test_each_run_is_made_once_whoever_needs_it(results: Results) -> None:
    needs = merged([Need(FIRST), Need(SECOND, (COUNT,)), Need(FIRST, (COUNT,)), Need(FIRST)])
    assert [(need.spec, need.measures) for need in needs] == [(FIRST, (COUNT,)), (SECOND, (COUNT,))]
    worked(needs, results)
    made = [FIRST.key, f"measure of {FIRST.key}", SECOND.key, f"measure of {SECOND.key}"]
    assert made_runs == made
    worked(needs, results)
    assert made_runs == made
    assert results.measured(FIRST, COUNT) == (10, 64)
    assert results.scores(SECOND)["acc"] == 0.5


def test_a_measure_that_is_asked_for_later_needs_no_new_run(results: Results) -> None:
    worked([Need(FIRST)], results)
    assert unfinished([Need(FIRST)], results) == []
    worked([Need(FIRST, (COUNT,))], results)
    assert made_runs == [FIRST.key, f"measure of {FIRST.key}"]


def test_a_failed_run_is_recorded_with_its_reason_and_the_rest_goes_on(results: Results) -> None:
    unlucky, broken = (QUICK.spec("kmeans", "digits", seed) for seed in (13, 14))
    needs = [Need(unlucky), Need(broken), Need(FIRST)]
    worked(needs, results)
    assert results.is_finished(FIRST)
    reasons = {unlucky: "mini_batch must not exceed 13. Lower it.", broken: "ZeroDivisionError: division by zero"}
    assert failed(needs, results) == reasons
    note = (results.failed / f"{broken.key}.json").read_text()
    assert "Traceback" in note
    assert "kmeans on digits seed 14" in note
    worked(needs, results)
    assert made_runs == [unlucky.key, broken.key, FIRST.key]  # None of them again.
    results.forget_failure(unlucky)
    worked(needs, results)
    assert made_runs[3:] == [unlucky.key]


def test_a_run_comes_after_those_that_it_needs_and_fails_with_them(results: Results) -> None:
    def later(seed: int) -> RunSpec:
        return QUICK.spec("dccm", "digits", seed, after={"mined_by": QUICK.spec("kmeans", "digits", seed)})

    worked(merged([Need(later(1)), Need(later(13))]), results)
    assert sorted(made_runs) == sorted([SECOND.key, QUICK.spec("kmeans", "digits", 13).key, later(1).key])
    assert made_runs.index(SECOND.key) < made_runs.index(later(1).key)
    reason = results.failure(later(13))
    assert reason is not None
    assert reason.startswith("It needs the run kmeans-digits-s13-")
    assert reason.endswith("which failed: mini_batch must not exceed 13. Lower it.")


def test_a_run_that_another_process_makes_is_waited_for(results: Results) -> None:
    engine = Here(Work(results, DataSets(), make_run))
    with locked_file(results.locks / FIRST.key, lambda: False):
        assert do(engine.work, Need(FIRST), lambda done, left: None) == Outcome("busy")

    class Other(Unseen):
        """Ends the other process's run as soon as it was found to be busy."""

        held = locked_file(results.locks / FIRST.key, lambda: False)

        def planned(self, needs: list[Need], seconds: dict[str, float]) -> None:
            self.held.__enter__()

        def ended(self, need: Need, outcome: Outcome) -> None:
            if outcome.state == "busy":
                make_run(need.spec, DataSets(), results, print)
                results.note_finished(need.spec, {})
                self.held.__exit__(None, None, None)

    observer = Other()
    observer.planned([], {})
    run_grid([Need(FIRST), Need(SECOND)], results, engine, observer)
    assert sorted(made_runs) == sorted([FIRST.key, SECOND.key])


def test_grids_that_work_on_one_folder_make_each_run_once(results: Results) -> None:
    needs = [Need(QUICK.spec("kmeans", "digits", seed)) for seed in range(12)]

    def slowly(spec: RunSpec, data: DataSets, results: Results, on_progress: OnProgress) -> None:
        make_run(spec, data, results, on_progress)
        time.sleep(0.01)

    with ThreadPoolExecutor(3) as pool:
        engines = [Here(Work(results, DataSets(), slowly)) for _ in range(3)]
        for ended in [pool.submit(run_grid, needs, results, engine) for engine in engines]:
            ended.result()
    assert sorted(made_runs) == sorted(need.spec.key for need in needs)


def test_a_full_disk_ends_the_grid_and_no_run_is_blamed(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        try:
            raise OSError(errno.ENOSPC, "No space left on device")
        except OSError as error:
            raise UserError("No room on disk to write x; what was there is unharmed. Free some space.") from error

    engine = Here(Work(results, DataSets(), full))
    with pytest.raises(UserError, match="No room on disk"):
        run_grid([Need(FIRST), Need(SECOND)], results, engine)
    assert engine.stopped
    assert list(results.failed.iterdir()) == []
    worked([Need(FIRST)], results)  # There is room again.
    assert results.is_finished(FIRST)


def test_a_disk_that_is_too_full_for_a_lock_is_no_crash(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def refused(*_: object) -> Iterator[bool]:
        raise OSError(errno.ENOSPC, "No space left on device")
        yield True

    monkeypatch.setattr("dccm.experiments.worker.locked_file", refused)
    with pytest.raises(UserError, match="Cannot write into .*: No space left on device. Free some space"):
        worked([Need(FIRST)], results)


def test_results_of_another_version_or_kind_are_left_alone(tmp_path: Path) -> None:
    results = opened(tmp_path / "results")
    results.open()  # Again is fine.
    (tmp_path / "results" / "results.json").write_text('{"format": 99}')
    with pytest.raises(UserError, match=r"of another version of dccm \(format 99, not 1\)"):
        results.open()
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"cat")
    with pytest.raises(UserError, match="holds something else. Choose another folder"):
        Results(tmp_path / "photos").open()
    assert [path.name for path in (tmp_path / "photos").iterdir()] == ["cat.jpg"]


def test_processes_that_begin_at_once_make_one_folder(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        for ended in [pool.submit(Results(tmp_path / "results").open) for _ in range(24)]:
            ended.result()
    assert {path.name for path in (tmp_path / "results").iterdir()} == {"runs", "failed", "locks", "results.json"}


def test_an_output_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UserError, match="output must be a folder of results"):
        Results(tmp_path / "file").open()


def test_broken_notes_say_what_to_do(results: Results) -> None:
    worked([Need(FIRST, (COUNT,))], results)
    results.measure_file(FIRST, "classes").write_text("{")
    with pytest.raises(UserError, match=r"measure-classes.json is broken .* delete it, and run the same command again"):
        results.measured(FIRST, COUNT)


def test_what_cannot_be_drawn_is_named_and_the_rest_is_made(results: Results) -> None:
    class Shy:
        caption = "Nothing"

        def save(self, folder: Path, name: str) -> list[Path]:
            raise UserError("Figures need matplotlib.")

        html = text = str

    def shy(*_: object) -> Shy:
        return Shy()

    targets = {"shy": Target("Shy", lambda request: [], shy)} | chosen_targets(["table1"])
    needs = list(targets["table1"].needs(QUICK))
    worked(needs, results)
    made = make_all(targets, QUICK, results, needs, {"stl10": "STL-10 is not <there>."})
    assert made.missing == {"stl10": "STL-10 is not <there>.", "shy": "Figures need matplotlib."}
    assert list(made.shown) == list(made.files) == ["table1"]
    page = results.page.read_text()
    assert "<li>stl10: STL-10 is not &lt;there&gt;.</li>" in page
    assert "Digits of scikit-learn" in page


def test_runs_of_other_images_do_not_come_into_one_table(results: Results) -> None:
    worked([Need(FIRST), Need(SECOND)], results)
    require_same_images([FIRST, SECOND], results)
    config = results.run(SECOND).config
    config.write_text(config.read_text().replace('checksum = ""', 'checksum = "1234"'))
    with pytest.raises(UserError, match="are of different images, though both are called 'digits'"):
        require_same_images([FIRST, SECOND], results)
