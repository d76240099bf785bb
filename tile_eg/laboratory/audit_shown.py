"""An audit as text."""

from __future__ import annotations

from tile_eg.egraph.audit import Audit, Disagreement


def audit_text(name: str, done: Audit) -> str:
    """What was compared, and each disagreement with both terms and the rules that joined them."""
    head = f"{name}: {done.terms} terms in {done.classes} classes, {done.compared} comparisons"
    if not done.found:
        return f"{head}: all agree\n{UNSEEN}"
    return "\n\n".join([f"{head}: {len(done.found)} pairs of terms disagree", *map(_shown, done.found), UNSEEN])


UNSEEN = "Compared are values. What rules of the law `implements` say of instructions is not looked at: `tile-eg run` shows it."


def _shown(d: Disagreement) -> str:
    rules = f"joined by: {', '.join(d.rules)}" if d.rules else "joined by: not traced"
    return f"{d.brief[0]}\n{d.brief[1]}\n  differ by {d.error:.3g} times what rounding explains, at {d.where}\n  {rules}"
