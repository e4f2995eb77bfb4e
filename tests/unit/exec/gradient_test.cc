// Every gradient rule against central differences.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/exec/graph_harness.h"

namespace artel {
namespace {

using tests::Function;
using tests::Harness;
using tests::probe;
using tests::Range;

// Compares along each axis of each parameter. `step` balances curvature against rounding.
void check(std::vector<Shape> shapes, const Function& function, Range range = {},
           double tolerance = 4e-3, float step = 1e-2f) {
  Harness harness(shapes, function, range);
  for (size_t p = 0; p < shapes.size(); ++p) {
    const std::string name = "p" + std::to_string(p);
    harness.loss();
    const Tensor gradient = harness.gradient(name);
    const Tensor base = harness.get(name);
    double scale = 0.05;
    for (const float g : gradient.values<float>()) scale = std::max(scale, std::fabs(double{g}));
    const int64_t stride = std::max<int64_t>(1, base.elements() / 40);
    for (int64_t i = 0; i < base.elements(); i += stride) {
      const auto at = [&](float offset) {
        Tensor moved = base.clone();
        moved.values<float>()[i] += offset;
        harness.set(name, moved);
        return double{harness.loss()};
      };
      const double numeric = (at(step) - at(-step)) / (2 * double{step});
      const double analytic = gradient.elements() ? gradient.values<float>()[i] : 0;
      ASSERT_NEAR(analytic, numeric, tolerance * scale + 1e-4)
          << name << "[" << i << "] of " << to_string(shapes[p]);
    }
    harness.set(name, base);
  }
}

Function unary_probe(std::string op) {
  return [op](Graph&, const std::vector<Value>& p) { return probe(unary(op, p[0])); };
}

class Unary : public ::testing::TestWithParam<std::pair<const char*, Range>> {};

TEST_P(Unary, Gradient) { check({{3, 7}}, unary_probe(GetParam().first), GetParam().second); }

INSTANTIATE_TEST_SUITE_P(
    All, Unary,
    ::testing::Values(std::pair{"neg", Range{}}, std::pair{"abs", Range{0.1f, 1}},
                      std::pair{"square", Range{}}, std::pair{"sqrt", Range{0.5f, 2}},
                      std::pair{"rsqrt", Range{0.5f, 2}}, std::pair{"exp", Range{}},
                      std::pair{"log", Range{0.5f, 2}}, std::pair{"sin", Range{}},
                      std::pair{"cos", Range{}}, std::pair{"tanh", Range{}},
                      std::pair{"sigmoid", Range{-3, 3}}, std::pair{"relu", Range{0.1f, 1}},
                      std::pair{"relu", Range{-1, -0.1f}}, std::pair{"gelu", Range{-3, 3}},
                      std::pair{"gelu_tanh", Range{-3, 3}}, std::pair{"silu", Range{-3, 3}},
                      std::pair{"softplus", Range{-3, 3}}, std::pair{"erf", Range{-2, 2}},
                      std::pair{"reciprocal", Range{0.5f, 2}}, std::pair{"softmax", Range{}},
                      std::pair{"log_softmax", Range{}}),
    [](const auto& info) {
      return std::string(info.param.first) + (info.param.second.high < 0 ? "_negative" : "");
    });

TEST(Gradient, BroadcastBinary) {
  for (const auto* op : {"add", "sub", "mul", "div", "pow", "maximum", "minimum"}) {
    SCOPED_TRACE(op);
    check({{2, 3, 5}, {3, 1}},
          [&](Graph& g, const std::vector<Value>& p) {
            return probe(g.add_one(op, {p[0], p[1]}));
          },
          {0.5f, 2});
  }
}

TEST(Gradient, ScalarsAndClamps) {
  check({{11}}, [](Graph&, const std::vector<Value>& p) {
    const Value x = leaky_relu(mul_scalar(add_scalar(p[0], 2), 3), 0.2);
    return probe(add(pow_scalar(x, 1.5), add(clamp_min(p[0], -5), clamp_max(p[0], 5))));
  });
  check({{9}}, [](Graph&, const std::vector<Value>& p) { return probe(clamp_min(p[0], 5)); });
}

TEST(Gradient, Select) {
  check({{6}, {6}}, [](Graph& g, const std::vector<Value>& p) {
    const Value condition = g.constant("c", Tensor::from<float>({6}, {1, 0, 1, 0, 0, 1}));
    return probe(select(condition, p[0], p[1]));
  });
}

TEST(Gradient, Matmul) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      check({ta ? Shape{5, 3} : Shape{3, 5}, tb ? Shape{4, 5} : Shape{5, 4}},
            [&](Graph&, const std::vector<Value>& p) {
              return probe(matmul(p[0], p[1], {.transpose_a = ta, .transpose_b = tb}));
            });
      check({ta ? Shape{2, 5, 3} : Shape{2, 3, 5}, tb ? Shape{2, 4, 5} : Shape{2, 5, 4}},
            [&](Graph&, const std::vector<Value>& p) {
              return probe(matmul(p[0], p[1], {.transpose_a = ta, .transpose_b = tb}));
            });
    }
  check({{2, 3, 5}, {5, 4}},
        [](Graph&, const std::vector<Value>& p) { return probe(matmul(p[0], p[1])); });
}

