"""What SB3's own tests ask of each of its algorithms."""

import numpy as np
import pytest
from every_method import each_kind
from learned import differences
from small import make_small

OBS = np.array([[0.1, -0.5, 2.0], [0.9, 0.3, -1.0]], np.float32)


@each_kind
def test_parameters_are_set_in_part_or_as_a_whole(method):
    first, second = make_small(method, seed=1).learn(60), make_small(method, seed=2).learn(60)
    parameters = first.get_parameters()
    second.set_parameters({"policy": parameters["policy"]}, exact_match=False)
    assert (
        second.predict(OBS, skill=1, deterministic=True)[0] == first.predict(OBS, skill=1, deterministic=True)[0]
    ).all() and differences(first, second)
    second.set_parameters(parameters)
    assert not differences(first, second)
    with pytest.raises(ValueError, match="Names of parameters do not match"):
        second.set_parameters({"policy": parameters["policy"]})
    with pytest.raises(RuntimeError, match="Missing key"):
        second.set_parameters({**parameters, "policy": dict(list(parameters["policy"].items())[1:])})
    with pytest.raises(ValueError, match="Key unknown is an invalid object name"):
        second.set_parameters({"unknown": {}}, exact_match=False)
