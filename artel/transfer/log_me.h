// How well features fit classes, without training: the logarithm of maximum evidence (You et al.,
// ICML 2021) of a linear model, mean over samples and classes. Larger is better; only differences
// between features for the same samples mean something.
#pragma once

#include <cstdint>
#include <vector>

#include "artel/tensor/tensor.h"

namespace artel::transfer {

// Rows of features with their classes (i32). Of more than `most` rows, every so many-th counts: the
// cost grows with the cube of their number.
double log_me(const Tensor& rows, const Tensor& classes, int64_t most = 256);

// The eigenvalues of a symmetric matrix (row-major, n x n, of which the upper triangle is read),
// the least first, and its eigenvectors as the rows of `vectors`.
std::vector<double> eigenvalues(std::vector<double> matrix, int64_t n,
                                std::vector<double>& vectors);

}  // namespace artel::transfer
