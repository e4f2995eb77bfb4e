"""Exchanges weights with PyTorch without copying them."""

from artel import _data


def to_torch(state):
    """Converts named arrays, such as `run.state_dict()`, to tensors that share their memory.

    Names and shapes are those of PyTorch, so `module.load_state_dict` accepts them.
    """
    import torch

    return {name: torch.from_numpy(array) for name, array in state.items()}


def from_torch(module):
    """Converts a module or state dict to named arrays that share its memory; bf16 becomes f32.

    `artel.train(..., weights=from_torch(module))` starts from them.
    """
    state = module.state_dict() if hasattr(module, "state_dict") else module
    return {name: _data.array(tensor.detach().cpu(), name) for name, tensor in state.items()
            if tensor.ndim > 0 or name.split(".")[-1] != "num_batches_tracked"}
