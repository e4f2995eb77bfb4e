#include "artel/data/tables/sparse_sample_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <vector>

#include "artel/base/error.h"
#include "artel/base/random.h"

namespace artel::data {

void make_sparse_samples(const std::filesystem::path& path, const SparseMakerOptions& options) {
  require(
      options.rows > 0 && options.features > 1 && options.nonzeros > 0 &&
          options.nonzeros <= options.features,
      ErrorKind::invalid_argument,
      "[{}] got {} rows of {} features with {} values each, expected at least 1 row, 2 features "
      "and at most as many values",
      path.string(), options.rows, options.features, options.nonzeros);
  std::filesystem::path temporary = path;
  temporary += ".part";
  std::ofstream out(temporary, std::ios::binary);
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(options.nonzeros)));
  const auto informative = static_cast<uint64_t>(std::min(options.informative, options.features));
  std::vector<uint64_t> features;
  std::string text;
  for (int64_t row = 0; row < options.rows; ++row) {
    Random random{options.seed, hash_name("sparse row"), static_cast<uint64_t>(row)};
    features.clear();
    for (int64_t i = 0; i < options.nonzeros; ++i) {
      // Uniform in the logarithm: density 1/k.
      const double place =
          std::pow(static_cast<double>(options.features), static_cast<double>(random.uniform()));
      features.push_back(std::min<uint64_t>(static_cast<uint64_t>(place), options.features) - 1);
    }
    std::sort(features.begin(), features.end());
    features.erase(std::unique(features.begin(), features.end()), features.end());
    double score = 0;
    for (const uint64_t feature : features)
      if (feature < informative)
        score += 6 * scale * Random{options.seed, hash_name("truth"), feature}.normal();
    const bool positive = 1 / (1 + std::exp(-score)) > random.uniform();
    text.clear();
    fmt::format_to(std::back_inserter(text), "{}", positive ? "+1" : "-1");
    for (const uint64_t feature : features)
      fmt::format_to(std::back_inserter(text), " {}:{:.6g}", feature + 1, scale);
    out << text << '\n';
  }
  out.close();
  require(out.good(), ErrorKind::io, "[{}] cannot be written", temporary.string());
  std::filesystem::rename(temporary, path);
}

}  // namespace artel::data
