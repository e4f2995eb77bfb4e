#include "artel/graph/ops/limbs.h"

#include <cmath>

#include "artel/graph/op.h"
#include "artel/graph/ops/catalogue.h"

namespace artel {
namespace {

std::vector<TensorType> infer_limb_sums(const InferContext& context) {
  context.check_inputs(1, 1);
  context.check(context.type(0).dtype == DType::f32, "got {}, expected f32",
                to_string(context.type(0)));
  return {{DType::f32, {kLimbs}}};
}

}  // namespace

std::vector<OpDefinition> limb_ops() { return {{"limb_sums", infer_limb_sums, nullptr, nullptr}}; }

Value limb_sums(Value x, bool squares) {
  return x.graph().add_one("limb_sums", {x}, {{"squares", int64_t{squares}}});
}

long double value_of_limbs(std::span<const double> limbs) {
  long double sum = 0;
  for (size_t i = 0; i < limbs.size(); ++i)
    sum += std::ldexp(static_cast<long double>(limbs[i]),
                      kLowestLimb + kLimbBits * static_cast<int>(i));
  return sum;
}

}  // namespace artel
