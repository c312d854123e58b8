from . import control as control