TEST(Gradient, DenseWithAndWithoutActivation) {
  for (const std::string activation : {"", "relu", "gelu", "gelu_tanh"})
    check(
        {{6, 5}, {7, 5}, {7}},
        [&](Graph&, const std::vector<Value>& p) {
          const Value y = dense(p[0], p[1], p[2]);
          return probe(activation.empty() ? y : unary(activation, y));
        },
        {}, 6e-3, 1e-3f);
}

struct ConvCase {
  Shape x, w;
  ConvOptions options;
};

TEST(Gradient, Convolution) {
  const std::vector<ConvCase> cases = {
      {{2, 3, 7, 6}, {4, 3, 3, 3}, {.padding = {1, 1}}},
      {{1, 8, 9, 9}, {16, 8, 3, 3}, {.padding = {1, 1}}},
      {{2, 3, 8, 7}, {5, 3, 3, 2}, {.stride = {2, 1}, .padding = {1, 0}}},
      {{2, 4, 7, 7}, {6, 2, 3, 3}, {.padding = {2, 2}, .dilation = {2, 2}, .groups = 2}},
      {{2, 5, 4, 4}, {7, 5, 1, 1}, {}},
      {{2, 5, 5, 5}, {7, 5, 1, 1}, {.stride = {2, 2}}},
      {{1, 4, 6, 6}, {4, 1, 3, 3}, {.padding = {1, 1}, .groups = 4}},
      {{2, 1, 9, 9}, {6, 1, 5, 5}, {.padding = {2, 2}}}};
  for (const ConvCase& c : cases) {
    SCOPED_TRACE(to_string(c.x) + to_string(c.w));
    check({c.x, c.w, {c.w[0]}}, [&](Graph&, const std::vector<Value>& p) {
      return probe(conv2d(p[0], p[1], p[2], c.options));
    });
    check({c.x, c.w, {c.w[0]}},
          [&](Graph&, const std::vector<Value>& p) {
            return probe(relu(add_scalar(conv2d(p[0], p[1], p[2], c.options), 0)));
          },
          {0.2f, 1});
  }
}

TEST(Gradient, ConvolutionWithFusedRelu) {
  check({{2, 3, 6, 6}, {4, 3, 3, 3}, {4}},
        [](Graph&, const std::vector<Value>& p) {
          return probe(relu(conv2d(p[0], p[1], p[2], {.padding = {1, 1}})));
        },
        {0.1f, 1});
}

