import csv
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from dccm.experiments.formats import in_latex
from dccm.experiments.paper import NAMES, numbers, printed
from dccm.experiments.request import Request
from dccm.experiments.table import Cell, Column, Table, score_cells
from dccm.experiments.targets import Need
from dccm.experiments.targets.significance import paired_p
from dccm.experiments.targets.table2 import SYSTEMS, USUAL
from tests.experiments.stand_ins import opened, worked
from tests.support import few_examples

TABLE = Table(
    "Scores of a_b & c",
    (Column("ACC", "set|1"), Column("p", "set|1", "low"), Column("note", "", "none")),
    {
        "one <b>": [Cell((0.5, 0.7), "0.623"), Cell((0.01,)), Cell(words="~5 %")],
        "two": [Cell((0.55,)), Cell((0.2,)), Cell()],
        "none": [Cell(paper="<0.3"), Cell(), Cell((1.0,))],
    },
    "budget passes:1",
)


def test_markdown_marks_the_best_and_shows_the_paper_beside_it() -> None:
    from dccm.experiments.formats import markdown

    assert markdown(TABLE).splitlines() == [
        "**Scores of a\\_b & c. Budget passes:1**",
        "",
        "| system | set\\|1 ACC | set\\|1 p | note |",
        "|---|---:|---:|---:|",
        "| one &lt;b> | **0.600 ± 0.141** <sub>0.623</sub> | **0.010** | \\~5 % |",
        "| two | 0.550 | 0.200 | – |",
        "| none | – <sub>&lt;0.3</sub> | – | 1.000 |",
    ]


def test_latex_is_booktabs_and_no_letter_has_another_meaning() -> None:
    from dccm.experiments.formats import latex

    lines = latex(TABLE, "scores").splitlines()
    assert r"\caption{Scores of a\_b \& c. Budget passes:1}" in lines
    assert r" & \multicolumn{2}{c}{set|1} & \multicolumn{1}{c}{} \\" in lines
    assert r"\cmidrule(lr){2-3}" in lines
    best = r"\textbf{0.600 $\pm$ 0.141} \textcolor{gray}{\scriptsize 0.623}"
    assert rf"one \textless{{}}b\textgreater{{}} & {best} & \textbf{{0.010}} & \textasciitilde{{}}5 \% \\" in lines
    assert r"none & -- \textcolor{gray}{\scriptsize \textless{}0.3} & -- & 1.000 \\" in lines


@few_examples
@given(st.text(alphabet="\\&%$#_{}~^ab"))
def test_escaped_text_holds_no_special_letter(text: str) -> None:
    left = in_latex(text)
    for word in (
        r"\textbackslash{}",
        r"\textasciitilde{}",
        r"\textasciicircum{}",
        *(f"\\{letter}" for letter in "&%$#_{}"),
    ):
        left = left.replace(word, "")
    assert not set(left) - set("ab")


def test_csv_has_a_row_for_each_cell_and_html_no_foreign_markup(tmp_path: Path) -> None:
    paths = TABLE.save(tmp_path, "scores")
    assert [path.name for path in paths] == ["scores.md", "scores.csv", "scores.tex"]
    with paths[1].open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 9
    first = {"row": "one <b>", "group": "set|1", "column": "ACC", "mean": "0.6", "deviation": "0.141421"}
    assert rows[0] == first | {"runs": "2", "paper": "0.623", "words": ""}
    assert "<b>" not in TABLE.html()
    assert '<td class="best">0.600 ± 0.141 <span class="paper">0.623</span></td>' in TABLE.html()
    assert '<th colspan="2">set|1</th>' in TABLE.html()
    assert "one <b>" in TABLE.text()


def test_a_single_row_is_not_the_best_of_anything() -> None:
    table = Table("One", (Column("ACC"),), {"alone": [Cell((0.5,))], "missing": [Cell()]})
    assert not table.is_best("alone", 0)


def test_scores_are_means_over_the_seeds_that_are_there(tmp_path: Path) -> None:
    request = Request(seeds=(0, 1, 13), datasets=("digits",))
    runs = request.over_seeds("kmeans", "digits")
    results = opened(tmp_path / "results")
    worked([Need(run) for run in runs], results)
    cells = score_cells(results, runs, printed("table2", "cifar10", "kmeans"))
    assert [cell.values for cell in cells] == [(0.25, 0.25), (0.5, 0.5), (0.125, 0.125)]
    assert [cell.paper for cell in cells] == ["0.087", "0.229", "0.049"]


def test_the_paper_has_a_number_for_every_cell_of_its_tables() -> None:
    assert all(len(printed("table2", dataset, system)) == 3 for dataset in USUAL for system in SYSTEMS)
    assert printed("table2", "cifar10", "dccm") == ["0.496", "0.623", "0.408"]
    assert printed("table5", "cifar100", "deepcluster") == ["<0.2", "<0.2", "<0.07", "<0.45"]
    assert printed("table2", "digits", "dccm") == []
    assert set(SYSTEMS) <= set(NAMES)
    assert numbers()["table3"]["cifar10"]["M4"] == numbers()["table2"]["cifar10"]["dccm"]


def test_p_is_that_of_a_paired_t_test() -> None:
    from scipy import stats

    ours, others = [0.62, 0.6, 0.65], [0.5, 0.55, 0.52]
    expected = stats.ttest_rel(ours, others).pvalue
    found = paired_p([one - other for one, other in zip(ours, others)])
    assert found is not None
    assert abs(found - expected) < 1e-12
    assert paired_p([0.1]) is None
    assert paired_p([0.1, 0.1]) is None
