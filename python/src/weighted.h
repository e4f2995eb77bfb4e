// Samples that count unequally.
#pragma once

#include "artel/data/dataset.h"

namespace artel::python {

// The samples of a set with one number more in each target, its weight, as the losses weighted_*
// read it. Classes become shares: 1 for the class and 0 for the others. Throws unless `weights` has
// a number for each sample; an empty tensor means 1 for all.
data::DatasetPtr weighted(data::DatasetPtr samples, const Tensor& weights);

}  // namespace artel::python
