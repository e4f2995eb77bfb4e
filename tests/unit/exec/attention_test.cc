// Attention against a plain version in double precision; gradient_test.cc checks its gradients.
#include <gtest/gtest.h>

#include <cmath>

#include "artel/exec/cpu/sequence/attention.h"
#include "artel/graph/ops.h"
#include "tests/unit/exec/kernel_test.h"

namespace artel::kernels {
namespace {

struct Problem {
  AttentionShape shape;
  bool masked = false;

  int64_t width() const { return shape.heads * shape.width; }
  int64_t q_size() const { return shape.batch * shape.queries * width(); }
  int64_t k_size() const { return shape.batch * shape.keys * width(); }
};

struct Memory {
  std::vector<float> q, k, v;
  std::vector<int32_t> mask;

  explicit Memory(const Problem& p)
      : q(random_values(p.q_size(), 1, -1, 1)),
        k(random_values(p.k_size(), 2, -1, 1)),
        v(random_values(p.k_size(), 3, -1, 1)) {
    if (p.masked)
      for (int64_t i = 0; i < p.shape.batch * p.shape.keys; ++i) mask.push_back(i % 5 != 2);
  }
  AttentionInputs inputs(const Problem& p) const {
    return {{q.data(), p.width()},
            {k.data(), p.width()},
            {v.data(), p.width()},
            mask.empty() ? nullptr : reinterpret_cast<const uint32_t*>(mask.data())};
  }
};

std::vector<float> plain(const Problem& p, const Memory& m) {
  const AttentionShape& s = p.shape;
  std::vector<float> y(static_cast<size_t>(p.q_size()));
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < s.queries; ++i) {
        const auto at = [&](int64_t positions, int64_t row, int64_t c) {
          return static_cast<size_t>((b * positions + row) * p.width() + h * s.width + c);
        };
        std::vector<double> weights;
        double sum = 0;
        for (int64_t j = 0; j < s.keys; ++j) {
          double score = 0;
          for (int64_t c = 0; c < s.width; ++c)
            score += double{m.q[at(s.queries, i, c)]} * m.k[at(s.keys, j, c)];
          const bool seen = (!s.causal || j <= i + s.keys - s.queries) &&
                            (m.mask.empty() || m.mask[static_cast<size_t>(b * s.keys + j)]);
          weights.push_back(seen ? std::exp(score / std::sqrt(double(s.width))) : 0);
          sum += weights.back();
        }
        for (int64_t c = 0; c < s.width && sum > 0; ++c) {
          double value = 0;
          for (int64_t j = 0; j < s.keys; ++j)
            value += weights[static_cast<size_t>(j)] / sum * m.v[at(s.keys, j, c)];
          y[at(s.queries, i, c)] = static_cast<float>(value);
        }
      }
  return y;
}

struct Results {
  std::vector<float> y, log_sums, dq, dk, dv;
};

Results run(const Problem& p, const Memory& m, int threads) {
  ThreadPool pool(threads);
  const Attention attention(p.shape, threads);
  Results r;
  r.y.resize(m.q.size());
  r.log_sums.resize(static_cast<size_t>(2 * p.shape.batch * p.shape.heads * p.shape.queries));
  const Workspace forward(attention.forward_workspace_bytes());
  attention.forward(pool, m.inputs(p), r.y.data(), r.log_sums.data(), forward.data());
  const std::vector<float> dy = random_values(p.q_size(), 4, -1, 1);
  r.dq.resize(m.q.size());
  r.dk.resize(m.k.size());
  r.dv.resize(m.v.size());
  const Workspace backward(attention.backward_workspace_bytes());
  attention.backward(pool, m.inputs(p), r.log_sums.data(), dy.data(),
                     {{r.dq.data(), p.width()}, {r.dk.data(), p.width()}, {r.dv.data(), p.width()}},
                     backward.data());
  return r;
}

const Problem kProblems[] = {
    {{.batch = 2, .heads = 3, .queries = 5, .keys = 5, .width = 4}},
    {{.batch = 1, .heads = 2, .queries = 65, .keys = 65, .width = 16}, true},
    {{.batch = 2, .heads = 2, .queries = 100, .keys = 100, .width = 8, .causal = true}},
    {{.batch = 1, .heads = 1, .queries = 7, .keys = 33, .width = 5, .causal = true}, true},
    {{.batch = 1, .heads = 2, .queries = 40, .keys = 3, .width = 8, .causal = true}},
    {{.batch = 1, .heads = 1, .queries = 30, .keys = 1100, .width = 12}, true},
    {{.batch = 1, .heads = 2, .queries = 1, .keys = 9, .width = 64}},
};

TEST(Attention, EqualsThePlainVersion) {
  for (const Problem& p : kProblems) {
    const Memory m(p);
    expect_close_by_scale(run(p, m, 1).y, plain(p, m), 2e-6,
                          std::to_string(p.shape.keys) + " keys");
  }
}

TEST(Attention, BitsDoNotDependOnThreads) {
  for (const Problem& p : kProblems) {
    const Memory m(p);
    const Results one = run(p, m, 1), three = run(p, m, 3);
    EXPECT_EQ(one.y, three.y);
    EXPECT_EQ(one.dq, three.dq);
    EXPECT_EQ(one.dk, three.dk);
    EXPECT_EQ(one.dv, three.dv);
  }
}

TEST(Attention, QueriesThatSeeNothingGetZeros) {
  const Problem p = {{.batch = 1, .heads = 1, .queries = 4, .keys = 4, .width = 4}, true};
  Memory m(p);
  std::fill(m.mask.begin(), m.mask.end(), 0);
  const Results r = run(p, m, 1);
  for (const auto* values : {&r.y, &r.dq, &r.dk, &r.dv})
    for (const float value : *values) EXPECT_EQ(value, 0.0f);
}

TEST(Attention, MemoryGrowsLinearlyWithTheContext) {
  const auto bytes = [](int64_t positions) {
    const Attention attention({.batch = 1,
                               .heads = 1,
                               .queries = positions,
                               .keys = positions,
                               .width = 64,
                               .causal = true},
                              1);
    return static_cast<double>(attention.backward_workspace_bytes());
  };
  EXPECT_LT(bytes(8192), 5 * bytes(2048));
}

}  // namespace
}  // namespace artel::kernels

namespace artel {
namespace {

TEST(AttentionShapes, AreChecked) {
  Graph graph;
  const auto value = [&](const std::string& name, Shape shape) {
    return graph.input(name, {DType::f32, std::move(shape)});
  };
  EXPECT_THROW(attention(value("a", {2, 5, 24}), {.heads = 5}), Error);
  EXPECT_THROW(attention(value("b", {2, 5, 25}), {.heads = 1}), Error);
  EXPECT_THROW(attention(value("c", {2, 5, 8}), value("d", {2, 5, 8}), value("e", {2, 6, 8}), {}),
               Error);
  EXPECT_THROW(attention(value("f", {2, 5, 24}), {.heads = 2, .mask = value("g", {2, 4})}), Error);
}

}  // namespace
}  // namespace artel
