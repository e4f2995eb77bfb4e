#include "artel/exec/step_memory.h"

#include <gtest/gtest.h>

#include "tests/unit/exec/graph_harness.h"

namespace artel {
namespace {

TEST(StepMemory, CountsParametersGradientsAndActivations) {
  tests::Harness harness({{32, 64}, {16, 64}}, [](Graph&, const std::vector<Value>& p) {
    return tests::probe(dense(p[0], p[1]));
  });
  const StepMemory memory = step_memory(harness.program());
  const size_t weights = (32 * 64 + 16 * 64) * sizeof(float);
  EXPECT_EQ(memory.parameters, weights);
  EXPECT_EQ(memory.gradients, weights);
  EXPECT_GE(memory.activations, 32 * 16 * sizeof(float));
  EXPECT_LE(memory.workspace, memory.activations);
  EXPECT_EQ(memory.total(), memory.parameters + memory.gradients + memory.activations);
}

}  // namespace
}  // namespace artel
