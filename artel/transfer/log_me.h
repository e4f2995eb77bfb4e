// LogME (You et al., ICML 2021): rates features for given classes without training. It is the
// logarithm of the maximum evidence of a linear model, averaged over samples and classes. Larger is
// better; compare only features of the same samples.
#pragma once

#include <cstdint>
#include <vector>

#include "artel/tensor/tensor.h"

namespace artel::transfer {

// `rows` are features, `classes` are i32. Takes an even subset of more than `most` rows, because
// the cost is cubic in their number.
double log_me(const Tensor& rows, const Tensor& classes, int64_t most = 256);

// The ascending eigenvalues of a symmetric matrix (row-major, n x n; reads the upper triangle), and
// its eigenvectors as the rows of `vectors`.
std::vector<double> eigenvalues(std::vector<double> matrix, int64_t n,
                                std::vector<double>& vectors);

}  // namespace artel::transfer
