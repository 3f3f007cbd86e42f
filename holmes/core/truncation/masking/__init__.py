"""How old tool results age without a model: a fingerprint, a preview or a path takes their place (P rows).

`plan_masks` plans and `mask_old_results` masks, in one batch; the kept tail of a compaction shrinks with
`shrink_to_pointers`. What is replaced is in the store, so everything can be read back. The kinds of mask are in
`replacement`. Never touches what the user or the model said.
"""

from holmes.core.truncation.masking.mask import (
    MaskOutcome,
    StoreResult,
    apply_masks,
    mask_old_results,
    shrink_to_pointers,
)
from holmes.core.truncation.masking.plan import MaskPlan, PlannedMask, plan_masks

__all__ = [
    "MaskOutcome",
    "MaskPlan",
    "PlannedMask",
    "StoreResult",
    "apply_masks",
    "mask_old_results",
    "plan_masks",
    "shrink_to_pointers",
]
