#include "artel/cluster/mesh.h"

#include <gtest/gtest.h>

namespace artel {
namespace {

TEST(Mesh, CoordinatesInWords) {
  EXPECT_EQ(to_string(MeshCoordinates()), "");
  EXPECT_EQ(to_string({.data = 1, .tensor = 0}), "data 1, tensor 0");
  EXPECT_EQ(to_string({.stage = 2, .stages = 1, .pipeline = 4}), "stage 2");
  EXPECT_EQ(to_string({.data = 0, .stage = 1, .stages = 2, .pipeline = 4}),
            "data 0, stages 1 and 5");
}

}  // namespace
}  // namespace artel
