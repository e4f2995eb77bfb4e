#include "artel/exec/kernels/convert.h"

#include <bit>

#include "artel/tensor/dtype.h"
#include "tests/unit/exec/kernel_test.h"

namespace artel::kernels {
namespace {

// Every 16-bit pattern, and floats around every rounding step, against the scalar functions.
TEST(Convert, SameBitsAsScalar) {
  ThreadPool pool(2);
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  std::vector<float> half(all.size()), brain(all.size());
  half_to_float(pool, 65536, all.data(), half.data());
  bfloat16_to_float(pool, 65536, all.data(), brain.data());
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(half[i]),
              std::bit_cast<uint32_t>(artel::half_to_float(all[i])));
    ASSERT_EQ(std::bit_cast<uint32_t>(brain[i]),
              std::bit_cast<uint32_t>(artel::bfloat16_to_float(all[i])));
  }
  std::vector<float> x;
  for (uint64_t bits = 0; bits <= 0xffffffffu; bits += 4093)
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  const auto n = static_cast<int64_t>(x.size());
  std::vector<uint16_t> to_half(n), to_brain(n);
  float_to_half(pool, n, x.data(), to_half.data());
  float_to_bfloat16(pool, n, x.data(), to_brain.data());
  for (int64_t i = 0; i < n; ++i) {
    ASSERT_EQ(to_half[i], artel::float_to_half(x[i])) << x[i];
    ASSERT_EQ(to_brain[i], artel::float_to_bfloat16(x[i])) << x[i];
  }
}

}  // namespace
}  // namespace artel::kernels
