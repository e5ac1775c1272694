"""The style shared by all HTML pages, light and dark."""

from __future__ import annotations

PAGE_STYLE = """
:root { color-scheme: light dark;
  --ground: #ffffff; --ink: #1c1c1c; --soft: #5c5c5c; --line: #dddddd; --card: #f6f7f9; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #15171a; --ink: #ececec; --soft: #a9a9a9; --line: #3a3d42; --card: #1e2126; } }
body { background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; margin: 0 auto;
  max-width: 60rem; padding: 1rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; }
h2 { border-top: 1px solid var(--line); margin-top: 2rem; padding-top: 1rem; }
figure { margin: 0; overflow-x: auto; }
"""
