// Class probabilities from scores.
#pragma once

#include <span>
#include <vector>

namespace artel {

// The probability of each class. A single score is that of class 1 against class 0.
std::vector<double> class_shares(std::span<const float> scores);

}  // namespace artel