TEST(Gradient, TransposedConvolution) {
  check({{2, 4, 3, 4}, {4, 3, 3, 3}, {3}}, [](Graph&, const std::vector<Value>& p) {
    return probe(conv_transpose2d(p[0], p[1], p[2],
                                  {.stride = {2, 2}, .padding = {1, 1}, .output_padding = {1, 0}}));
  });
  check({{1, 4, 3, 3}, {4, 2, 2, 2}}, [](Graph&, const std::vector<Value>& p) {
    return probe(conv_transpose2d(p[0], p[1], {}, {.groups = 2}));
  });
}

TEST(Gradient, Pooling) {
  const PoolOptions windows = {.kernel = {3, 2}, .stride = {2, 2}, .padding = {1, 0}};
  check(
      {{2, 3, 7, 6}},
      [&](Graph&, const std::vector<Value>& p) { return probe(max_pool(p[0], windows)); }, {}, 4e-3,
      1e-3f);
  for (const bool count : {true, false})
    check({{2, 3, 7, 6}}, [&](Graph&, const std::vector<Value>& p) {
      PoolOptions options = windows;
      options.count_padding = count;
      return probe(average_pool(p[0], options));
    });
  check({{2, 3, 7, 5}}, [](Graph&, const std::vector<Value>& p) {
    return probe(adaptive_average_pool(p[0], 3, 2));
  });
  check(
      {{2, 3, 7, 5}},
      [](Graph&, const std::vector<Value>& p) { return probe(adaptive_max_pool(p[0], 3, 2)); }, {},
      4e-3, 1e-3f);
}

Value batch_norm_of(Graph& g, Value x, Value scale, Value shift) {
  const Shape channels = {x.shape()[1]};
  return batch_norm(x, scale, shift, g.state("mean", channels), g.state("variance", channels));
}

TEST(Gradient, BatchNorm) {
  check(
      {{3, 4, 3, 2}, {4}, {4}},
      [](Graph& g, const std::vector<Value>& p) {
        return probe(batch_norm_of(g, p[0], p[1], p[2]));
      },
      {}, 1e-2, 3e-3f);
  check(
      {{9, 5}, {5}, {5}},
      [](Graph& g, const std::vector<Value>& p) {
        return probe(batch_norm_of(g, p[0], p[1], p[2]));
      },
      {}, 1e-2, 3e-3f);
  check(
      {{3, 4, 3, 2}, {4}, {4}, {3, 4, 3, 2}},
      [](Graph& g, const std::vector<Value>& p) {
        return probe(relu(add(batch_norm_of(g, p[0], p[1], p[2]), p[3])));
      },
      {}, 3e-2, 5e-4f);
}

TEST(Gradient, BatchNormWithFixedStatistics) {
  check({{3, 4, 3, 2}, {4}, {4}}, [](Graph& g, const std::vector<Value>& p) {
    const Value mean = g.constant("m", Tensor::from<float>({4}, {0.1f, 0, -0.2f, 0.3f}));
    const Value variance = g.constant("v", Tensor::from<float>({4}, {1, 2, 0.5f, 1}));
    return probe(relu(add_scalar(batch_norm_inference(p[0], p[1], p[2], mean, variance), 9)));
  });
}

TEST(Gradient, LayerAndRmsNorm) {
  check(
      {{5, 7}, {7}, {7}},
      [](Graph&, const std::vector<Value>& p) { return probe(layer_norm(p[0], p[1], p[2])); }, {},
      1e-2, 3e-3f);
  check(
      {{5, 7}, {7}},
      [](Graph&, const std::vector<Value>& p) { return probe(rms_norm(p[0], p[1])); }, {}, 1e-2,
      3e-3f);
}

TEST(Gradient, Embedding) {
  check({{6, 5}}, [](Graph& g, const std::vector<Value>& p) {
    const Value indices = g.constant("i", Tensor::from<int32_t>({2, 3}, {0, 5, 2, 2, 1, 5}));
    return probe(embedding(indices, p[0]));
  });
}

