from .choice import as_model as as_model
from .choice import as_pair_model as as_pair_model
from .choice import is_pair_model as is_pair_model
from .contract import Model as Model
from .endpoint import Endpoint as Endpoint
from .endpoint import EndpointError as EndpointError
from .function import load_named as load_named
from .pairs import PairModel as PairModel
