"""scikit-learn's callbacks in `fit`, such as its progress bar; without effect where scikit-learn has none yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["CallbackSupportMixin", "reported_fit", "with_callbacks"]

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """An estimator without callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Leave a method as it is."""
        return method


@contextmanager
def reported_fit(estimator: Any, X: Any, y: Any, n_phases: int) -> Iterator[Callable[[str], Any]]:
    """Report the beginning and end of a fit to callbacks; yields a context manager for each phase."""
    context = estimator._init_callback_context(max_subtasks=n_phases) if hasattr(estimator, "set_callbacks") else None

    @contextmanager
    def phase(name: str) -> Iterator[None]:
        part = None if context is None else context.subcontext(task_name=name)
        if part is not None:
            part.call_on_fit_task_begin(estimator=estimator)
        yield
        if part is not None:
            part.call_on_fit_task_end(estimator=estimator)

    if context is not None:
        context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
    yield phase
    if context is not None:
        context.call_on_fit_task_end(estimator=estimator, X=X, y=y)
