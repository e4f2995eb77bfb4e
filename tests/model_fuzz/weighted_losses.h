// Losses of samples that have weights of their own, as `sample_weight` of the Python package.
#pragma once

#include <string>

namespace artel::model_fuzz {

// "weighted_mse" and "weighted_cross_entropy" of rows. The last number of a target is the sample's
// weight; the others are its values or the shares of the classes. Called once, before any training.
void register_weighted_losses();
bool is_weighted(const std::string& loss);

}  // namespace artel::model_fuzz
