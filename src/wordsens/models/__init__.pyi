from .black_box import Model as Model
from .black_box import load_named as load_named
from .endpoint import Endpoint as Endpoint
from .endpoint import EndpointError as EndpointError
from .load import as_model as as_model
from .load import as_pair_model as as_pair_model
from .load import is_pair_model as is_pair_model
from .pairs import PairModel as PairModel
