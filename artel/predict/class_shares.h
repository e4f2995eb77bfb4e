// What the scores of a sample say about its class.
#pragma once

#include <span>
#include <vector>

namespace artel {

// The share of each class. One score stands for class 1 against class 0.
std::vector<double> class_shares(std::span<const float> scores);

}  // namespace artel
