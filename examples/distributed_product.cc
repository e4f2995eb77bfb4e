// A matrix product that several workers compute together, each with a part of the weights only:
//
//   mpirun -n 4 artel_distributed_product
//
// The bits of the result do not depend on the division.
#include <artel/artel.h>

#include <cmath>

namespace {

// Numbers that each worker can make for any part of the weights.
float weight(int64_t row, int64_t column) {
  return static_cast<float>(std::sin(static_cast<double>(row * 131 + column * 17)));
}

}  // namespace

int main(int argc, char** argv) {
  artel::Cluster cluster(argc, argv);
  constexpr int64_t kIn = 96, kOut = 160, kSamples = 8;
  artel::Tensor x({kSamples, kIn});
  for (size_t i = 0; i < static_cast<size_t>(x.elements()); ++i)
    x.values<float>()[i] = static_cast<float>(i % 13) - 6;

  struct Way {
    const char* name;
    int rows, columns;
  };
  for (const auto& [name, row_shards, column_shards] :
       {Way{"columns", 1, 4}, Way{"rows", 4, 1}, Way{"both", 2, 2}}) {
    artel::DistributedProduct product(
        cluster, {.in = kIn, .out = kOut, .rows = row_shards, .columns = column_shards});
    artel::Tensor part({product.rows().size(), product.columns().size()});
    size_t next = 0;
    for (int64_t r = product.rows().begin; r < product.rows().end; ++r)
      for (int64_t c = product.columns().begin; c < product.columns().end; ++c)
        part.values<float>()[next++] = weight(r, c);
    product.set_weights(part);
    const artel::Tensor y = product(x);

    double largest = 0;  // difference from the product in double precision
    for (int64_t i = 0; i < kSamples; ++i)
      for (int64_t c = 0; c < kOut; ++c) {
        double sum = 0;
        for (int64_t r = 0; r < kIn; ++r)
          sum += double{x.values<float>()[static_cast<size_t>(i * kIn + r)]} * weight(r, c);
        largest =
            std::max(largest, std::abs(sum - y.values<float>()[static_cast<size_t>(i * kOut + c)]));
      }
    if (cluster.rank() == 0)
      artel::println("{}: a worker has [{}, {}] of the weights [{}, {}], largest difference {:.0e}",
                     name, product.rows().size(), product.columns().size(), kIn, kOut, largest);
    if (largest > 1e-3) return 1;
  }
  return 0;
}