TEST(Gradient, DropoutUsesOneMask) {
  check({{4, 9}}, [](Graph&, const std::vector<Value>& p) { return probe(dropout(p[0], 0.4)); });
}

TEST(Gradient, ShapeOps) {
  check({{2, 3, 4}, {2, 5, 4}}, [](Graph&, const std::vector<Value>& p) {
    const Value joined = concat({p[0], p[1]}, 1);
    const Value part = slice(transpose(joined, {2, 0, 1}), 0, 1, 3);
    return probe(reshape(part, {4, -1}));
  });
  check({{3, 1}}, [](Graph&, const std::vector<Value>& p) {
    return probe(broadcast_to(p[0], {2, 3, 4}));
  });
  check({{2, 3, 4, 5}, {2, 2, 4, 5}, {4, 3, 1, 1}},
        [](Graph&, const std::vector<Value>& p) {  // images that come channels-last
          return probe(slice(concat({conv2d(p[0], p[2]), p[1]}, 1), 1, 1, 5));
        });
  check({{2, 3, 4, 5}, {4, 3, 1, 1}}, [](Graph&, const std::vector<Value>& p) {
    return probe(pad(conv2d(p[0], p[1]), 1, 2, 3));
  });
  check({{2, 3, 4}},
        [](Graph&, const std::vector<Value>& p) { return probe(pad(p[0], -1, 0, 1)); });
}

TEST(Gradient, Reductions) {
  for (const Reduction reduction :
       {Reduction::sum, Reduction::mean, Reduction::max, Reduction::min})
    for (const bool keep : {false, true})
      check(
          {{3, 4, 5}},
          [&](Graph&, const std::vector<Value>& p) {
            return probe(reduce(reduction, p[0], {0, 2}, keep));
          },
          {}, 4e-3, 1e-3f);
}

TEST(Gradient, CrossEntropy) {
  for (const double smoothing : {0.0, 0.1})
    check({{5, 7}}, [&](Graph& g, const std::vector<Value>& p) {
      const Value labels = g.constant("y", Tensor::from<int32_t>({5}, {0, 6, 3, -100, 2}));
      const Value weights = g.constant("w", Tensor::from<float>({7}, {1, 2, 0.5f, 1, 1, 3, 0.2f}));
      return cross_entropy(p[0], labels, weights, {.label_smoothing = smoothing});
    });
  check({{2, 3}}, [](Graph& g, const std::vector<Value>& p) {
    const Value target = g.constant("t", Tensor::from<float>({2, 3}, {0.2f, 0.5f, 0.3f, 1, 0, 0}));
    return cross_entropy(p[0], target);
  });
}

TEST(Gradient, OtherLosses) {
  using Pair = Value (*)(Value, Value);
  for (const Pair loss :
       std::vector<Pair>{mean_squared_error, l1_loss, binary_cross_entropy,
                         [](Value a, Value b) { return smooth_l1_loss(a, b, 0.3); },
                         [](Value a, Value b) { return contrastive_loss(a, b, 0.5); },
                         [](Value a, Value b) { return mean(cosine_similarity(a, b)); }})
    check(
        {{4, 6}, {4, 6}}, [&](Graph&, const std::vector<Value>& p) { return loss(p[0], p[1]); }, {},
        8e-3, 3e-3f);
  check({{3, 4}, {3, 4}}, [](Graph&, const std::vector<Value>& p) {
    return kl_divergence(log_softmax(p[0]), softmax(p[1]));
  });
  check(
      {{4, 6}, {4, 6}},
      [](Graph& g, const std::vector<Value>& p) {
        const Value target = g.constant("t", Tensor::from<float>({4}, {1, -1, 1, -1}));
        return cosine_embedding_loss(p[0], p[1], target, -0.9);
      },
      {}, 8e-3, 3e-3f);
}

