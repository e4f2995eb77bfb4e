"""Custom losses, metrics, and layers."""

from artel import _artel

# The present definition of each name, by kind and name. C++ looks it up whenever it builds a network.
functions: dict = {}


def _define(kind, name, function, *options):
    if (kind, name) not in functions:
        getattr(_artel, f"define_{kind}")(name, *options)
    functions[kind, name] = function
    return function


def loss(function):
    """Registers a function as a loss, under its name.

    The function receives two `Value`s, the predictions and the targets of a batch. It returns the
    mean loss as a `Value` or, if samples have weights, the mean of weight times loss and the mean
    weight. It builds a part of the compiled network, so no Python code runs during a step.

    >>> @loss
    ... def huber(prediction, target):
    ...     error = ops.abs(prediction - target)
    ...     return ops.mean(ops.select(error < 1.0, error * error / 2, error - 0.5))
    >>> x = numpy.linspace(0, 1, 64, dtype="f4")[:, None]
    >>> run = artel.train(["dense 1"], (x, 2 * x), loss=huber, epochs=5, quiet=True)
    """
    return _define("loss", function.__name__, function)


def metric(function=None, *, less_is_better=False):
    """Registers a function as a metric, under its name.

    The function receives the predictions and targets of a batch. It returns a sum (a `Value`) and a
    count. The metric is the total of all sums divided by the total count.

    >>> @metric
    ... def positive(prediction, target):
    ...     return ops.sum(prediction > 0.0), prediction.shape[0]
    """
    if function is None:
        return lambda given: metric(given, less_is_better=less_is_better)
    return _define("metric", function.__name__, function, less_is_better)


def layer(function):
    """Registers a function as a layer, under its name, for use in lists of layers.

    The function receives the network under construction (`Build`), the input (`Value`), and the
    words after its name in the list. It returns the output.

    >>> @layer
    ... def gated(build, x, units):
    ...     return build("value", f"dense {units}", x) * ops.sigmoid(build("gate", f"dense {units}", x))
    >>> artel.Model(["gated 8", "dense 2"]).parameters((3,))[0]
    ('0.value.0.weight', (8, 3))
    """
    return _define("layer", function.__name__, function)


def name_of(kind, part):
    """Returns a name. A function is registered first and its name is returned."""
    if callable(part):
        _define(kind, part.__name__, part, *((False,) if kind == "metric" else ()))
        return part.__name__
    return part
