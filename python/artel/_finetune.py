"""`artel.finetune`: adapts a trained network to other data."""

import inspect
import os
import pathlib
import tempfile

from artel import _artel, _train
from artel._run import Run

_RUN_OPTIONS = [name for name, parameter in inspect.signature(_train.run).parameters.items()
                if parameter.kind is parameter.KEYWORD_ONLY]


def finetune(base, data, *, test=None, blocks="auto", lora=0, new_head=False, outputs=0,
             base_weights="", **words) -> Run:
    """Fine-tunes a trained network, like `artel finetune`, and returns the `Run`.

    `base` is a run folder, a checkpoint, the name of a published base, the folder of a published
    model, or the name of a zoo network whose weights are in the file `base_weights`. `data` and
    `test` are the same as in `artel.train`. Targets are classes or values.

    `blocks` selects the blocks to train: "head", "last 2" (the head and the two blocks before it),
    "all", or name prefixes. "auto" decides by the number of samples. `lora=8` trains low-rank
    adapters of a transformer instead. The head is replaced unless the classes have the same names.
    `new_head` always replaces it, and `outputs` sets the number of its outputs. All other keywords
    are those of `artel.train`.

    >>> x = numpy.random.default_rng(0).normal(size=(200, 2)).astype("f4")
    >>> four = (x[:, 0] > 0) * 2 + (x[:, 1] > 0)
    >>> base = artel.train(["dense 16", "relu", "dense 4"], (x, four), epochs=30, lr=0.5, quiet=True)
    >>> run = finetune(base.folder, (x[:40], x[:40, 0] > x[:40, 1]), blocks="head", quiet=True)
    >>> run.predict(x).shape
    (200, 2)
    """
    options = {name: words.pop(name) for name in _RUN_OPTIONS if name in words}
    overrides = _train.overrides_of(words)
    if isinstance(data, (str, os.PathLike)):
        source, given = os.fspath(data), {}
        if test is not None:
            overrides.append(f"data.test_path={os.path.abspath(test)}")
    else:
        source, given = "given", _train.samples_of(data, test, overrides)
    text, notes = _artel.finetuning(os.fspath(base), os.fspath(base_weights), source, **given,
                                    blocks=blocks, lora=lora, new_head=new_head, outputs=outputs,
                                    overrides=overrides)
    if not options.get("quiet"):
        for note in notes:
            print(note)
    with tempfile.TemporaryDirectory(prefix="artel-") as folder:
        # The run folder is named after the file.
        file = pathlib.Path(folder, f"{pathlib.Path(base).name}-finetuned.toml")
        file.write_text(text, encoding="utf-8")
        return _train.run(file, [], given, **options)
