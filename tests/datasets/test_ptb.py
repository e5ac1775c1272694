"""PTB as a data set: from WFDB files made up here, and from the shared 14 raw records, beat by beat."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from transpl._utils.errors import InputError, UnreadableFile
from transpl.datasets.dataset import TEST, TRAIN
from transpl.datasets.prepared import load_prepared, save_prepared
from transpl.datasets.recipe import Built
from transpl.datasets.recipes.ptb import PUBLISHED_RECORDS, RECIPE, build, check
from transpl.datasets.recipes.ptb_beats import LEADS, read_header, read_signals

pytest.importorskip("wfdb", reason='wfdb is not installed: pip install "transpl[ecg]"')
pytest.importorskip("neurokit2", reason='neurokit2 is not installed: pip install "transpl[ecg]"')

SHARED = Path(__file__).parents[3] / "shared" / "data"
HEALTHY, INFARCTION = "Healthy control", "Myocardial infarction"
PEOPLE = [  # patient, age, reason
    (1, "40", HEALTHY),
    (2, "31", HEALTHY),
    (3, "35", INFARCTION),
    (4, "36", INFARCTION),
    (5, "61", HEALTHY),
    (6, "70", HEALTHY),
    (7, "65", INFARCTION),
    (8, "66", INFARCTION),
    (9, "n/a", HEALTHY),
    (10, "30", HEALTHY),
    (11, "50", "Myocarditis"),
]


def write_record(folder: Path, patient: int, age: str, reason: str, rate: float = 1.2, seconds: float = 12) -> Path:
    """Write a record of regular beats as WFDB has it: 16-bit samples, 12 leads in .dat and 3 in .xyz."""
    rng = np.random.default_rng(patient)
    t = np.arange(int(1000 * seconds)) / 1000
    wave = sum(np.exp(-(((t - at) / 0.012) ** 2)) for at in np.arange(0.5, seconds - 0.3, 1 / rate))
    leads = wave[:, None] * rng.uniform(500, 2000, len(LEADS)) + rng.normal(0, 10, (len(t), len(LEADS)))
    samples = leads.astype("<i2")
    path = folder / f"patient{patient:03}" / f"s{patient:04}_re.hea"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".dat").write_bytes(samples[:, :12].tobytes())
    path.with_suffix(".xyz").write_bytes(samples[:, 12:].tobytes())
    lines = [f"{path.stem} 15 1000 {len(t)}"]
    for i, (lead, name) in enumerate(zip(samples.T.astype(int), LEADS, strict=True)):
        checksum = (lead.sum() + 32768) % 65536 - 32768
        lines.append(f"{path.stem}.{'dat' if i < 12 else 'xyz'} 16 2000 16 0 {lead[0]} {checksum} 0 {name}")
    lines += ["", f"# age: {age}", "# sex: male", f"# Reason for admission: {reason}", ""]
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ptbdb")
    paths = [write_record(folder / "1.0.0", *person) for person in PEOPLE]
    listed = [f"{path.parent.name}/{path.stem}" for path in paths]
    (folder / "1.0.0" / "RECORDS").write_text("\n".join(listed) + "\n")
    return folder


@pytest.fixture
def copy(database: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(database, tmp_path / "copy"))


def quietly(folder: Path, **options: Any) -> Built:
    return build(folder, lambda _: None, **{"detector": "consensus", **options})


@pytest.fixture(scope="module")
def built(database: Path) -> Built:
    return quietly(database)


def test_domains_classes_and_windows(built: Built) -> None:
    data = built.dataset
    assert (data.name, data.domains, data.channel_names) == ("ptb", (1, 4), LEADS)
    assert data.class_names == ("healthy_control", "myocardial_infarction")
    assert data.X.shape[1:] == (15, 300)
    by_patient = {p: (d, y) for p, d, y in zip(built.extras["group"], data.domain_ids, data.y, strict=True)}
    assert by_patient == {1: (1, 0), 2: (1, 0), 3: (1, 1), 4: (1, 1), 5: (4, 0), 6: (4, 0), 7: (4, 1), 8: (4, 1)}
    assert data.pairs == ((1, 4), (4, 1))


def test_extras_say_where_a_window_is_from(built: Built) -> None:
    assert set(built.extras) == {"group", "record", "beat"}
    assert all(len(values) == len(built.dataset) for values in built.extras.values())
    for patient in range(1, 9):
        own = built.extras["group"] == patient
        assert set(built.extras["record"][own]) == {f"s{patient:04}_re"}
        np.testing.assert_array_equal(built.extras["beat"][own], np.arange(own.sum()))
        assert own.sum() == 14  # 1.2 a second, from 0.5 to 11.7 s


def test_no_patient_is_on_both_sides(built: Built) -> None:
    patients, split = built.extras["group"], built.dataset.split
    assert not set(patients[split == TRAIN]) & set(patients[split == TEST])
    for domain in built.dataset.domains:
        for label in (0, 1):
            own = (built.dataset.domain_ids == domain) & (built.dataset.y == label)
            assert len(set(patients[own & (split == TEST)])) == 1


def test_split_by_beat_has_every_patient_on_both_sides(database: Path) -> None:
    found = quietly(database, split="beat")
    patients, split = found.extras["group"], found.dataset.split
    assert set(patients[split == TRAIN]) == set(patients[split == TEST])
    assert 0.29 < (split == TEST).mean() < 0.33


def test_the_rule_is_true_of_the_options(database: Path, built: Built) -> None:
    assert "30 % of the patients of each class" in RECIPE.rule
    assert "i-th R peak (as published)" in RECIPE.rule
    assert "consensus, not the published rule" in built.rule
    by_beat = quietly(database, split="beat", beats_per_record=2, seed=7).rule
    assert "of the patients" not in by_beat
    for words in ("30 % of the beats", "seed 7", "At most 2 beats of each record"):
        assert words in by_beat
        assert words not in RECIPE.rule


def test_the_same_seed_gives_the_same_split(database: Path, built: Built) -> None:
    again = quietly(database)
    np.testing.assert_array_equal(again.dataset.X, built.dataset.X)
    np.testing.assert_array_equal(again.dataset.split, built.dataset.split)
    others = [quietly(database, seed=seed, beats_per_record=1).dataset.split for seed in (2, 3)]
    assert len({split.tobytes() for split in others}) == 2


def test_beats_per_record_are_spread_evenly(database: Path, built: Built) -> None:
    few = quietly(database, beats_per_record=3)
    assert len(few.dataset) == 3 * 8
    np.testing.assert_array_equal(few.extras["beat"][:3], [0, 6, 13])
    np.testing.assert_array_equal(few.dataset.X[:3], built.dataset.X[[0, 6, 13]])
    assert len(quietly(database, beats_per_record=1000).dataset) == len(built.dataset)


def test_the_published_rule_adds_a_beat_wherever_one_lead_takes_noise_for_one(database: Path, built: Built) -> None:
    published = quietly(database, detector="published")
    assert len(published.dataset) == 117 > len(built.dataset) == 8 * 14
    assert set(published.extras["group"]) == set(built.extras["group"])


def test_notes_and_check_tell_what_differs(built: Built) -> None:
    assert built.notes[0].startswith("3 of 11 records (3 patients) are left out")
    assert sum("the paper has" in note for note in built.notes) == 4
    problems = check(built.dataset)
    assert [problem[:8] for problem in problems] == ["Domain 2", "Domain 3", "Domain 4"]
    assert all("\n" not in sentence for sentence in (*built.notes, *problems))


def test_progress_is_told(database: Path) -> None:
    said: list[str] = []
    build(database, said.append, beats_per_record=2)
    assert said == ["ptb: 8 of 8 records read, 16 beats"]


def test_a_slow_heart_is_left_out(copy: Path) -> None:
    write_record(copy / "1.0.0", 2, "31", HEALTHY, rate=0.7)
    found = quietly(copy)
    assert 2 not in found.extras["group"]
    assert "Records left out because their median RR interval is above 1.2 s: 1 (s0002_re)." in found.notes


def test_only_slow_hearts_are_refused(tmp_path: Path) -> None:
    write_record(tmp_path, 1, "40", HEALTHY, rate=0.7)
    refused(tmp_path, "fast enough")


def refused(folder: Path, message: str, **options: Any) -> None:
    with pytest.raises(InputError, match=message) as caught:
        quietly(folder, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", [".dat", ".xyz"])
def test_a_record_without_signals_is_refused_or_left_out(copy: Path, suffix: str) -> None:
    (copy / "1.0.0" / "patient003" / "s0003_re").with_suffix(suffix).unlink()
    refused(copy, rf"1.0.0/patient003/s0003_re{suffix} is missing\. Fetch")
    found = quietly(copy, partial=True)
    assert 3 not in found.extras["group"]
    assert "Records left out because a file of theirs is missing: 1." in found.notes


def test_a_listed_record_without_header_is_refused(copy: Path) -> None:
    for patient in ("patient010", "patient011"):
        shutil.rmtree(copy / "1.0.0" / patient)
    refused(copy, r"patient010/s0010_re.hea is missing, and 1 more like it")
    assert len(quietly(copy, partial=True).dataset)


def test_signals_of_records_that_are_not_needed_may_be_absent(copy: Path, built: Built) -> None:
    for patient in ("patient009", "patient010", "patient011"):
        for path in (copy / "1.0.0" / patient).glob("*.dat"):
            path.unlink()
    np.testing.assert_array_equal(quietly(copy).dataset.X, built.dataset.X)


def test_altered_and_short_signals_are_refused(copy: Path) -> None:
    path = copy / "1.0.0" / "patient003" / "s0003_re.dat"
    whole = path.read_bytes()
    for damaged in (whole[:-24], whole[:-1], b"", whole[:5000] + bytes([whole[5000] ^ 8]) + whole[5001:]):
        path.write_bytes(damaged)
        with pytest.raises(UnreadableFile, match="signals") as caught:
            read_signals(read_header(path.with_suffix(".hea")))
        assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(copy: Path) -> None:
    path = copy / "1.0.0" / "patient003" / "s0003_re.xyz"
    path.unlink()
    with pytest.raises(UnreadableFile, match=r"s0003_re.xyz: no such file"):
        read_signals(read_header(path.with_suffix(".hea")))


def test_folders_and_options_that_cannot_be_used(tmp_path: Path, database: Path) -> None:
    refused(tmp_path, "no patientNNN")
    write_record(tmp_path, 1, "20", HEALTHY)
    refused(tmp_path, "none of its 1 records")
    refused(database, "detector: expected one of", detector="best")
    refused(database, "split: expected one of", split="record")
    refused(database, "beats_per_record: expected", beats_per_record=0)
    for partial in ("no", None, 1, [True]):
        refused(database, "partial: expected one of true, false, got", partial=partial)


def test_a_bad_seed_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    for seed in (-1, 1.5, "1", None, True):
        refused(tmp_path / "absent", "seed: expected", seed=seed)
    refused(tmp_path / "absent", "seed: expected", seed=2**32)


def test_partial_may_be_a_word(copy: Path) -> None:
    (copy / "1.0.0" / "patient003" / "s0003_re.xyz").unlink()
    for word in ("true", "True "):
        assert len(quietly(copy, partial=word, beats_per_record=1).dataset)
    refused(copy, "s0003_re.xyz is missing", partial="false")


def test_without_wfdb_the_pip_command_is_given(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "wfdb", None)
    refused(database, r'pip install "transpl\[ecg\]"')


def test_the_recipe_offers_what_build_takes() -> None:
    assert set(RECIPE.options) == set(build.__kwdefaults__ or {})
    assert RECIPE.build is build


def test_what_is_built_can_be_saved_and_loaded(built: Built, tmp_path: Path) -> None:
    save_prepared(built.dataset, tmp_path / "ptb.npz")
    again = load_prepared(tmp_path / "ptb.npz")  # although two of the published domains are absent
    assert again.pairs == ((1, 4), (4, 1))
    np.testing.assert_array_equal(again.X, built.dataset.X)


@pytest.fixture(scope="module")
def real() -> Built:
    """The 14 raw records: 12 of the two classes with an age in the groups."""
    if not SHARED.is_dir():
        pytest.skip(f"the shared raw records are not at {SHARED}")
    return build(SHARED / "ptbdb_raw", lambda _: None)


def test_counts_of_real_records(real: Built) -> None:
    assert real.dataset.X.shape == (1404, 15, 300)
    assert set(real.extras["group"][real.dataset.domain_ids == 1]) == {35, 38, 61, 105, 117, 241}
    assert set(real.extras["group"][real.dataset.domain_ids == 4]) == {9, 11, 121, 122, 163, 248}
    assert "Age group 1 has 3 healthy people and 3 with an infarction; the paper has 11 and 4." in real.notes


def test_real_beats_are_those_of_the_prepared_file_bit_by_bit(real: Built) -> None:
    """It has 20 beats of each record, chosen by its maker, cut from the whole database by the published rule."""
    with np.load(SHARED / "ptb.npz") as prepared:
        X, y, domain, group, record, beat = (prepared[k] for k in ("X", "y", "domain", "group", "record", "beat"))
    row_of = {key: i for i, key in enumerate(zip(real.extras["record"], real.extras["beat"], strict=True))}
    ours = np.isin(record, real.extras["record"])
    assert ours.sum() == 12 * 20
    rows = [row_of[key] for key in zip(record[ours], beat[ours], strict=True)]
    np.testing.assert_array_equal(real.dataset.X[rows].astype(np.float16), X[ours])
    np.testing.assert_array_equal(real.dataset.y[rows], y[ours])
    np.testing.assert_array_equal(real.dataset.domain_ids[rows], domain[ours])
    np.testing.assert_array_equal(real.extras["group"][rows], group[ours])


def test_published_records_are_those_of_the_prepared_file() -> None:
    if not SHARED.is_dir():
        pytest.skip(f"the shared prepared data are not at {SHARED}")
    with np.load(SHARED / "ptb.npz") as prepared:
        domain, record = prepared["domain"], prepared["record"]
    assert {d: len(set(record[domain == d])) for d in (1, 2, 3, 4)} == PUBLISHED_RECORDS
    assert check(load_prepared(SHARED / "ptb.npz")) == []
