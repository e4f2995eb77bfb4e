// Matrix products on an OpenCL device.
#pragma once

#include <memory>

#include "artel/exec/opencl/device.h"

namespace artel::opencl {

enum class Activation { none = 0, relu = 1, gelu = 2, gelu_tanh = 3 };

// c[m, n] = activation(op(a) op(b) [+ c] [+ bias of the column]), for `batch` products with the
// given distances between operands. Each element is summed in the order of k, so its bits depend
// neither on the extents nor on the tile.
struct Product {
  int64_t m = 0, n = 0, k = 0;
  const float* a = nullptr;
  int64_t lda = 0;
  bool transpose_a = false;
  const float* b = nullptr;
  int64_t ldb = 0;
  bool transpose_b = false;
  float* c = nullptr;
  int64_t ldc = 0;
  bool accumulate = false;
  const float* bias = nullptr;
  Activation activation = Activation::none;
  float most = 3.0e38f;    // the upper bound of a ReLU
  float* slope = nullptr;  // output for the derivative of a GELU
  int64_t batch = 1, a_distance = 0, b_distance = 0, c_distance = 0;
};

// The tile of c that a work group of 64 items computes. `items` items are side by side. Each item
// computes eight columns and `rows` rows.
struct ProductTile {
  int64_t items = 8, rows = 8;
};
// The smallest tile that covers m and n, but at most 64 columns and 128 rows.
ProductTile product_tile(int64_t m, int64_t n);

// The product kernels of a device, each compiled when its tile is first needed.
class Products {
 public:
  explicit Products(OpenClDevice& device);
  void run(const Product& product) const;

 private:
  struct Kernels;
  BuiltKernel kernel(const ProductTile& tile) const;

  OpenClDevice* device_;
  std::shared_ptr<Kernels> kernels_;  // shared by copies
};

}  // namespace artel::opencl
