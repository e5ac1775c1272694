"""Learning from the council's own labels: against scikit-learn, loops, and what a window must not see."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from transpl.council import relearning
from transpl.council.relearning import GaussianClasses, PrincipalAxes, folds, relearn

K, F = 3, 5


def clumps(n: int = 90, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, F) of K classes, equally many of each, with one covariance."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % K
    mixing = rng.normal(size=(F, F))
    return rng.normal(size=(n, F)) @ mixing + 2 * rng.normal(size=(K, F))[y] + 5, y


X, Y = clumps()
ONE_HOT = np.eye(K)[Y]
AXES = PrincipalAxes.fit(X)
FOLD = folds(len(X), None, 0)


def soft(seed: int = 0) -> np.ndarray:
    return 0.7 * ONE_HOT + 0.3 * np.random.default_rng(seed).dirichlet(np.ones(K), len(X))


def sound(p: np.ndarray, n: int, n_classes: int = K) -> None:
    assert p.shape == (n, n_classes)
    assert (p > 0).all()
    assert np.allclose(p.sum(axis=1), 1)


# axes


def test_axes_span_the_rows_where_there_are_enough_windows():
    z = AXES.transform(X)
    assert z.shape == (90, F)
    assert np.allclose(z.mean(axis=0), 0)
    assert np.allclose(z @ AXES.axes.T + AXES.mean, X)
    products = z.T @ z
    assert np.allclose(products, np.diag(np.diag(products)), atol=1e-8 * products.max())
    assert (np.diff(np.diag(products)) <= 0).all()


def test_fewer_axes_than_windows():
    wide = np.random.default_rng(0).normal(size=(12, 400))
    assert PrincipalAxes.fit(wide).transform(wide).shape[1] <= 12 / 2
    many = np.random.default_rng(0).normal(size=(200, 400))
    assert PrincipalAxes.fit(many).transform(many).shape[1] == relearning.MAX_AXES


# folds


@pytest.mark.parametrize("n", [1, 7, 10, 95])
def test_folds_are_as_equal_as_can_be_and_the_same_each_time(n):
    fold = folds(n, None, 3)
    assert np.array_equal(fold, folds(n, None, 3))
    sizes = np.bincount(fold)
    assert len(sizes) == min(n, 10)
    assert sizes.max() - sizes.min() <= 1


def test_a_group_stays_in_one_fold():
    groups = np.random.default_rng(0).integers(-4, 20, 200)
    fold = folds(200, groups, 0)
    assert all(len(np.unique(fold[groups == group])) == 1 for group in np.unique(groups))
    assert len(np.unique(fold)) == 10


# what is learnt


def test_hard_labels_give_scikit_learns_discriminant_analysis():
    relearned, _ = relearn(AXES, X, ONE_HOT, FOLD)
    reference = LinearDiscriminantAnalysis(
        solver="lsqr", shrinkage=relearning._SHRINKAGE, priors=np.full(K, 1 / K)
    ).fit(X, Y)
    new = X + np.random.default_rng(1).normal(size=X.shape)
    assert np.allclose(relearned.answer(new), reference.predict_proba(new), atol=1e-4)


def test_soft_labels_weigh_means_and_covariance():
    q = soft()
    relearned, _ = relearn(AXES, X, q, FOLD)
    means = [sum(q[i, k] * X[i] for i in range(90)) / q[:, k].sum() for k in range(K)]
    spread = sum(q[i, k] * np.outer(X[i] - means[k], X[i] - means[k]) for i in range(90) for k in range(K)) / 90
    a = relearning._SHRINKAGE
    spread = (1 - a) * spread + a * np.trace(spread) / F * np.eye(F)
    p = np.stack([multivariate_normal(mean, spread).pdf(X) for mean in means], axis=1)
    assert np.allclose(relearned.answer(X), p / p.sum(axis=1, keepdims=True), atol=1e-4)


def test_held_out_answers_are_those_of_a_model_without_the_fold():
    q = soft()
    _, answers = relearn(AXES, X, q, FOLD)
    for out in (0, 7):
        rest = out != FOLD
        without, _ = relearn(AXES, X[rest], q[rest], FOLD[rest])
        assert np.allclose(answers[~rest], without.answer(X[~rest]), atol=1e-9)


def test_a_window_and_its_group_do_not_confirm_themselves():
    groups = np.arange(90) // 6
    fold = folds(90, groups, 0)
    q = soft()
    _, before = relearn(AXES, X, q, fold)
    q[groups == 4] = np.eye(K)[(Y[groups == 4] + 1) % K]
    relearned, after = relearn(AXES, X, q, fold)
    assert np.array_equal(after[groups == 4], before[groups == 4])
    assert not np.allclose(after, before)
    sound(relearned.answer(X), 90)


def test_wrong_labels_of_a_few_are_put_right():
    q = ONE_HOT.copy()
    q[:9] = np.eye(K)[(Y[:9] + 1) % K]
    _, answers = relearn(AXES, X, q, FOLD)
    assert (answers.argmax(axis=1) == Y).mean() > (q.argmax(axis=1) == Y).mean()


def test_a_class_without_windows_is_next_to_impossible():
    q = np.column_stack([ONE_HOT[:, 0], np.zeros(90), ONE_HOT[:, 1] + ONE_HOT[:, 2]])
    relearned, answers = relearn(AXES, X, q, FOLD)
    for p in (answers, relearned.answer(X)):
        sound(p, 90)
        assert p[:, 1].max() < 1e-5
    assert relearned.shown.tolist() == [True, False, True]


def test_classes_may_be_numbered_in_any_order():
    order = [2, 0, 1]
    q = soft()
    relearned, answers = relearn(AXES, X, q, FOLD)
    other, other_answers = relearn(AXES, X, q[:, order], FOLD)
    assert np.allclose(other_answers, answers[:, order])
    assert np.allclose(other.answer(X), relearned.answer(X)[:, order])


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("constant", [False, True])
def test_little_data_gets_sound_probabilities(n, constant):
    rows = np.ones((n, F)) if constant else X[:n]
    relearned, answers = relearn(PrincipalAxes.fit(rows), rows, soft()[:n], folds(n, None, 0))
    sound(answers, n)
    sound(relearned.answer(X), 90)
    if n == 1:
        assert np.allclose(answers, 1 / K)  # there was nothing else to learn from


def test_a_single_group_is_never_judged_by_itself():
    _, answers = relearn(AXES, X, ONE_HOT, folds(90, np.zeros(90, int), 0))
    assert np.allclose(answers, 1 / K)


def test_constant_rows_and_columns():
    q = soft()
    relearned, answers = relearn(PrincipalAxes.fit(np.ones((90, F))), np.ones((90, F)), q, FOLD)
    sound(answers, 90)
    sound(relearned.answer(np.ones((90, F))), 90)
    rows = np.column_stack([X, np.full(90, 3.0)])
    _, answers = relearn(PrincipalAxes.fit(rows), rows, q, FOLD)
    assert np.allclose(answers, relearn(AXES, X, q, FOLD)[1])


def test_arrays_hold_all_that_was_learnt(tmp_path):
    relearned, _ = relearn(AXES, X, soft(), FOLD)
    np.savez(tmp_path / "arrays.npz", **relearned.arrays())
    with np.load(tmp_path / "arrays.npz", allow_pickle=False) as saved:
        again = GaussianClasses.from_arrays(dict(saved))
    assert np.array_equal(again.answer(X), relearned.answer(X))
