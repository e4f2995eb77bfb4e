// Losses minimised by training.
//
//   artel::register_loss("huber", [](artel::Value prediction, artel::Value target) {
//     return artel::smooth_l1_loss(prediction, target, 0.5);
//   });
//   // From now on: train.loss = "huber" in a TOML file, or TrainerOptions::loss = "huber".
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "artel/graph/ops.h"

namespace artel {

// The loss of a prediction and its target: a scalar, the mean over the batch. A loss with weighted
// rows, such as a mask, returns both parts of the weighted mean:
//
//   artel::register_loss("masked", [](artel::Value prediction, artel::Value target) {
//     const artel::Value known = artel::greater(target, artel::mul_scalar(target, 0));
//     const artel::Value errors = artel::unary("abs", artel::sub(prediction, target));
//     return artel::WeightedMean(artel::mean(artel::mul(known, errors)), artel::mean(known));
//   });
using Loss = std::function<WeightedMean(Value prediction, Value target)>;

// The name of a loss, or a function.
using LossChoice = std::variant<std::string, Loss>;
// "mse"; "a function" for one that has no name.
std::string loss_name(const LossChoice& choice);

// cross_entropy, mse, l1, smooth_l1, binary_cross_entropy, kl, or a registered loss. Throws for
// other names. Only cross_entropy smoothes labels.
Loss loss_by_name(const std::string& name, double label_smoothing = 0);

// Label options that only training uses.
struct LabelOptions {
  double label_smoothing = 0;  // cross_entropy only
  // The weight of each class; empty if all are 1. As in PyTorch, the weighted sum of losses is
  // divided by the sum of the labels' weights, or by the number of rows if targets are class
  // probabilities. Only for cross_entropy and, with two classes, binary_cross_entropy.
  std::vector<double> class_weights = {};
};
// Throws if the loss has no such options.
Loss make_loss(const LossChoice& choice, const LabelOptions& labels = {});
std::vector<std::string> loss_names();

// Registers a custom loss. Replaces one that the program registered earlier. Throws for a built-in
// name. All workers must register the same losses.
void register_loss(const std::string& name, Loss loss);

// Predictions [..., classes] as rows [rows, classes], and their targets: i32 [rows], or f32 of the
// shape of the rows.
std::pair<Value, Value> class_rows(Value prediction, Value target);

// [rows, classes]: 1 at the class of each label (i32), 0 elsewhere; ignored labels have none.
Value one_hot(Value labels, int64_t classes);

}  // namespace artel
