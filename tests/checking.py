"""What checks annotations as tests run: ``pytest --jaxtyping-packages=jfric,checking.check``."""

from typing import Annotated, Self

from beartype import BeartypeConf, BeartypeHintOverrides, beartype
from beartype.vale import Is

#: ``Self`` is known only where a whole class is decorated; methods are, one by one.
_anything = Annotated[object, Is[lambda x: True]]
check = beartype(conf=BeartypeConf(hint_overrides=BeartypeHintOverrides({Self: _anything})))
