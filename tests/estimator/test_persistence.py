"""A model on disk: whole, or refused."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
from conftest import TINY, make_waves

from transpl import TransPL
from transpl._utils.errors import InputError, UnreadableFile
from transpl._utils.files import write_json
from transpl._utils.hashing import hash_json

X, Y = make_waves(20, seed=0)
NEW, _ = make_waves(12, seed=2, gain=1.4)


@pytest.fixture(scope="module")
def fitted():
    return TransPL(**TINY).fit(X, Y)


@pytest.fixture
def saved(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    return tmp_path / "model"


def weights_of(folder):
    (path,) = folder.glob("weights-*.safetensors")
    return path


@pytest.mark.parametrize("mode", ["source", "markov", "finetune"])
def test_round_trip_gives_the_same_numbers(fitted, tmp_path, mode):
    model = copy.deepcopy(fitted)
    if mode != "source":
        model.adapt(NEW, mode=mode, prior=[0.3, 0.7])
    model.save(tmp_path)
    again = TransPL.load(tmp_path)
    assert again.mode_ == mode
    assert np.array_equal(again.predict_proba(NEW), model.predict_proba(NEW))
    assert np.array_equal(again.pseudo_label(NEW).probabilities, model.pseudo_label(NEW).probabilities)
    assert again.class_counts_ == model.class_counts_
    assert np.array_equal(again.codebook_, model.codebook_)
    assert again.history_ == model.history_
    assert again.get_params() == {**model.get_params(), "device": "auto"}, "the machine's parameters are not saved"
    if mode != "source":
        assert again.target_counts_ == model.target_counts_
        assert np.array_equal(again.channel_weights_, model.channel_weights_)


def test_a_model_remembers_its_source_codes(fitted, saved):
    one, other = fitted.explain(NEW), TransPL.load(saved).explain(NEW)
    for name in ("rows", "labels", "distances"):
        assert np.array_equal(getattr(one.nearest, name), getattr(other.nearest, name))


def test_a_finetuned_model_remembers_the_shares_of_its_target(fitted, tmp_path):
    model = copy.deepcopy(fitted).adapt(NEW)
    model.save(tmp_path)
    assert TransPL.load(tmp_path).shift_report().as_dict() == model.shift_report().as_dict()


def rewritten(folder, change):
    """The folder after `change` has been done to what model.json holds."""
    card = json.loads((folder / "model.json").read_text())
    del card["digest"]
    change(card)
    write_json(folder / "model.json", {**card, "digest": hash_json(card)})
    return folder


def as_older_versions_wrote_it(card):
    del card["variant"], card["target_shares"]
    card["params"] |= dict.fromkeys(("vote", "calibrate", "refine_rounds", "temper", "learning"))
    card["temper"] = 1.0


def test_a_model_of_an_older_version_loads_and_knows_no_neighbours(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr("transpl.methods.transpl.transpl_state.TransPLState.explaining_arrays", lambda state: {})
    fitted.save(tmp_path)
    again = TransPL.load(rewritten(tmp_path, as_older_versions_wrote_it))
    assert again.explain(NEW).nearest is None
    assert np.array_equal(again.explain(NEW).probabilities, fitted.explain(NEW).probabilities)


@pytest.mark.parametrize("changed", [{"variant": "plus"}, {"vote": "product"}])
def test_a_model_of_an_older_versions_own_variant_is_refused(saved, changed):
    def with_changes(card):
        as_older_versions_wrote_it(card)
        card["params"] |= changed

    with pytest.raises(UnreadableFile, match="variant"):
        TransPL.load(rewritten(saved, with_changes))


def test_a_model_says_which_variant_it_is(saved):
    assert json.loads((saved / "model.json").read_text())["variant"] == "paper"
    lacking = rewritten(saved, lambda card: card.pop("network"))
    with pytest.raises(UnreadableFile, match=r"model\.json: describes no model of this version"):
        TransPL.load(lacking)


def test_what_is_remembered_decides_no_answer(fitted):
    model = copy.deepcopy(fitted)
    before = model.method_.fingerprint()
    model.method_.state.source_codes = None
    assert model.method_.fingerprint() == before


@pytest.mark.parametrize(
    "labels", [[True, False], [0, 1], [1.0, 2.0], ["a", "ä b"], np.array(["x", "yy"], dtype=object)]
)
def test_labels_of_any_plain_type_survive(tmp_path, labels):
    y = np.array(labels)[Y] if not isinstance(labels, np.ndarray) else labels[Y]
    model = TransPL(**{**TINY, "max_epochs": 1}).fit(X, y)
    model.save(tmp_path)
    again = TransPL.load(tmp_path)
    assert again.classes_.tolist() == model.classes_.tolist()
    assert again.classes_.dtype == model.classes_.dtype


def test_nothing_in_the_folder_is_a_pickle(saved):
    assert sorted(path.suffix for path in saved.iterdir()) == [".json", ".safetensors"]
    assert all(b"torch" not in path.read_bytes()[:64] for path in saved.iterdir())


def test_a_loaded_model_goes_on_adapting(saved, fitted):
    again = TransPL.load(saved)
    again.adapt(NEW, mode="markov")
    with pytest.raises(InputError, match="Pass X_source and y_source, or use mode='markov'"):
        again.adapt(NEW)
    again.adapt(NEW, X_source=X, y_source=Y)
    straight = copy.deepcopy(fitted).adapt(NEW)
    assert np.array_equal(again.predict_proba(NEW), straight.predict_proba(NEW))


def test_saving_again_replaces_the_weights(saved, fitted):
    first = weights_of(saved).name
    copy.deepcopy(fitted).adapt(NEW).save(saved)
    assert weights_of(saved).name != first
    assert TransPL.load(saved).mode_ == "finetune"


def test_a_crash_while_saving_leaves_the_old_model(saved, fitted, monkeypatch):
    import transpl.estimator.persistence

    def crash(*_):
        raise OSError("disk full")

    monkeypatch.setattr(transpl.estimator.persistence, "write_json", crash)
    with pytest.raises(OSError, match="disk full"):
        copy.deepcopy(fitted).adapt(NEW).save(saved)
    assert np.array_equal(TransPL.load(saved).predict_proba(NEW), fitted.predict_proba(NEW))


def flip_a_byte(folder):
    path = weights_of(folder)
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)


def truncate_weights(folder):
    path = weights_of(folder)
    path.write_bytes(path.read_bytes()[:100])


def truncate_card(folder):
    path = folder / "model.json"
    path.write_text(path.read_text()[:200])


def edit_card(folder):
    path = folder / "model.json"
    card = json.loads(path.read_text())
    card["params"]["sigma"] = 9.0
    path.write_text(json.dumps(card))


def foreign_card(folder):
    (folder / "model.json").write_text('{"format": "something else"}')


def list_as_card(folder):
    (folder / "model.json").write_text("[1, 2]")


def newer_format(folder):
    path = folder / "model.json"
    path.write_text(path.read_text().replace('"format_version": 1', '"format_version": 2'))


def lose_weights(folder):
    weights_of(folder).unlink()


def lose_card(folder):
    (folder / "model.json").unlink()


def point_outside(folder):
    path = folder / "model.json"
    path.write_text(path.read_text().replace('"file": "weights', '"file": "../weights'))


DAMAGE = [
    (flip_a_byte, "damaged or changed"),
    (truncate_weights, "damaged or changed"),
    (truncate_card, "not readable as JSON"),
    (edit_card, "changed since it was saved"),
    (foreign_card, "not a TransPL model"),
    (list_as_card, "not a TransPL model"),
    (newer_format, "model format 2"),
    (lose_weights, "weights file is missing"),
    (lose_card, "no such file"),
    (point_outside, "changed since it was saved"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGE, ids=[damage.__name__ for damage, _ in DAMAGE])
def test_damaged_models_are_refused_in_one_line(saved, damage, message):
    damage(saved)
    with pytest.raises(UnreadableFile, match=message) as caught:
        TransPL.load(saved)
    assert "\n" not in str(caught.value)


def test_labels_that_json_cannot_hold_are_refused(tmp_path, fitted):
    model = copy.deepcopy(fitted)
    model.classes_ = np.array([("a", 1), ("b", 2)], dtype=object)
    with pytest.raises(InputError, match=r"^y: expected text or numbers"):
        model.save(tmp_path)


def test_the_fingerprint_is_that_of_what_decides_an_answer(fitted, saved):
    before = fitted.method_.fingerprint()
    assert TransPL.load(saved).method_.fingerprint() == before
    found = {before}
    for change in ({"mode": "markov"}, {"mode": "markov", "prior": [0.3, 0.7]}, {"mode": "finetune"}):
        model = copy.deepcopy(fitted).adapt(NEW, **change)
        found.add(model.method_.fingerprint())
    found.add(copy.deepcopy(fitted).set_params(sigma=0.3).unadapted().method_.fingerprint())
    assert len(found) == 5
