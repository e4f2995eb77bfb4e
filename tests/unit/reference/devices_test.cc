// Random uses of every op on an OpenCL device, compared with the reference in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "artel/graph/ops/catalogue.h"
#include "tests/reference/interpreter.h"
#include "tests/support/opencl.h"
#include "tests/unit/reference/cases.h"

namespace artel::reference {
namespace {

using tests::Harness;

Value weighted(const Use& use, Graph& graph, const std::vector<Value>& parameters) {
  const Value y = use.function(graph, parameters);
  return y.shape().rank() == 0 ? y : tests::probe(y);
}

double size_of_terms(const Graph& graph, const std::vector<Array>& values) {
  const Node& last = graph.node(graph.value(graph.output_id("loss")).producer);
  double size = 1;
  for (const double term : values[static_cast<size_t>(last.inputs[0])].data) size += std::abs(term);
  return size;
}

void expect_near(const Array& got, const Array& expected, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(got.shape, expected.shape) << what;
  double scale = 1;
  for (const double x : expected.data) scale = std::max(scale, std::abs(x));
  for (size_t i = 0; i < expected.data.size(); ++i)
    ASSERT_NEAR(got.data[i], expected.data[i], tolerance * scale) << what << "[" << i << "]";
}

class EveryOpOnOpenCl : public ::testing::TestWithParam<Case> {};

TEST_P(EveryOpOnOpenCl, AgreesWithTheReference) {
  Device* const device = tests::opencl_device();
  if (!device) return;
  const Case& c = GetParam();
  for (int seed = 0; seed < (c.large ? 1 : 2); ++seed) {
    Random random{static_cast<uint64_t>(seed), hash_name(c.name)};
    const Use use = c.draw(random);
    std::string shapes;
    for (const Shape& shape : use.shapes) shapes += to_string(shape) + " ";
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + shapes);
    Harness harness(
        use.shapes, [&](Graph& g, const auto& p) { return weighted(use, g, p); }, c.range, 1, 1,
        *device);
    const Graph& graph = harness.program().graph();
    Leaves leaves;
    for (size_t p = 0; p < use.shapes.size(); ++p)
      leaves["p" + std::to_string(p)] = from_tensor(harness.get("p" + std::to_string(p)));
    for (const ValueId id : graph.of_kind(ValueKind::state))
      leaves[graph.value(id).name] = zeros(graph.type(id).shape);
    const std::vector<Array> values = run(graph, leaves);
    const double loss = values[static_cast<size_t>(graph.output_id("loss"))].data[0];
    const double computed = harness.loss();
    ASSERT_NEAR(computed, loss, 1e-5 * size_of_terms(graph, values));
    ASSERT_EQ(harness.loss(), computed);  // the same bits again
    for (const GradientOf& g : graph.gradients()) {
      const std::string& name = graph.value(g.parameter).name;
      const Tensor tensor = harness.gradient(name);
      const Array got =
          tensor.elements() > 0 ? from_tensor(tensor) : zeros(graph.type(g.parameter).shape);
      expect_near(got, values[static_cast<size_t>(g.gradient)], 5e-5, "gradient of " + name);
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryOpOnOpenCl, ::testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.name; });

// The ops that the processor computes for the device. An op that loses its kernel shows here.
TEST(OpenCl, HasKernelsForAllOtherOps) {
  Device* const device = tests::opencl_device();
  if (!device) return;
  const std::set<std::string> on_processor = {
      "cached_attention",    "quantised_dense", "quantised_embedding",
      "limb_sums",           "reshape",         "shard_copies",
      "shard_sum",           "shard_slices",    "shard_gather",
      "shard_cross_entropy", "shard_count_top", "shard_cross_entropy_backward"};
  std::set<std::string> missing;
  for (const OpDefinition& op : builtin_ops())
    if (!has_kernel(*device, op.name) && !find_traits(*device)->fuses(op.name))
      missing.insert(op.name);
  EXPECT_EQ(missing, on_processor);
}

}  // namespace
}  // namespace artel::reference
