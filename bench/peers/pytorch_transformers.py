"""The transformers that benchmarks train, written for the speed of PyTorch on a CPU: one product for queries, keys and
values, scaled_dot_product_attention, GELU as one kernel."""
import torch
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    def __init__(self, width, heads, causal=False):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.is_causal = causal

    def forward(self, x):
        batch, positions, width = x.shape
        rows = self.qkv(x).view(batch, positions, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = rows.unbind(0)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.is_causal)
        return self.out(y.transpose(1, 2).reshape(batch, positions, width))


class Block(nn.Module):
    def __init__(self, width, heads, causal, gelu):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads, causal)
        self.norm2, self.fc1, self.fc2 = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.gelu = gelu

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.fc2(functional.gelu(self.fc1(self.norm2(x)), approximate=self.gelu))


class Gpt(nn.Module):
    """GPT-2 with tied embeddings; logits of all positions as rows."""

    def __init__(self, positions, width=384, depth=6, heads=6, vocabulary=65):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.blocks = nn.Sequential(*(Block(width, heads, True, "tanh") for _ in range(depth)))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions.weight[:tokens.shape[1]]
        return functional.linear(self.norm(self.blocks(x)), self.tokens.weight).flatten(0, 1)


class Vit(nn.Module):
    """ViT-Tiny: the class token is the first position."""

    def __init__(self, side=32, patch=4, width=192, depth=12, heads=3, classes=10):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, (side // patch) ** 2 + 1, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, heads, False, "none") for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.head(self.norm(self.blocks(x)[:, 0]))


def gpt_problem(batch, positions, context=None, vocabulary=65, **size):
    tokens = torch.randint(0, vocabulary, (batch, context or positions))
    model = Gpt(positions, vocabulary=vocabulary, **size)
    return model, tokens, tokens.flatten(), torch.optim.AdamW(model.parameters(), 3e-4)


def vit_problem(batch):
    model = Vit()
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    return model, torch.randn(batch, 3, 32, 32), torch.randint(0, 10, (batch,)), optimizer


TRANSFORMERS = {
    "gpt": lambda: gpt_problem(8, 256),
    "gpt_2048": lambda: gpt_problem(1, 2048),
    "gpt2": lambda: gpt_problem(4, 1024, context=128, vocabulary=50257, width=768, depth=12, heads=12),
    "vit": lambda: vit_problem(64),
}
