"""How old tool results age without a model: a fingerprint, a preview or a path takes their place (P rows).

`compact_if_necessary` plans with `plan_masks` and masks with `mask_old_results`, in one batch; the kept tail of a
compaction shrinks with `shrink_to_pointers`. What is replaced is in the store, so everything can be read back. One file
for each kind of mask; adding a kind is adding a file. Never touches what the user or the model said.
"""

from holmes.core.truncation.masking.mask import MaskOutcome, StoreResult, apply_masks, mask_old_results
from holmes.core.truncation.masking.plan import MaskPlan, PlannedMask, plan_masks
from holmes.core.truncation.masking.tail import shrink_to_pointers

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
