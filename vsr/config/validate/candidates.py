"""Checks of one candidate model."""

from vsr.config.attempt import Code
from vsr.config.checks import suggestion
from vsr.config.document.decisions import ModelRef
from vsr.config.position import Path
from vsr.config.report import Report
from vsr.config.validate.models import CARDS, Models, check_model_name
from vsr.config.validate.reasoning import check_candidate


def check_model_ref(ref: ModelRef, path: Path, models: Models, report: Report) -> None:
    """The model is there, has the adapter, and can reason as it is told to."""
    check_model_name((*path, "model"), ref.model, models, report)
    if ref.lora_name is not None and report.is_whole(CARDS):
        loras = models.loras_of(ref.model)
        if ref.lora_name not in loras:
            place = (*path, "lora_name")
            what = f"{report.quote(place)} is not an adapter of {ref.model!r}"
            mend = "declare it under loras of the model's card"
            mend = suggestion(ref.lora_name, loras) if loras else mend
            report.add(place, what, mend=mend, code=Code.UNRESOLVED_REFERENCE)
    check_candidate(ref, path, models, report)
