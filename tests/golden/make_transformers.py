#!/usr/bin/env python3
"""Writes parity_gpt2, parity_bert and parity_vit as make_parity.py does: small transformers with the
parameter names of the published checkpoints, in plain PyTorch. The files *_variant differ in what a
published config.json may change: activation, epsilon, hidden units, an untied head.

Run: python3 tests/golden/make_transformers.py   (Debian: python3-torch)
"""
import math

import torch
from torch import nn
from torch.nn import functional as F

from make_parity import make


def attend(q, k, v, heads, hidden=None):
    """Where `hidden` is true no query may look."""
    batch, _, width = q.shape
    q, k, v = (t.view(batch, t.shape[1], heads, width // heads).transpose(1, 2) for t in (q, k, v))
    scores = q @ k.transpose(-2, -1) / math.sqrt(width // heads)
    if hidden is not None:
        scores = scores.masked_fill(hidden, -torch.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


class Conv1D(nn.Module):
    """A dense layer whose weight is stored [in, out]."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) * 0.2)
        self.bias = nn.Parameter(torch.randn(outputs) * 0.1)

    def forward(self, x):
        return x @ self.weight + self.bias


def tree(**children):
    """Modules under names, without a forward pass of their own."""
    module = nn.Module()
    for name, child in children.items():
        module.add_module(name, child)
    return module


def gelu_tanh(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


class Gpt2(nn.Module):
    def __init__(self, vocabulary, positions, width, depth, heads, hidden=None, activation=gelu_tanh, epsilon=1e-5,
                 untied=False):
        super().__init__()
        def norm():
            return nn.LayerNorm(width, eps=epsilon)
        hidden = hidden or 4 * width
        self.heads, self.activation = heads, activation
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.h = nn.ModuleList(
            tree(ln_1=norm(), ln_2=norm(),
                 attn=tree(c_attn=Conv1D(width, 3 * width), c_proj=Conv1D(width, width)),
                 mlp=tree(c_fc=Conv1D(width, hidden), c_proj=Conv1D(hidden, width)))
            for _ in range(depth))
        self.ln_f = norm()
        if untied:
            self.lm_head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        count = tokens.shape[1]
        later = torch.ones(count, count, dtype=torch.bool).triu(1)
        x = self.wte(tokens) + self.wpe(torch.arange(count))
        for block in self.h:
            q, k, v = block.attn.c_attn(block.ln_1(x)).chunk(3, -1)
            x = x + block.attn.c_proj(attend(q, k, v, self.heads, later))
            x = x + block.mlp.c_proj(self.activation(block.mlp.c_fc(block.ln_2(x))))
        head = self.lm_head if hasattr(self, "lm_head") else self.wte
        return self.ln_f(x) @ head.weight.T


class Bert(nn.Module):
    """With both heads of pre-training; position 0 of the result holds the next-sentence scores."""

    def __init__(self, vocabulary, positions, width, depth, heads, hidden=None, activation=F.gelu, epsilon=1e-12,
                 untied=False):
        super().__init__()
        def norm():
            return nn.LayerNorm(width, eps=epsilon)
        hidden = hidden or 4 * width
        self.heads, self.activation = heads, activation
        self.bert = tree(
            embeddings=tree(word_embeddings=nn.Embedding(vocabulary, width),
                            position_embeddings=nn.Embedding(positions, width),
                            token_type_embeddings=nn.Embedding(2, width), LayerNorm=norm()),
            encoder=tree(layer=nn.ModuleList(
                tree(attention=tree(self=tree(**{name: nn.Linear(width, width)
                                                 for name in ("query", "key", "value")}),
                                    output=tree(dense=nn.Linear(width, width), LayerNorm=norm())),
                     intermediate=tree(dense=nn.Linear(width, hidden)),
                     output=tree(dense=nn.Linear(hidden, width), LayerNorm=norm()))
                for _ in range(depth))),
            pooler=tree(dense=nn.Linear(width, width)))
        predictions = tree(transform=tree(dense=nn.Linear(width, width), LayerNorm=norm()))
        predictions.bias = nn.Parameter(torch.randn(vocabulary) * 0.1)
        if untied:
            predictions.decoder = nn.Linear(width, vocabulary, bias=False)
        self.cls = tree(predictions=predictions, seq_relationship=nn.Linear(width, 2))

    def forward(self, x):
        tokens, types = x[:, 0], x[:, 1]
        parts = self.bert.embeddings
        h = parts.LayerNorm(parts.word_embeddings(tokens) + parts.token_type_embeddings(types)
                            + parts.position_embeddings.weight[:tokens.shape[1]])
        padding = (tokens == 0)[:, None, None, :]
        for layer in self.bert.encoder.layer:
            a = layer.attention
            projections = (getattr(a, "self").query(h), getattr(a, "self").key(h), getattr(a, "self").value(h))
            y = attend(*projections, self.heads, padding)
            h = a.output.LayerNorm(a.output.dense(y) + h)
            y = layer.output.dense(self.activation(layer.intermediate.dense(h)))
            h = layer.output.LayerNorm(y + h)
        p = self.cls.predictions
        head = p.decoder if hasattr(p, "decoder") else parts.word_embeddings
        scores = p.transform.LayerNorm(self.activation(p.transform.dense(h))) @ head.weight.T + p.bias
        pair = self.cls.seq_relationship(torch.tanh(self.bert.pooler.dense(h[:, 0])))
        first = F.pad(pair, (0, scores.shape[2] - 2), value=-1e4)
        return torch.cat([first[:, None], scores[:, 1:]], 1)


class Vit(nn.Module):
    def __init__(self, image, patch, width, depth, heads, classes, hidden=None, activation=F.gelu, epsilon=1e-6):
        super().__init__()
        def norm():
            return nn.LayerNorm(width, eps=epsilon)
        hidden = hidden or 4 * width
        self.heads, self.activation = heads, activation
        self.patch_embed = tree(proj=nn.Conv2d(3, width, patch, patch))
        self.cls_token = nn.Parameter(torch.randn(1, 1, width) * 0.1)
        self.pos_embed = nn.Parameter(torch.randn(1, (image // patch)**2 + 1, width) * 0.1)
        self.blocks = nn.ModuleList(
            tree(norm1=norm(), norm2=norm(),
                 attn=tree(qkv=nn.Linear(width, 3 * width), proj=nn.Linear(width, width)),
                 mlp=tree(fc1=nn.Linear(width, hidden), fc2=nn.Linear(hidden, width)))
            for _ in range(depth))
        self.norm, self.head = norm(), nn.Linear(width, classes)

    def forward(self, x):
        x = self.patch_embed.proj(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], 1) + self.pos_embed
        for block in self.blocks:
            q, k, v = block.attn.qkv(block.norm1(x)).chunk(3, -1)
            x = x + block.attn.proj(attend(q, k, v, self.heads))
            x = x + block.mlp.fc2(self.activation(block.mlp.fc1(block.norm2(x))))
        return self.head(self.norm(x)[:, 0])


def next_tokens():
    text = torch.randint(0, 40, (3, 31))
    return text[:, :-1], text[:, 1:]


def sentence_pairs():
    """Tokens with types behind; the first sentence has 7, the padding up to 5 positions."""
    tokens = torch.randint(1, 50, (4, 18))
    for row, padding in enumerate((0, 2, 5, 1)):
        tokens[row, 18 - padding:] = 0
    types = torch.zeros(4, 18, dtype=torch.long)
    types[:, 7:] = 1
    labels = torch.where((torch.rand(4, 18) < 0.3) & (tokens > 0), torch.randint(1, 50, (4, 18)), -100)
    labels[:, 0] = torch.randint(0, 2, (4,))
    return torch.stack([tokens, types], 1), labels


def pictures():
    return torch.randn(4, 3, 16, 16), torch.randint(0, 10, (4,))


if __name__ == "__main__":
    make("gpt2", lambda: Gpt2(40, 32, 24, 2, 3), next_tokens)
    make("bert", lambda: Bert(50, 20, 24, 2, 3), sentence_pairs)
    make("vit", lambda: Vit(16, 4, 24, 2, 3, 10), pictures)
    make("gpt2_variant", lambda: Gpt2(40, 32, 12, 1, 3, 20, F.silu, 1e-2, True), next_tokens)
    make("bert_variant", lambda: Bert(50, 20, 12, 1, 3, 20, gelu_tanh, 1e-3, True), sentence_pairs)
    make("vit_variant", lambda: Vit(16, 4, 12, 1, 3, 10, 20, F.silu, 1e-2), pictures)
