from .held_out import Tuned as Tuned
from .penalty import SensitivityPenalty as SensitivityPenalty
from .penalty import ShortSearch as ShortSearch
from .tuning import tune as tune
