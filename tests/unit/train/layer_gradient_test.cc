// The gradients of transformer layers against central differences, for their input and all their
// parameters.
#include <gtest/gtest.h>

#include <cmath>

#include "artel/nn/transformer.h"
#include "artel/nn/zoo/gpt2.h"
#include "artel/nn/zoo/llama.h"
#include "tests/unit/exec/graph_harness.h"

namespace artel {
namespace {

using Body = std::function<Value(nn::Build&, Value)>;

void check(const Shape& input, const Body& body) {
  tests::Harness harness({input}, [&](Graph& graph, const std::vector<Value>& p) {
    nn::Build build(graph, true);
    return tests::probe(body(build, p[0]));
  });
  const std::vector<ParameterEntry> entries = harness.program().parameter_entries();
  for (const ParameterEntry& entry : entries) {
    Tensor value(entry.shape);
    Random random{7, hash_name(entry.name)};
    for (float& x : value.values<float>()) x = random.uniform(-0.7f, 0.7f);
    harness.set(entry.name, value);
  }
  for (const ParameterEntry& entry : entries) {
    harness.loss();
    const Tensor gradient = harness.gradient(entry.name);
    ASSERT_GT(gradient.elements(), 0) << entry.name;
    double scale = 0.05;
    for (const float g : gradient.values<float>()) scale = std::max(scale, std::fabs(double{g}));
    const Tensor base = harness.get(entry.name);
    const int64_t stride = std::max<int64_t>(1, base.elements() / 16);
    for (int64_t i = 0; i < base.elements(); i += stride) {
      const auto at = [&](float offset) {
        Tensor moved = base.clone();
        moved.values<float>()[i] += offset;
        harness.set(entry.name, moved);
        return double{harness.loss()};
      };
      const double numeric = (at(1e-2f) - at(-1e-2f)) / 2e-2;
      ASSERT_NEAR(gradient.values<float>()[i], numeric, 6e-3 * scale + 2e-4)
          << entry.name << "[" << i << "]";
    }
    harness.set(entry.name, base);
  }
}

Value constant(nn::Build& build, const Shape& shape, std::vector<int32_t> values) {
  return build.graph().constant("fixed", Tensor::from<int32_t>(shape, values));
}

TEST(LayerGradient, RmsNorm) {
  check({3, 4, 6}, [](nn::Build& build, Value x) { return nn::rms_norm()(build, x); });
}

TEST(LayerGradient, Swiglu) {
  check({2, 3, 6}, [](nn::Build& build, Value x) { return nn::swiglu(10)(build, x); });
}

TEST(LayerGradient, FeedForward) {
  check({2, 3, 6}, [](nn::Build& build, Value x) { return nn::feed_forward(10)(build, x); });
}

TEST(LayerGradient, LearnedPositions) {
  check({2, 3, 6}, [](nn::Build& build, Value x) {
    return nn::add_learned_positions(build, x, "positions", 5);
  });
}

TEST(LayerGradient, SinusoidalPositions) {
  check({2, 5, 6}, [](nn::Build& build, Value x) {
    return unary("tanh", nn::add_sinusoidal_positions(build, x));
  });
}

TEST(LayerGradient, RotaryPositions) {
  check({2, 5, 8}, [](nn::Build& build, Value x) { return nn::rotate_positions(build, x, 2); });
}

TEST(LayerGradient, SelfAttention) {
  for (const bool causal : {false, true})
    for (const bool rotary : {false, true})
      check({2, 5, 8}, [=](nn::Build& build, Value x) {
        return nn::self_attention({.heads = 2, .causal = causal, .rotary = rotary})(build, x);
      });
}

TEST(LayerGradient, CrossAttention) {
  check({2, 7, 8}, [](nn::Build& build, Value x) {
    return nn::multi_head_attention(build, slice(x, 1, 0, 3), {.heads = 2}, slice(x, 1, 3, 7));
  });
}

TEST(LayerGradient, PaddingMask) {
  check({2, 4, 8}, [](nn::Build& build, Value x) {
    const Value mask = constant(build, {2, 4}, {1, 1, 1, 0, 1, 1, 0, 0});
    return nn::multi_head_attention(build, x, {.heads = 2}, {}, mask);
  });
}

TEST(LayerGradient, AttentionWithDropout) {
  for (const bool causal : {false, true})
    check({2, 6, 8}, [=](nn::Build& build, Value x) {
      return nn::self_attention({.heads = 2, .causal = causal, .dropout = 0.4})(build, x);
    });
}

TEST(LayerGradient, PatchesAndClassToken) {
  check({2, 3, 4, 4}, [](nn::Build& build, Value x) {
    return nn::prepend_token(build, nn::patch_embedding(6, 2)(build, x), "class");
  });
}

TEST(LayerGradient, GroupedHeads) {
  check({2, 5, 16}, [](nn::Build& build, Value x) {
    return nn::grouped_attention(build, slice(x, 2, 0, 8), slice(x, 2, 8, 12), slice(x, 2, 12, 16),
                                 {4, 2}, 5);
  });
}

TEST(LayerGradient, Llama) {
  check({1}, [](nn::Build& build, Value x) {
    const Value tokens = constant(build, {2, 4}, {1, 5, 2, 2, 0, 6, 5, 3});
    const nn::Layer llama = nn::llama({.vocabulary = 7,
                                       .positions = 4,
                                       .width = 8,
                                       .depth = 1,
                                       .heads = 4,
                                       .key_heads = 2,
                                       .hidden = 12});
    return mul(llama(build, tokens), x);
  });
}

// The table of tokens is both the first and the last layer.
TEST(LayerGradient, TiedEmbeddings) {
  check({1}, [](nn::Build& build, Value x) {
    const Value tokens = constant(build, {2, 4}, {1, 5, 2, 2, 0, 6, 5, 3});
    const nn::Layer gpt =
        nn::gpt2({.vocabulary = 7, .positions = 4, .width = 8, .depth = 1, .heads = 2});
    return mul(gpt(build, tokens), x);
  });
}

}  // namespace
}  // namespace artel
