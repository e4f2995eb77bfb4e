#!/usr/bin/env python3
"""Writes sentences.safetensors: a small BERT with random weights under their published names, three
sentences as tokens, and the cosines of their vectors (mean over tokens), all in numpy.

Run: python3 tests/golden/make_sentences.py
"""
import json
import math
import pathlib
import struct

import numpy as np

WIDTH, DEPTH, HEADS, VOCABULARY, POSITIONS = 16, 2, 2, 14, 12
# [CLS] ... [SEP] in the vocabulary of tests/unit/predict/sentence_vectors_test.cc.
SENTENCES = [[2, 5, 6, 7, 3], [2, 5, 6, 8, 9, 3], [2, 10, 11, 3]]


def make_weights(random):
    shapes = {"embeddings.word_embeddings.weight": (VOCABULARY, WIDTH),
              "embeddings.position_embeddings.weight": (POSITIONS, WIDTH),
              "embeddings.token_type_embeddings.weight": (2, WIDTH)}
    layers = {"attention.self.query": (WIDTH, WIDTH), "attention.self.key": (WIDTH, WIDTH),
              "attention.self.value": (WIDTH, WIDTH), "attention.output.dense": (WIDTH, WIDTH),
              "intermediate.dense": (4 * WIDTH, WIDTH), "output.dense": (WIDTH, 4 * WIDTH)}
    for i in range(DEPTH):
        for name, shape in layers.items():
            shapes[f"encoder.layer.{i}.{name}.weight"] = shape
            shapes[f"encoder.layer.{i}.{name}.bias"] = shape[:1]
    norms = ["embeddings.LayerNorm"] + [f"encoder.layer.{i}.{part}output.LayerNorm"
                                        for i in range(DEPTH) for part in ("attention.", "")]
    for name in norms:
        shapes[name + ".weight"] = shapes[name + ".bias"] = (WIDTH,)
    return {name: random.normal(0, 0.4, shape) + (name.endswith("LayerNorm.weight"))
            for name, shape in shapes.items()}


def norm(x, w, name):
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
    return x * w[name + ".LayerNorm.weight"] + w[name + ".LayerNorm.bias"]


def dense(x, w, name):
    return x @ w[name + ".weight"].T + w[name + ".bias"]


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def vector(tokens, w):
    x = (w["embeddings.word_embeddings.weight"][tokens] + w["embeddings.token_type_embeddings.weight"][0]
         + w["embeddings.position_embeddings.weight"][:len(tokens)])
    x = norm(x, w, "embeddings")
    for i in range(DEPTH):
        at = f"encoder.layer.{i}."
        heads = [dense(x, w, at + "attention.self." + part).reshape(len(tokens), HEADS, -1).swapaxes(0, 1)
                 for part in ("query", "key", "value")]
        scores = np.exp(heads[0] @ heads[1].swapaxes(1, 2) / math.sqrt(WIDTH // HEADS))
        mixed = (scores / scores.sum(-1, keepdims=True) @ heads[2]).swapaxes(0, 1).reshape(x.shape)
        x = norm(x + dense(mixed, w, at + "attention.output.dense"), w, at + "attention.output")
        x = norm(x + dense(gelu(dense(x, w, at + "intermediate.dense")), w, at + "output.dense"), w, at + "output")
    mean = x.mean(0)
    return mean / np.linalg.norm(mean)


def save(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        content = tensor.astype(np.float32).tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


if __name__ == "__main__":
    weights = make_weights(np.random.default_rng(1))
    vectors = np.stack([vector(tokens, weights) for tokens in SENTENCES])
    save(pathlib.Path(__file__).parent / "sentences.safetensors", {**weights, "cosines": vectors @ vectors.T})
