"""Model cards: their scores become evaluation records, their names those of the catalog."""

from ruamel.yaml.comments import CommentedMap

from vsr.config.migrate.draft import Draft, Place
from vsr.config.migrate.models import models
from vsr.config.migrate.round_trip import is_empty, is_number
from vsr.config.names import OPERATOR_RATING
from vsr.config.position import dotted


def migrate_cards(draft: Draft) -> None:
    """Move the scores of cards to `evaluation.records`, and name cards after the catalog."""
    root = draft.root
    if root.says("evaluation") and root.says("evaluation_catalog"):
        mend = "put both into evaluation"
        draft.refuse(root, "evaluation_catalog", "stands beside evaluation", mend)
        return
    draft.rename(root, "evaluation_catalog", "evaluation")
    catalog = {
        model.text("name"): model.node["catalog"]
        for model in models(draft)
        if model.text("catalog")
    }
    _rename_records(draft, catalog)
    routing = root.child("routing")
    for card in list(routing.items("modelCards")) if routing else ():
        _rename_card(draft, card, catalog)
        _move_evaluations(draft, card)
        _move_score(draft, card)
    if routing:
        _merge_cards(draft, routing)


def _rename_records(draft: Draft, catalog: dict[str, str]) -> None:
    evaluation = draft.root.child("evaluation")
    for record in evaluation.items("records") if evaluation else ():
        name = catalog.get(record.text("model"))
        if name and record.text("model") != name:
            record.node["model"] = name
            draft.note((*record.path, "model"), "is now the name in the catalog")


def _rename_card(draft: Draft, card: Place, catalog: dict[str, str]) -> None:
    name = catalog.get(card.text("name"))
    if name and card.text("name") != name:
        card.node["name"] = name
        draft.note((*card.path, "name"), "is now the name in the catalog")


def _move_evaluations(draft: Draft, card: Place) -> None:
    for record in card.items("evaluations"):
        record.node["model"] = card.node.get("name")
        if _add_record(draft, record.node):
            draft.comments.move_to_item((card.node, "evaluations"), record.node)
    if card.has("evaluations"):
        # The records have their comments with them.
        card.node["evaluations"] = None
        draft.remove(card, "evaluations", "is now in evaluation.records")


def _move_score(draft: Draft, card: Place) -> None:
    score = card.get("quality_score")
    if not card.says("quality_score"):
        if card.has("quality_score"):
            draft.remove(card, "quality_score", "removed, it was empty")
        return
    if not is_number(score):
        draft.refuse(card, "quality_score", "must be a number", "write it as 0.9, for example")
        return
    metrics = CommentedMap({"score": score})
    record = CommentedMap(
        {"model": card.node.get("name"), "benchmark": OPERATOR_RATING, "metrics": metrics}
    )
    if _add_record(draft, record):
        draft.comments.move((card.node, "quality_score"), (metrics, "score"))
    draft.remove(card, "quality_score", f"is now a record of the benchmark {OPERATOR_RATING}")


def _add_record(draft: Draft, record: CommentedMap) -> bool:
    """Append a record unless there is the same already; return whether it was appended."""
    records = draft.sequence(draft.ensure(draft.root, "evaluation"), "records")
    if record in records:
        return False
    records.append(record)
    return True


def _merge_cards(draft: Draft, routing: Place) -> None:
    """Make one card of those that now have the same name."""
    first: dict[str, Place] = {}
    for card in list(routing.items("modelCards")):
        name = card.text("name")
        if name not in first or not name:
            first[name] = card
            continue
        _merge(draft, card, first[name], name)
        rest = set(card.node) - {"name"}
        if not rest:
            draft.remove_item(routing.node["modelCards"], card.node, first[name], "name")


def _merge(draft: Draft, card: Place, target: Place, name: str) -> None:
    for key in [key for key in card.node if key != "name"]:
        old, new = card.child(key), target.child(key)
        if old and new:
            _merge(draft, old, new, name)
            draft.drop_if_empty(card, key)
        elif not is_empty(target.get(key)) and target.get(key) != card.get(key):
            what = f"differs from that of another card, and both are now of {name!r}"
            draft.refuse(card, key, what, f"correct one of them, as {dotted(target.path)}")
        else:
            draft.move(card, key, target, key)
