#include "tests/model_fuzz/weighted_losses.h"

#include "artel/base/error.h"
#include "artel/nn/loss.h"

namespace artel::model_fuzz {
namespace {

using RowLoss = Value (*)(Value prediction, Value target);  // [rows, 1]

Value cross_entropy_of_rows(Value prediction, Value target) {
  return mul_scalar(sum(mul(log_softmax(prediction), target), {1}, true), -1);
}

Value squared_error_of_rows(Value prediction, Value target) {
  return mean(unary("square", sub(prediction, target)), {1}, true);
}

Loss weighted(RowLoss of_rows) {
  return [of_rows](Value prediction, Value target) -> WeightedMean {
    require(prediction.type().shape.rank() == 2, ErrorKind::shape,
            "a weighted loss needs rows of numbers");
    const int64_t columns = prediction.type().shape[1];
    const Value weight = slice(target, 1, columns, columns + 1);
    return {mean(mul(of_rows(prediction, slice(target, 1, 0, columns)), weight)), mean(weight)};
  };
}

}  // namespace

void register_weighted_losses() {
  register_loss("weighted_mse", weighted(squared_error_of_rows));
  register_loss("weighted_cross_entropy", weighted(cross_entropy_of_rows));
}

bool is_weighted(const std::string& loss) { return loss.starts_with("weighted_"); }

}  // namespace artel::model_fuzz
