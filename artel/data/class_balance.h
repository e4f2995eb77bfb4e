// Classes that are not equally frequent.
//
//   const std::vector<int64_t> counts = artel::data::class_counts(*set);   // say 970 and 30
//   const std::vector<double> weights = artel::data::balanced_weights(counts);
//   const artel::data::DatasetPtr even = artel::data::balanced(set);  // 970 of each
#pragma once

#include <cstdint>
#include <vector>

#include "artel/data/dataset.h"

namespace artel::data {

// How many labels of each class a set has; masked labels are not counted. Throws for sets without
// classes.
std::vector<int64_t> class_counts(const Dataset& set);

// For each class labels / (classes * its labels), over the classes that occur: the mean weight over
// all labels is 1, and each class has the same weight in total. 1 for a class that does not occur.
std::vector<double> balanced_weights(const std::vector<int64_t>& counts);

// The samples of another set, of rarer classes repeated until each class has as many as the most
// frequent one. Of a class that has to be repeated a fraction of a time, the seed decides which.
DatasetPtr balanced(DatasetPtr set, uint64_t seed = 0);

}  // namespace artel::data
