"""`artel.Model`: an untrained network."""

import html
import math
import operator
import os

from artel import _artel, _html


class Model:
    """A network: a list of layers, the name of a zoo network, or a TOML file with a section [model].

    Other keywords are keys of [model], such as `width` and `weights`.

    >>> model = Model(["dense 16", "relu", "dense 2"])
    >>> [(name, shape) for name, shape in model.parameters((3,))]
    [('0.weight', (16, 3)), ('0.bias', (16,)), ('2.weight', (2, 16)), ('2.bias', (2,))]
    """

    def __init__(self, network, **keys):
        self._keys = dict(keys)
        self._file = None
        if isinstance(network, (list, tuple)):
            self._keys["layers"] = [str(layer) for layer in network]
        elif not isinstance(network, (str, os.PathLike)):
            raise _artel.Error(f"network: got {type(network).__name__}, expected a list of layers, the "
                               "name of a network, or a TOML file")
        elif os.fspath(network).endswith(".toml"):
            self._file = os.fspath(network)
        else:
            self._keys["name"] = os.fspath(network)

    def _overrides(self):
        from artel._train import _text_of

        own = [f"model.{name}={_text_of(value)}" for name, value in self._keys.items()]
        return (_artel.model_overrides(self._file) if self._file else []) + own

    def parameters(self, input_shape, tokens=False):
        """Names and shapes of the parameters, given the shape of a sample."""
        try:
            extents = [operator.index(extent) for extent in input_shape]
        except TypeError as error:
            raise _artel.Error(f"input_shape: got {input_shape!r}, expected whole numbers such as "
                               "(3, 32, 32)") from error
        return [(name, tuple(shape))
                for name, shape in _artel.parameters(self._overrides(), extents, tokens)]

    def __repr__(self):
        what = self._file or self._keys.get("name") or self._keys.get("layers")
        return f"artel.Model({what!r})"

    def _repr_html_(self):
        if layers := self._keys.get("layers"):
            return _html.table(("layer",), [(layer,) for layer in layers])
        published = _artel.published_input(self._keys.get("name", ""))
        if published is None:
            return html.escape(repr(self))
        parameters = self.parameters(*published)
        rows = [(name, " x ".join(map(str, shape)), math.prod(shape)) for name, shape in parameters]
        rows.append(("all", "", sum(count for _, _, count in rows)))
        return _html.table(("parameter", "shape", "numbers"), rows)
