from .penalty import SensitivityPenalty as SensitivityPenalty
from .penalty import ShortSearch as ShortSearch
from .tuning import Tuned as Tuned
from .tuning import tune as tune
