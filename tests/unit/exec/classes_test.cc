#include "artel/exec/cpu/matmul/classes.h"

#include <gtest/gtest.h>

#include <cmath>

namespace artel::kernels {
namespace {

TEST(Argmax, IsTheFirstOfTheLargestAndNaNIsLarger) {
  const float scores[] = {1,         3,         3,         2,    //
                          1,         NAN,       5,         NAN,  //
                          NAN,       9,         1,         1,    //
                          -INFINITY, -INFINITY, -INFINITY, -1};
  int32_t result[4];
  ThreadPool pool(2);
  argmax(pool, 4, 4, scores, result);
  EXPECT_EQ(std::vector<int32_t>(result, result + 4), (std::vector<int32_t>{1, 1, 0, 3}));
}

}  // namespace
}  // namespace artel::kernels