// Random chains and diamonds of ops: shared values, mixed layouts, fusion and memory sharing at
// once.
TEST(Gradient, RandomGraphs) {
  for (uint64_t seed = 0; seed < 25; ++seed) {
    SCOPED_TRACE(seed);
    check(
        {{2, 4, 6, 6}, {4, 4, 3, 3}, {4}, {4, 4, 1, 1}},
        [&](Graph& g, const std::vector<Value>& p) {
          Random random{seed};
          std::vector<Value> pool = {p[0]};
          for (int i = 0; i < 8; ++i) {
            const Value a = pool[random.below(pool.size())], b = pool[random.below(pool.size())];
            const Graph::Scope scope(g, std::to_string(i));
            switch (random.below(8)) {
              case 0:
                pool.push_back(mul_scalar(conv2d(a, p[1], p[2], {.padding = {1, 1}}), 0.2));
                break;
              case 1:
                pool.push_back(mul_scalar(conv2d(a, p[3]), 0.3));
                break;
              case 2:
                pool.push_back(unary("tanh", a));
                break;
              case 3:
                pool.push_back(mul_scalar(add(a, b), 0.5));
                break;
              case 4:
                pool.push_back(mul(unary("sigmoid", a), b));
                break;
              case 5:
                pool.push_back(
                    average_pool(a, {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}}));
                break;
              case 6:
                pool.push_back(transpose(a, {0, 1, 3, 2}));
                break;
              case 7:
                pool.push_back(mul(a, reshape(unary("silu", p[2]), {4, 1, 1})));
                break;
            }
          }
          return probe(pool.back() + mul_scalar(pool[pool.size() / 2], 0.5));
        },
        {}, 8e-3);
  }
}

TEST(Gradient, Attention) {
  for (const bool causal : {false, true})
    check({{2, 7, 24}}, [&](Graph&, const std::vector<Value>& p) {
      return probe(attention(p[0], {.heads = 2, .causal = causal}));
    });
  check({{1, 110, 12}}, [](Graph&, const std::vector<Value>& p) {  // more than one block
    return probe(attention(p[0], {.heads = 1, .causal = true}));
  });
}

TEST(Gradient, CrossAttentionWithMask) {
  check({{2, 3, 8}, {2, 5, 8}, {2, 5, 8}}, [](Graph& g, const std::vector<Value>& p) {
    const Value mask =
        g.constant("mask", Tensor::from<float>({2, 5}, {1, 1, 0, 1, 1, 0, 1, 1, 1, 0}));
    return probe(attention(p[0], p[1], p[2], {.heads = 4, .mask = mask}));
  });
}

TEST(Gradient, IsFiniteWhereARootOrAPowerHasNoSlope) {
  // An all-zero row, as behind a ReLU, and 0 to the powers 0, 1 and 2.
  const std::vector<tests::Function> functions = {
      [](Graph& g, const std::vector<Value>& p) {
        const Value other = g.constant("o", Tensor::from<float>({1, 2}, {1, 2}));
        return add(mean(cosine_similarity(mul_scalar(p[0], 0), other)),
                   contrastive_loss(mul_scalar(p[0], 0), other));
      },
      [](Graph& g, const std::vector<Value>& p) {
        const Value zero = mul_scalar(p[0], 0);
        const Value powers = g.constant("o", Tensor::from<float>({1, 2}, {0, 2}));
        return add(sum(pow(zero, powers)),
                   sum(add(pow(zero, mul_scalar(p[0], 0)), pow_scalar(zero, 0))));
      }};
  for (const tests::Function& function : functions) {
    tests::Harness harness({{1, 2}}, function);
    EXPECT_TRUE(std::isfinite(harness.loss()));
    const Tensor gradient = harness.gradient("p0");
    for (const float x : gradient.values<float>()) EXPECT_TRUE(std::isfinite(x)) << x;
  }
}

}  // namespace
}  // namespace artel
